"""Deploy charts and kustomizations on Cloud Run functions: Pub/Sub pushes what is for `charts`.

Helm and kubectl lie beside.
"""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from cloudevents.http import CloudEvent

    from bellhop.catalog.cache import Catalogs
    from bellhop.configuration.notifier import StatusNotifier
    from bellhop.runtime.cloud.charts import tools
    from bellhop.runtime.cloud.reconciler import make_reconciler
    from bellhop.runtime.gcp.access import access_of, secrets_of
    from bellhop.runtime.gcp.push import Push
    from bellhop.runtime.gcp.resources import Resources
    from bellhop.runtime.handlers import Handlers
    from bellhop.state.messages import Apply


def _stage(here: Resources) -> Handlers:
    access, catalogs = access_of(here, secrets_of(here)), Catalogs(here.records)
    reconciler = make_reconciler(here, catalogs, access, tools(here))
    follow = StatusNotifier(here.records, catalogs, here.publisher).follow
    return Handlers("charts", {Apply: reconciler.handle}, follow)


_push = Push(_stage)


@functions_framework.cloud_event
def handle(event: CloudEvent) -> None:
    """Work on one message."""
    _push(event)
