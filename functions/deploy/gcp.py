"""Deploy on Cloud Run functions: Pub/Sub pushes what is for `deploy`, `apply` and `status`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from cloudevents.http import CloudEvent

    from bellhop.runtime.cloud.deploy import make_deploy_handlers
    from bellhop.runtime.gcp.access import access_of, secrets_of
    from bellhop.runtime.gcp.push import Push
    from bellhop.runtime.gcp.resources import Resources
    from bellhop.runtime.handlers import Handlers


def _stage(here: Resources) -> Handlers:
    return make_deploy_handlers(here, access_of(here, secrets_of(here)))


_push = Push(_stage)


@functions_framework.cloud_event
def handle(event: CloudEvent) -> None:
    """Work on one message."""
    _push(event)
