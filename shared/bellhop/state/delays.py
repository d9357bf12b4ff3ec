"""When things happen again: pauses that spread, and the names of what is timed."""

from __future__ import annotations

import hashlib
from datetime import timedelta

RENEWAL_PAUSE = timedelta(minutes=10)
"""Between two tries to renew a cluster that cannot be renewed."""


PROBE_PAUSE = timedelta(minutes=1)
"""After which a probe of which nothing was heard is made again."""


def spread(name: str, pause: timedelta) -> timedelta:
    """Return a pause up to a tenth shorter or longer, always the same for a name.

    It keeps a fleet that was registered at once from being listed at once for ever.
    """
    share = int.from_bytes(hashlib.sha256(name.encode()).digest()[:2]) / 0xFFFF
    return pause * (0.9 + 0.2 * share)


def sweep_timer(cluster: str) -> str:
    """Name the timer of a cluster's sweeps."""
    return f"sweep/{cluster}"


def granted_timer(cluster: str) -> str:
    """Name the timer of the sweep that sees by rights which were just given in a cluster."""
    return f"granted/{cluster}"


def assessment_timer(cluster: str, source: str) -> str:
    """Name the timer of a health check whose script wants to look again."""
    return f"assess/{cluster}/{source}"


def classify_timer(cluster: str) -> str:
    """Name the timer of what classifiers take away from a cluster later."""
    return f"classify/{cluster}"


def notice_timer(cluster: str) -> str:
    """Name the timer of what people are still to be told of a cluster."""
    return f"notice/{cluster}"


def renewal_timer(cluster: str) -> str:
    """Name the timer of what has to be done next so that a cluster goes on ringing."""
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


def retry_timer(cluster: str, profile: str) -> str:
    """Name the timer of the next try to apply a profile to a cluster."""
    return f"apply/{cluster}/{profile}"
