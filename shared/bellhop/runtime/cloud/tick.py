"""Each tick of a cloud's timer: publish due messages, report alerts, answer Terraform's question.

Terraform asks before it destroys an installation, as the modules' `guard.tf` say. `bellhop serve`
has gauges in place of the alerts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from bellhop import __version__
from bellhop.clusters.alert import HELD
from bellhop.core.attempts import Failures
from bellhop.errors import PermanentError
from bellhop.logs import Log
from bellhop.runtime.cloud.ready import Ready
from bellhop.runtime.cloud.resources import Resources
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.schedule import SPELL, Schedule, Ticked
from bellhop.state.timers import SKEW
from bellhop.state.worker_pool import WorkerPool

Here = TypeVar("Here", bound=Resources)

MOST_ALERTS = 1000
"""Records of each kind that a tick reads; more are not counted."""


def report_alerts(here: Resources) -> None:
    """Report clusters and promotions that need attention, and held deletions, if there are any."""
    found: dict[str, list[str]] = {}
    for key, alert in here.records.alerts.first(MOST_ALERTS):
        for name in alert.names:
            # A promotion is counted, and not named: the label is that of a cluster.
            found.setdefault(name, []).append("" if alert.stages else key)
    held = [each.cluster for each in here.records.holds.all(most=MOST_ALERTS) if each.held_at]
    # A change of manifests is held for all clusters together.
    held += ["" for _ in here.records.removals.all(most=MOST_ALERTS)]
    if held:
        found[HELD] = held
    for name, clusters in found.items():
        here.report_alert(name, len(clusters), _first_names(here, clusters))


def _first_names(here: Resources, clusters: list[str]) -> list[str]:
    """Return the clusters that metrics name, each once: every name costs a metric."""
    return [each for each in dict.fromkeys(clusters) if each][: here.settings.named_clusters]


_ON_TIME = timedelta(minutes=2)

HELPERS = 15
"""Threads that help a tick: nearly all of a timer's time is waiting for a cloud."""


class Due:
    """The work of a tick: due messages, and declarations that a killed process left.

    The heartbeat comes first, and delayed messages come before timers, of which a fleet may have
    more than one tick publishes. A step that fails keeps no other from being done.

    Few ticks find an abandoned declaration. So the code that finishes it, with all kinds of
    manifests, is loaded by the tick that does.
    """

    def __init__(self, here: Resources, pool: WorkerPool | None = None) -> None:
        self._here = here
        self._records = here.records
        pool = pool or WorkerPool(HELPERS, at_one=HELPERS)
        self._schedule = Schedule(here.records, here.publisher, here.settings, here.log, pool)

    def tick(self) -> int:
        """Do what is due by now, and report the oldest pending work; return how many messages.

        Raises:
            Exception: a step failed, the first of them; all others were done.
        """
        failures, published, ticked = Failures(), 0, Ticked(0, None)
        until = self._records.clock.steady() + SPELL
        now, before = self._records.clock.now(), self._records.pulses.get()
        with failures.isolated("heartbeat"):
            self._beat(before, now, before.pending if before else None)
        with failures.isolated("delayed messages"):
            published = self.publish_delayed()
        ahead = before is not None and before.at > now + SKEW
        with failures.isolated("timers"):
            ticked = self._schedule.tick(until=until, ahead=ahead)
        with failures.isolated("declarations"):
            if self._records.pending.abandoned():
                self._finish()
        with failures.isolated("pending work"):
            self._report(before, ticked.earliest, now)
        with failures.isolated("the rest"):
            self.conclude()
        failures.end()
        return published + ticked.published

    def publish_delayed(self) -> int:
        """Publish messages whose pause is over, where no queue does; return how many."""
        return 0

    def conclude(self) -> None:
        """Do other work of a cloud at each tick."""

    def _beat(self, before: WorkerHeartbeat | None, at: datetime, pending: datetime | None) -> None:
        self._records.pulses.tick(before, at, __version__, pending)

    def _report(
        self, before: WorkerHeartbeat | None, earliest: datetime | None, now: datetime
    ) -> None:
        """Report since when the oldest work waits: the heartbeat had what was known before."""
        pending = self._oldest_pending(earliest, now)
        if pending != (before.pending if before else None):
            self._beat(before, self._records.clock.now(), pending)

    def _oldest_pending(self, earliest: datetime | None, now: datetime) -> datetime | None:
        """Return since when the oldest work waits: a timer that was late, or a retried message.

        Work that waits for less than two ticks is on time, and is not reported.
        """
        found = [at for at in (earliest, self._records.retries.oldest()) if at]
        oldest = min(found, default=now)
        if now - oldest < _ON_TIME:
            return None
        self._here.report_pending(now - oldest)
        return oldest

    def _finish(self) -> None:
        from bellhop.catalog.cache import Catalogs  # noqa: PLC0415 - dear, as above
        from bellhop.declarations.apply import ManifestWriter  # noqa: PLC0415

        catalogs = Catalogs(self._records)
        ManifestWriter(self._records, catalogs, self._here.publisher, self._here.settings).resume()


class Ticker:
    """Does what is due at each tick.

    A tick that comes twice, or at once with another, publishes a message twice at worst; one that
    is lost or fails is corrected by the next. One that fails says so to the cloud, which counts it.
    """

    def __init__(self, make: Callable[[Here], Due], opening: Callable[[], Here]) -> None:
        ready = Ready(make, opening)
        self._ready: Ready[Resources, Due] = ready

    def __call__(self, event: Mapping[str, Any], _context: object = None) -> dict[str, Any]:
        """Do what is due; return how much that was.

        Raises:
            PermanentError: Terraform is about to destroy what clusters are registered in.
        """
        if "terraform" in event:
            if event["terraform"]["action"] == "delete" and not event["destroy_with_clusters"]:
                _allow_destroying(self._ready.get()[0])
            return {}
        failures, done = Failures(), 0
        with failures.isolated("installation"):
            here, due = self._ready.get()
            with failures.isolated("what is due"):
                done = due.tick()
            with failures.isolated("alerts"):
                report_alerts(here)
            if done:
                here.log.info("Published what is due", messages=done)
            # Also where a step failed: metrics of waiting work are needed most then.
            here.end()
        try:
            failures.end()
        except Exception as error:
            Log().error("Cannot do what is due", error)
            raise
        return {"published": done}


def _allow_destroying(here: Resources) -> None:
    """Raise while clusters are registered.

    One that is registered just afterwards is not seen: nobody registers what he destroys.
    """
    names = sorted(each.key for each in here.records.clusters.all())
    if names:
        raise PermanentError(
            f"cannot destroy the installation: clusters are registered, such as '{names[0]}';"
            " deregister all that `bellhop get clusters` lists, or apply destroy_with_clusters ="
            " true before"
        )
