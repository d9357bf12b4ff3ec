"""Sweep on Lambda, fed by the queues of `confirm`, `sweep` and `probe`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.diagnosis.cluster_alerts import ClusterAlerts
    from bellhop.extras.health.notifier import HealthNotifier
    from bellhop.registration.due_renewals import Renewals
    from bellhop.resync.resync import Resyncer
    from bellhop.runtime.aws.batch import Batch
    from bellhop.runtime.aws.installation import installation
    from bellhop.runtime.aws.resources import Resources


def _stage(here: Resources) -> HealthNotifier:
    whole = installation(here)
    sweep = Resyncer(
        here.records, whole.catalogs, whole.access, here.publisher, here.settings, here.log
    )
    alerts = ClusterAlerts(whole, sweep)
    return HealthNotifier(whole, Renewals(whole, alerts, here.log), here.log)


handle = Batch(_stage)
