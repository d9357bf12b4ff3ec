"""Sweep on Lambda, fed by the queues of `confirm`, `sweep` and `probe`."""

from __future__ import annotations

from bellhop.cloud.loading import undisturbed

with undisturbed():
    from bellhop.aws.batch import Batch
    from bellhop.aws.installation import installation
    from bellhop.aws.resources import Resources
    from bellhop.fleet.cluster_alerts import ClusterAlerts
    from bellhop.fleet.noticing import Noticing
    from bellhop.fleet.renewals import Renewals
    from bellhop.stages.sweep import Sweep


def _stage(here: Resources) -> Noticing:
    whole = installation(here)
    sweep = Sweep(
        here.records, whole.catalogs, whole.access, here.publisher, here.settings, here.log
    )
    alerts = ClusterAlerts(whole, sweep)
    return Noticing(whole, Renewals(whole, alerts, here.log), here.log)


handle = Batch(_stage)
