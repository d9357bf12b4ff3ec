"""Sweep on Lambda, fed by the queues of `confirm`, `sweep` and `probe`."""

from __future__ import annotations

from bellhop.runtime.cloud.loading import undisturbed

with undisturbed():
    from bellhop.configuration.notifier import StatusNotifier
    from bellhop.diagnosis.cluster_status import ClusterAlerts
    from bellhop.runtime.aws.access import OwnEks
    from bellhop.runtime.aws.batch import Batch
    from bellhop.runtime.aws.installation import installation
    from bellhop.runtime.aws.resources import Resources
    from bellhop.runtime.handlers import Handlers
    from bellhop.runtime.handlers.sweep import make_sweep_table
    from bellhop.state.messages import Resync


def _stage(here: Resources) -> Handlers:
    whole = installation(here)
    table = make_sweep_table(whole, here.log, OwnEks(here.services))
    table[Resync] = ClusterAlerts(whole, table[Resync]).handle
    follow = StatusNotifier(whole.records, whole.catalogs, whole.publisher).follow
    return Handlers("sweep", table, follow)


handle = Batch(_stage)
