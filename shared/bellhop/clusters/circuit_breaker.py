"""Clusters that do not answer: one probe asks for all who wait.

    a call fails ─► does it answer at all? ─► no: timer ─► circuit open    whoever comes waits
    timer ─► probe ─► no answer: timer, later ─► circuit until then
                   └► answers: circuit closing ─► all who wait, and a sweep, published ─► no circuit

Otherwise each of a thousand profiles would find out for itself, a time-out each, that a cluster is
away. A call that fails though the cluster answers opens nothing: that is its own affair.

Who waits has an outcome that says so, written before the circuit is looked at again; the probe
closes the circuit before it looks for outcomes. So one of the two sees the other. Whoever dies
while closing is followed by the timer, which fires as long as there is a circuit.
"""

from __future__ import annotations

from contextlib import suppress

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
from bellhop.ports.access import Access
from bellhop.ports.store import ABSENT
from bellhop.settings import Settings
from bellhop.state.delays import probe_timer, spread
from bellhop.state.messages import Apply, Probe, Publisher, Resync
from bellhop.state.record import Circuit
from bellhop.state.records import Records
from bellhop.state.table import Stored

_DOUBLINGS = 16
_NAMESPACE = GVK("", "v1", "Namespace")


class Circuits:
    """Keeps off clusters that do not answer, and tells who waits once they do."""

    def __init__(
        self, records: Records, access: Access, publisher: Publisher, settings: Settings, log: Log
    ) -> None:
        self._records = records
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._log = log

    def refuse_away(self, cluster: str) -> None:
        """Keep off a cluster that is known not to answer.

        Raises:
            AwayError: it is; a probe asks it again.
        """
        kept = self._records.circuits.get(cluster)
        if kept and not kept.value.closing:
            raise _away(cluster, kept.value)

    def doubt(self, cluster: str) -> None:
        """Ask a cluster that did not answer a call for the least; keep all off if it fails again.

        Raises:
            AwayError: it does not answer, to nobody.
        """
        self.refuse_away(cluster)
        kept = self._records.circuits.get(cluster)
        said = self._ask(cluster)
        if said:
            self._open(cluster, kept, said)
            # Only if it is so: it may have been closed in the meantime.
            self.refuse_away(cluster)

    def note_refusal(self, cluster: str, error: UnauthorizedError) -> None:
        """Note that a cluster does not accept our credentials; the next sweep sees if it does."""
        kept = self._records.health.get(cluster)
        if kept.value.state != "Unauthorized":
            now = self._records.clock.now()
            health = replace(kept.value, state="Unauthorized", message=str(error), since=now)
            with suppress(StaleError):
                self._records.health.put(cluster, health, expect=kept.token)

    def probe(self, message: Probe) -> None:
        """Ask a cluster whether it answers again; if so, let all who wait go on."""
        cluster = message.cluster
        # Before all else: who opens it anew after that sets another one, which stays.
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
        """Ask for what every API server has; return what nobody answered, or nothing."""
        record = self._records.clusters.get(cluster)
        if record is None:
            return ""
        version = record.value.credentials
        try:
            self._access.open(cluster, version=version).get(_NAMESPACE, "", "kube-system")
        except UnreachableError as error:
            return str(error)
        except BellhopError:
            # Whoever refuses has answered.
            return ""
        return ""

    def _open(self, cluster: str, kept: Stored[Circuit] | None, said: str) -> None:
        """Open a circuit, or keep it open for longer; who was quicker has said the same."""
        now = self._records.clock.now()
        failures = kept.value.failures + 1 if kept else 1
        pause = self._settings.retry_first * 2 ** min(failures - 1, _DOUBLINGS)
        until = now + spread(cluster, min(pause, self._settings.retry_longest))
        circuit = Circuit(min(kept.value.since, now) if kept else now, until, said, failures)
        self._records.timers.set(probe_timer(cluster), until, Probe(cluster).message().body)
        with suppress(StaleError):
            self._records.circuits.put(cluster, circuit, expect=kept.token if kept else ABSENT)
            if kept is None:
                self._log.warning("A cluster does not answer", cluster=cluster, error=said)

    def _close(self, cluster: str, kept: Stored[Circuit]) -> None:
        """Let everybody call a cluster again, and tell those who waited.

        Raises:
            StaleError: it was opened anew meanwhile.
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
        # What rang while it was away was not read back.
        self._publisher.publish([*waiting, Resync(cluster)])
        self._records.circuits.delete(cluster, expect=token)
        self._log.info("A cluster answers again", cluster=cluster, waiting=len(waiting))


def _away(cluster: str, circuit: Circuit) -> AwayError:
    return AwayError(
        f"cannot reach '{cluster}': it has not answered since {circuit.since:%Y-%m-%d %H:%M:%S} UTC"
        f" ({circuit.said}); what waits for it goes on once it does"
    )
