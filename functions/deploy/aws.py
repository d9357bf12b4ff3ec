"""Deploy on Lambda, fed by the queues of `deploy` and `apply`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.adapters.metrics import Prometheus
    from bellhop.catalog.cache import Catalogs
    from bellhop.deploy.handler import Deploy
    from bellhop.deploy.reconciler import ProfileReconciler
    from bellhop.ports.tools import Tools
    from bellhop.runtime.aws.access import access_of, secrets_of
    from bellhop.runtime.aws.batch import Batch
    from bellhop.runtime.aws.resources import Resources
    from bellhop.runtime.cloud.files import LateDownloads
    from bellhop.state.worker_pool import HELPERS, WorkerPool


def _stage(here: Resources) -> Deploy:
    access = access_of(here, secrets_of(here))
    catalogs, publisher, settings = Catalogs(here.records), here.publisher, here.settings
    metrics, hands, log = Prometheus(here.contents), WorkerPool(HELPERS), here.log
    tools = Tools(files=LateDownloads(here.contents, here.records.clock))
    execute = ProfileReconciler(
        catalogs, access, publisher, settings, log, metrics=metrics, hands=hands, tools=tools
    )
    return Deploy(here.records, catalogs, publisher, execute, settings)


handle = Batch(_stage)
