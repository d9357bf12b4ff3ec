"""Sweep on Cloud Run functions: Pub/Sub pushes what is for `confirm`, `sweep` and `probe`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from cloudevents.http import CloudEvent

    from bellhop.configuration.notifier import StatusNotifier
    from bellhop.diagnosis.cluster_status import ClusterAlerts
    from bellhop.runtime.gcp.access import OwnGke
    from bellhop.runtime.gcp.installation import installation
    from bellhop.runtime.gcp.push import Push
    from bellhop.runtime.gcp.resources import Resources
    from bellhop.runtime.handlers import Handlers
    from bellhop.runtime.handlers.sweep import make_sweep_table
    from bellhop.state.messages import Resync


def _stage(here: Resources) -> Handlers:
    whole = installation(here)
    table = make_sweep_table(whole, here.log, OwnGke(here.services))
    table[Resync] = ClusterAlerts(whole, table[Resync]).handle
    follow = StatusNotifier(whole.records, whole.catalogs, whole.publisher).follow
    return Handlers("sweep", table, follow)


_push = Push(_stage)


@functions_framework.cloud_event
def handle(event: CloudEvent) -> None:
    """Work on one message."""
    _push(event)
