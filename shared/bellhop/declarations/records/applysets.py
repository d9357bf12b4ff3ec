"""Which applysets are being applied: one apply at a time, as one must not prune another's objects.

  acquire ─► objects are stored ─► renew ─► what left the folder is deleted ─► release

An apply that was killed keeps its lease until it expires. One that lasts longer finds at `renew`
that it has lost it, and prunes nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from bellhop.errors import BusyError, StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, Store
from bellhop.state.table import Table

LEASE = timedelta(minutes=5)


class Lease(Struct, frozen=True):
    """Since when an applyset is being applied, and until when no other apply of it begins."""

    since: datetime
    until: datetime


class ApplySetLeases:
    """Leases of applysets, by name."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._table = Table(store, Lease)
        self._clock = clock

    def acquire(self, name: str) -> str:
        """Begin to apply an applyset; return the token that `renew` and `release` need.

        Raises:
            BusyError: another apply of it is under way.
        """
        try:
            return self._put(name, ABSENT)
        except StaleError:
            kept = self._table.get(*_place(name))
        until = f" It ends by {_clock(kept.value.until)}, if it was killed." if kept else ""
        raise BusyError(
            f"cannot apply applyset '{name}': another apply of it is under way; try again.{until}"
        )

    def renew(self, name: str, token: str) -> str:
        """Keep the lease for as long again, and return its new token.

        Raises:
            StaleError: it has expired, or another apply has it.
        """
        return self._put(name, token)

    def release(self, name: str, token: str) -> None:
        """Let others apply it; a lease that was lost is left unchanged."""
        try:
            self._store.delete(*_place(name), expect=token)
        except StaleError:
            return

    def _put(self, name: str, expect: str) -> str:
        now = self._clock.now()
        lease = Lease(now, now + LEASE)
        return self._table.put(*_place(name), lease, expect=expect, expires_at=lease.until)


def _place(name: str) -> tuple[str, str]:
    return "applyset", name


def _clock(at: datetime) -> str:
    return at.strftime("%H:%M:%SZ")
