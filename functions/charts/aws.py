"""Deploy charts and kustomizations on Lambda, fed by the queue of `charts`.

Helm and kubectl are in a layer.
"""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.adapters.metrics import Prometheus
    from bellhop.catalog.cache import Catalogs
    from bellhop.deploy.reconciler import ProfileReconciler
    from bellhop.runtime.aws.access import access_of, secrets_of
    from bellhop.runtime.aws.batch import Batch
    from bellhop.runtime.aws.resources import Resources
    from bellhop.runtime.cloud.charts import tools
    from bellhop.state.worker_pool import HELPERS, WorkerPool


def _stage(here: Resources) -> ProfileReconciler:
    access, catalogs = access_of(here, secrets_of(here)), Catalogs(here.records)
    publisher, settings, log = here.publisher, here.settings, here.log
    metrics, hands = Prometheus(here.contents), WorkerPool(HELPERS)
    return ProfileReconciler(
        catalogs, access, publisher, settings, log, metrics=metrics, hands=hands, tools=tools(here)
    )


handle = Batch(_stage)
