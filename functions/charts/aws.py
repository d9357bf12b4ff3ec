"""Deploy charts and kustomizations on Lambda, fed by the queue of `charts`.

Helm and kubectl are in a layer.
"""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.catalog.cache import Catalogs
    from bellhop.configuration.notifier import StatusNotifier
    from bellhop.runtime.aws.access import access_of, secrets_of
    from bellhop.runtime.aws.batch import Batch
    from bellhop.runtime.aws.resources import Resources
    from bellhop.runtime.cloud.charts import tools
    from bellhop.runtime.cloud.reconciler import make_reconciler
    from bellhop.runtime.handlers import Handlers
    from bellhop.state.messages import Apply


def _stage(here: Resources) -> Handlers:
    access, catalogs = access_of(here, secrets_of(here)), Catalogs(here.records)
    reconciler = make_reconciler(here, catalogs, access, tools(here))
    follow = StatusNotifier(here.records, catalogs, here.publisher).follow
    return Handlers("charts", {Apply: reconciler.handle}, follow)


handle = Batch(_stage)
