"""Deploy charts and kustomizations on Cloud Run functions: Pub/Sub pushes what is for `charts`.

Helm and kubectl lie beside.
"""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from cloudevents.http import CloudEvent

    from bellhop.adapters.metrics import Prometheus
    from bellhop.catalog.cache import Catalogs
    from bellhop.deploy.reconciler import ProfileReconciler
    from bellhop.runtime.cloud.charts import tools
    from bellhop.runtime.gcp.access import access_of, secrets_of
    from bellhop.runtime.gcp.push import Push
    from bellhop.runtime.gcp.resources import Resources
    from bellhop.state.worker_pool import HELPERS, WorkerPool


def _stage(here: Resources) -> ProfileReconciler:
    access, catalogs = access_of(here, secrets_of(here)), Catalogs(here.records)
    publisher, settings, log = here.publisher, here.settings, here.log
    metrics, hands = Prometheus(here.contents), WorkerPool(HELPERS)
    return ProfileReconciler(
        catalogs, access, publisher, settings, log, metrics=metrics, hands=hands, tools=tools(here)
    )


_push = Push(_stage)


@functions_framework.cloud_event
def handle(event: CloudEvent) -> None:
    """Work on one message."""
    _push(event)
