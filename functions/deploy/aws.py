"""Deploy on Lambda, fed by the queues of `deploy`, `apply` and `status`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.runtime.aws.access import access_of, secrets_of
    from bellhop.runtime.aws.batch import Batch
    from bellhop.runtime.aws.resources import Resources
    from bellhop.runtime.cloud.deploy import make_deploy_handlers
    from bellhop.runtime.handlers import Handlers


def _stage(here: Resources) -> Handlers:
    return make_deploy_handlers(here, access_of(here, secrets_of(here)))


handle = Batch(_stage)
