"""Sweep on Cloud Run functions: Pub/Sub pushes what is for `confirm`, `sweep` and `probe`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    import functions_framework
    from cloudevents.http import CloudEvent

    from bellhop.diagnosis.cluster_alerts import ClusterAlerts
    from bellhop.extras.health.notifier import HealthNotifier
    from bellhop.registration.due_renewals import Renewals
    from bellhop.resync.resync import Resyncer
    from bellhop.runtime.gcp.installation import installation
    from bellhop.runtime.gcp.push import Push
    from bellhop.runtime.gcp.resources import Resources


def _stage(here: Resources) -> HealthNotifier:
    whole = installation(here)
    sweep = Resyncer(
        here.records, whole.catalogs, whole.access, here.publisher, here.settings, here.log
    )
    alerts = ClusterAlerts(whole, sweep)
    return HealthNotifier(whole, Renewals(whole, alerts, here.log), here.log)


_push = Push(_stage)


@functions_framework.cloud_event
def handle(event: CloudEvent) -> None:
    """Work on one message."""
    _push(event)
