"""Circuit breaker of clusters that do not answer: one probe replaces the calls of all workers.

    a call fails ─► does any other succeed? ─► no: timer ─► circuit open      workers wait
    timer ─► probe ─► no answer: timer, later ─► circuit open until then
                   └► an answer: closing ─► waiting profiles and a resync published ─► no circuit

Otherwise each of a thousand profiles would find out by a time-out of its own. A call that fails
although the cluster answers others opens nothing.

A waiting profile has a status that says so, written before the circuit is read again; the probe
closes the circuit before it reads statuses. So one of the two sees the other. If a worker dies
while closing, the timer fires again, as it does as long as there is a circuit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.errors import (
    AwayError,
    BellhopError,
    StaleError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.logs import Log
from bellhop.ports.kube import Access
from bellhop.ports.store import ABSENT
from bellhop.settings import Settings
from bellhop.state.cluster import Circuit
from bellhop.state.delays import probe_timer, spread
from bellhop.state.messages import Apply, Probe, Publisher, Resync
from bellhop.state.records import Records
from bellhop.state.table import Stored

_DOUBLINGS = 16
_TRUSTED = timedelta(seconds=1)
_NAMESPACE = GVK("", "v1", "Namespace")


class Circuits:
    """Refuses calls to clusters that do not answer, and publishes the waiting work once they do."""

    def __init__(
        self, records: Records, access: Access, publisher: Publisher, settings: Settings, log: Log
    ) -> None:
        self._records = records
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._closed: dict[str, timedelta] = {}

    def check(self, cluster: str) -> None:
        """Refuse a cluster that is known not to answer; a closed circuit is trusted for a second.

        Raises:
            AwayError: the cluster does not answer; a probe asks it again.
        """
        now, closed_at = self._records.clock.steady(), self._closed.get(cluster)
        if closed_at is None or now - closed_at > _TRUSTED:
            self.refuse_away(cluster)
            self._closed[cluster] = now

    def refuse_away(self, cluster: str) -> None:
        """Keep off a cluster that is known not to answer.

        Raises:
            AwayError: it is; a probe asks it again.
        """
        kept = self._records.circuits.get(cluster)
        if kept and not kept.value.closing:
            raise _away(cluster, kept.value)

    def call(self, cluster: str, work: Callable[[], None]) -> None:
        """Run work that calls a cluster, and note if the cluster does not answer or refuses us.

        Raises:
            AwayError: the cluster does not answer; a probe asks it again.
            TemporaryError: the work failed, although the cluster answers.
        """
        self.refuse_away(cluster)
        try:
            work()
        except UnreachableError:
            self.doubt(cluster)
            raise
        except UnauthorizedError as error:
            self.note_refusal(cluster, error)
            raise

    def doubt(self, cluster: str) -> None:
        """Call a cluster for the least that every one serves; open the circuit if that fails, too.

        Raises:
            AwayError: the cluster answers no call.
        """
        self.refuse_away(cluster)
        kept = self._records.circuits.get(cluster)
        said = self._ask(cluster)
        if said:
            self._open(cluster, kept, said)
            # Only if it is so: it may have been closed in the meantime.
            self.refuse_away(cluster)

    def note_refusal(self, cluster: str, error: UnauthorizedError) -> None:
        """Record that a cluster refuses our credentials; the next resync tries them again."""
        kept = self._records.health.get(cluster)
        if kept.value.state != "Unauthorized":
            now = self._records.clock.now()
            health = replace(kept.value, state="Unauthorized", message=str(error), since=now)
            with suppress(StaleError):
                self._records.health.put(cluster, health, expect=kept.token)

    def probe(self, message: Probe) -> None:
        """Call a cluster whose circuit is open; if it answers, publish all waiting work."""
        cluster = message.cluster
        # Read first: a worker that opens the circuit again sets another timer, which stays.
        timer = self._records.timers.get(probe_timer(cluster))
        kept = self._records.circuits.get(cluster)
        said = self._ask(cluster) if kept and not kept.value.closing else ""
        with suppress(StaleError):
            if kept and said:
                self._open(cluster, kept, said)
                return
            if kept:
                self._close(cluster, kept)
            if timer:
                self._records.timers.cancel(probe_timer(cluster), expect=timer.token)

    def _ask(self, cluster: str) -> str:
        """Call for an object that every API server has; return the error if there was no answer."""
        record = self._records.clusters.get(cluster)
        if record is None:
            return ""
        version = record.value.credentials
        try:
            self._access.open(cluster, version=version).get(_NAMESPACE, "", "kube-system")
        except UnreachableError as error:
            return str(error)
        except BellhopError:
            # A refusal is an answer.
            return ""
        return ""

    def _open(self, cluster: str, kept: Stored[Circuit] | None, said: str) -> None:
        """Open a circuit, or keep it open for longer; a quicker writer has done the same."""
        now = self._records.clock.now()
        failures = kept.value.failures + 1 if kept else 1
        pause = self._settings.retry_first * 2 ** min(failures - 1, _DOUBLINGS)
        until = now + spread(cluster, min(pause, self._settings.retry_longest))
        circuit = Circuit(min(kept.value.since, now) if kept else now, until, said, failures)
        self._closed.pop(cluster, None)
        self._records.timers.set(probe_timer(cluster), until, Probe(cluster).message().body)
        with suppress(StaleError):
            self._records.circuits.put(cluster, circuit, expect=kept.token if kept else ABSENT)
            if kept is None:
                self._log.warning("A cluster does not answer", cluster=cluster, error=said)

    def _close(self, cluster: str, kept: Stored[Circuit]) -> None:
        """Close a circuit, and publish the work that waits for it.

        Raises:
            StaleError: it was opened again meanwhile.
        """
        token = kept.token
        if not kept.value.closing:
            closing = replace(kept.value, closing=True)
            token = self._records.circuits.put(cluster, closing, expect=token)
        waiting = [
            Apply(each.trigger, each.source, each.profile, cluster)
            for each in self._records.outcomes.of(cluster)
            if each.reason == AwayError.code or each.retry_at
        ]
        # Objects of hints during the outage were not read back.
        self._publisher.publish([*waiting, Resync(cluster)])
        self._records.circuits.delete(cluster, expect=token)
        self._log.info("A cluster answers again", cluster=cluster, waiting=len(waiting))


def _away(cluster: str, circuit: Circuit) -> AwayError:
    return AwayError(
        f"cannot reach '{cluster}': it has not answered since {circuit.since:%Y-%m-%d %H:%M:%S} UTC"
        f" ({circuit.said}); what waits for it goes on once it does"
    )
