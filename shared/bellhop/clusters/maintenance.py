"""Maintenance of an installation's records: garbage, traces of removed clusters, lost timers."""

from __future__ import annotations

from bellhop.settings import Settings
from bellhop.state.delays import renewal_timer, spread, sweep_timer
from bellhop.state.envelope import Envelope
from bellhop.state.messages import CollectGarbage, PurgeCluster, Renew, Resync
from bellhop.state.records import Records


class Maintenance:
    """Deletes records that nothing names, and sets timers that are missing."""

    def __init__(self, records: Records, settings: Settings) -> None:
        self._records = records
        self._settings = settings

    def collect(self, _: CollectGarbage) -> None:
        """Delete unused contents, and set the timers of clusters that have none.

        Nothing expires within a day after the clock jumped ahead. An alert of no cluster or
        promotion is left where a version without alerts has removed it.
        """
        now = self._records.clock.now()
        if not self._records.pulses.doubts(now):
            self._records.collect(now)
        # Alerts are read first: a cluster that is registered meanwhile has none among them.
        alerted = [name for name, _ in self._records.alerts.rows()]
        clusters = list(self._records.clusters.all())
        for name in {*alerted}.difference(each.key for each in clusters):
            if self._records.promotions.get(name) is None:
                self._records.alerts.delete(name)
        for cluster in clusters:
            self._set_missing(sweep_timer(cluster.key), Resync(cluster.key))
            if cluster.forwarder or cluster.abandoned:
                self._set_missing(renewal_timer(cluster.key), Renew(cluster.key))

    def purge(self, message: PurgeCluster) -> None:
        """Delete what workers wrote of a cluster while it was removed."""
        if self._records.clusters.get(message.cluster) is None:
            self._records.forget_traces(message.cluster)

    def _set_missing(self, name: str, message: Envelope) -> None:
        if self._records.timers.get(name) is None:
            due = self._records.clock.now() + spread(name, self._settings.sweep_interval)
            self._records.timers.set(name, due, message.message().body)
