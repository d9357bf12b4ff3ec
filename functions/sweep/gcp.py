"""Sweep on Cloud Run functions: Pub/Sub pushes what is for `confirm`, `sweep` and `probe`."""

from __future__ import annotations

from bellhop.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from cloudevents.http import CloudEvent

    from bellhop.fleet.cluster_alerts import ClusterAlerts
    from bellhop.fleet.noticing import Noticing
    from bellhop.fleet.renewals import Renewals
    from bellhop.gcp.installation import installation
    from bellhop.gcp.push import Push
    from bellhop.gcp.resources import Resources
    from bellhop.stages.sweep import Sweep


def _stage(here: Resources) -> Noticing:
    whole = installation(here)
    sweep = Sweep(
        here.records, whole.catalogs, whole.access, here.publisher, here.settings, here.log
    )
    alerts = ClusterAlerts(whole, sweep)
    return Noticing(whole, Renewals(whole, alerts, here.log), here.log)


_push = Push(_stage)


@functions_framework.cloud_event
def handle(event: CloudEvent) -> None:
    """Work on one message."""
    _push(event)
