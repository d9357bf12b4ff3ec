"""Keeps the alerts of clusters up to date, so that the schedule reports them at constant cost.

    timer ─► resync of a cluster, or its failure ─► its alert, written if it changed
    tick  ─► the alerts that there are ─► metrics and log lines

A cluster that is silent or lost tells nobody, so each resync looks: it comes at its interval for
every cluster, also for one that does not answer.
"""

from __future__ import annotations

from contextlib import suppress

from bellhop.clusters.alert import Alert
from bellhop.diagnosis.overview import ENDING, health
from bellhop.errors import BellhopError
from bellhop.installation.installation import Installation
from bellhop.state.consumer import Stage
from bellhop.state.messages import Envelope, Resync

_BAD = frozenset({"Down", "Unauthorized", "Silent"})


class ClusterAlerts:
    """The sweep stage, and after each of its resyncs the alert of the cluster."""

    def __init__(self, here: Installation, sweep: Stage) -> None:
        self._here = here
        self._sweep = sweep

    def handle(self, message: Envelope) -> None:
        """Do one message's work, as the sweep stage says."""
        try:
            self._sweep.handle(message)
        finally:
            if isinstance(message, Resync):
                # No work fails for it; the next resync looks again.
                with suppress(BellhopError):
                    self._update(message.cluster)

    def _update(self, cluster: str) -> None:
        """Write the alert of a cluster if it changed; of a forgotten one nothing is known."""
        found = health(self._here, cluster)
        now, ends_at = self._here.records.clock.now(), found.ends_at
        alert = Alert(
            found.state if found.state in _BAD else "",
            ends_at if ends_at and ends_at - now < ENDING else None,
        )
        if alert != self._here.records.alerts.get(cluster):
            self._here.records.alerts.put(cluster, alert)
