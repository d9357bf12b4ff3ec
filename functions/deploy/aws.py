"""Deploy on Lambda, fed by the queues of `deploy` and `apply`."""

from __future__ import annotations

from bellhop.cloud.loading import undisturbed

with undisturbed():
    from bellhop.adapters.metrics import Prometheus
    from bellhop.aws.access import access_of, secrets_of
    from bellhop.aws.batch import Batch
    from bellhop.aws.resources import Resources
    from bellhop.cloud.files import LateDownloads
    from bellhop.ports.tools import Tools
    from bellhop.records.catalogs import Catalogs
    from bellhop.stages.deploy import Deploy
    from bellhop.stages.execute import Execute
    from bellhop.stages.hands import HELPERS, Hands


def _stage(here: Resources) -> Deploy:
    access = access_of(here, secrets_of(here))
    catalogs, publisher, settings = Catalogs(here.records), here.publisher, here.settings
    metrics, hands, log = Prometheus(here.contents), Hands(HELPERS), here.log
    tools = Tools(files=LateDownloads(here.contents, here.records.clock))
    execute = Execute(
        catalogs, access, publisher, settings, log, metrics=metrics, hands=hands, tools=tools
    )
    return Deploy(here.records, catalogs, publisher, execute, settings)


handle = Batch(_stage)
