"""A cluster that is known not to answer is not called: its circuit breaker is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from bellhop.clusters.circuit_breaker import Circuits
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.gates.gate import Gate
from bellhop.errors import AwayError, TemporaryError, UnauthorizedError, UnreachableError
from bellhop.ports.clock import Clock

_FRESH = timedelta(seconds=1)
"""A closed circuit breaker is not read again for so long: it saves calls, and guards nothing."""


class CircuitGate(Gate):
    """Refuses clusters that do not answer, and reports to the breaker those that stop to."""

    def __init__(self, circuits: Circuits, clock: Clock) -> None:
        self._circuits = circuits
        self._clock = clock
        self._read: dict[str, datetime] = {}

    def check(self, context: ReconcileContext) -> None:
        """Refuse a cluster that is known not to answer, as read within the last second.

        Raises:
            AwayError: it does not; a probe asks it again.
        """
        cluster, now = context.cluster.key, self._clock.now()
        read = self._read.get(cluster)
        if read and timedelta(0) <= now - read < _FRESH:
            return
        self._circuits.check(cluster)
        self._read[cluster] = now

    @contextmanager
    def report(self, context: ReconcileContext) -> Iterator[None]:
        """Report to the breaker a call that the cluster did not answer, or did not accept.

        Raises:
            AwayError: the cluster answers no other call, either.
        """
        try:
            yield
        except UnreachableError:
            self._read.pop(context.cluster.key, None)
            self._circuits.doubt(context.cluster.key)
            raise
        except UnauthorizedError as error:
            self._circuits.note_refusal(context.cluster.key, error)
            raise

    def recheck(self, context: ReconcileContext) -> None:
        """Read whether the probe could see by now that the profile waits.

        Raises:
            TemporaryError: the cluster answers again.
        """
        cluster = context.cluster.key
        try:
            self._circuits.check(cluster)
        except AwayError:
            return
        text = f"cannot apply '{context.profile.shown}' yet: '{cluster}' was away until now"
        raise TemporaryError(text, delay=timedelta(0))
