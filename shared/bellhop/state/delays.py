"""Times of repeated work: pauses that spread, names of timers, and rests after long work."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from datetime import datetime, timedelta

from bellhop.ports.clock import Clock

RENEWAL_PAUSE = timedelta(minutes=10)
"""Between two tries to renew a cluster that cannot be renewed."""


PROBE_PAUSE = timedelta(minutes=1)
"""The time after which an unanswered probe is repeated."""


def spread(name: str, pause: timedelta) -> timedelta:
    """Return a pause up to a tenth shorter or longer, always the same for a name.

    It keeps a fleet that was registered at once from being listed at once for ever.
    """
    share = int.from_bytes(hashlib.sha256(name.encode()).digest()[:2]) / 0xFFFF
    return pause * (0.9 + 0.2 * share)


def sweep_timer(cluster: str) -> str:
    """Name the timer of a cluster's resyncs."""
    return f"sweep/{cluster}"


def granted_timer(cluster: str) -> str:
    """Name the timer of the resync that follows new rights in a cluster."""
    return f"granted/{cluster}"


def assessment_timer(cluster: str, source: str) -> str:
    """Name the timer of a health check whose script asks to run again."""
    return f"assess/{cluster}/{source}"


def classify_timer(cluster: str) -> str:
    """Name the timer of what classifiers take away from a cluster later."""
    return f"classify/{cluster}"


def notice_timer(cluster: str) -> str:
    """Name the timer of pending notices about a cluster."""
    return f"notice/{cluster}"


def renewal_timer(cluster: str) -> str:
    """Name the timer of the next renewal that keeps a cluster sending events."""
    return f"renew/{cluster}"


def probe_timer(cluster: str) -> str:
    """Name the timer of the next probe of a cluster that does not answer."""
    return f"probe/{cluster}"


def hold_timer(cluster: str, source: str) -> str:
    """Name the timer of the next look at what ended at once in a report."""
    return f"hold/{cluster}/{source}"


def loop_timer(trigger: str, cluster: str, profile: str) -> str:
    """Name the timer of the next turn of a profile that feeds itself."""
    return f"loop/{trigger}/{cluster}/{profile}"


def drift_timer(cluster: str, profile: str, key: str) -> str:
    """Name the timer after which an object that two fight over is put back."""
    return f"drift/{cluster}/{profile}/{key}"


def opening_timer(trigger: str, cluster: str) -> str:
    """Name the timer after which events of a paused cluster count again for a trigger."""
    return f"open/{cluster}/{trigger}"


def promotion_timer(name: str) -> str:
    """Name the timer of the next look at the stages of a promotion."""
    return f"promotion/{name}"


def promotion_notice_timer(name: str) -> str:
    """Name the timer of the notifications of a promotion that could not be sent yet."""
    return f"promotion-notice/{name}"


def counting_timer(name: str) -> str:
    """Name the timer by which the clusters of a promotion are counted again."""
    return f"counting/{name}"


def retry_timer(cluster: str, profile: str) -> str:
    """Name the timer of the next try to apply a profile to a cluster."""
    return f"apply/{cluster}/{profile}"


_TIMES = 3
"""The pause after a piece of work, in multiples of the time that it took."""

_LONGEST = timedelta(seconds=15)
"""A worker that was frozen while it worked keeps what is newer no longer than this."""


class Debounce:
    """Pauses after work that takes long, so that a burst of changes is worked on a few times.

    The first change is processed at once; those that come meanwhile wait, and are then processed
    once. One process knows its own work of the last minutes.
    """

    def __init__(self, clock: Clock, long: timedelta) -> None:
        self._clock = clock
        self._long = long
        self._rests: dict[Hashable, tuple[datetime, timedelta]] = {}

    def begin(self, place: Hashable, begun: datetime) -> None:
        """Let a piece of work rest that was begun then and is done now, if it took long."""
        now = self._clock.now()
        if now - begun > self._long:
            self._rests[place] = now, min((now - begun) * _TIMES, _LONGEST)

    def left(self, place: Hashable) -> timedelta | None:
        """Return how long a piece of work is still to rest; None if it need not."""
        ended, rest = self._rests.pop(place, (None, timedelta(0)))
        if ended is None:
            return None
        left = ended + rest - self._clock.now()
        # A clock that was ahead must not hold this for long.
        if not timedelta(0) < left <= rest:
            return None
        self._rests[place] = ended, rest
        return left
