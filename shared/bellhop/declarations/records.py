"""Tables of declarations: leases of applysets, and held removals until they are released."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct

from bellhop.errors import BusyError, StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, Item, Store
from bellhop.state.table import Stored, Table


class HeldRemoval(Struct, frozen=True):
    """The add-ons of one trigger or profile that stay although nothing declares them."""

    trigger: str
    profile: str
    profiles: int
    """Profiles that would be removed from some cluster."""
    addons: int
    """Profiles times clusters that would be removed."""
    of: int
    """All of the rule's, counted alike."""
    number: int
    """Clusters that they would be removed from."""
    clusters: tuple[str, ...]
    """The first of these, by name."""
    change: str = ""
    """The command or decision that would remove them; empty if it is only foreseen."""
    cause: str = ""
    """Its description."""
    since: datetime | None = None

    @property
    def rule(self) -> tuple[str, str]:
        """Return the trigger or the profile: one of the two names is empty."""
        return self.trigger, self.profile


LEASE = timedelta(minutes=5)


class Lease(Struct, frozen=True):
    """Since when an applyset is being applied, and until when no other apply of it begins."""

    since: datetime
    until: datetime


class ApplySetLeases(Table[Lease, str]):
    """Leases of applysets, by name: one apply at a time, as none may prune another's objects.

      acquire ─► objects are stored ─► renew ─► objects that left the folder are deleted ─► release

    An apply that was killed keeps its lease until it expires. One that lasts longer finds at
    `renew` that it has lost it, and prunes nothing.
    """

    kind = Lease
    partition, sort = "applyset", "{name}"

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock

    def expiry(self, lease: Lease) -> datetime:
        """Expire with the lease."""
        return lease.until

    def acquire(self, name: str) -> str:
        """Begin to apply an applyset; return the token that `renew` and `release` need.

        Raises:
            BusyError: another apply of it is under way.
        """
        try:
            return self.renew(name, ABSENT)
        except StaleError:
            kept = self.get(name)
        ends = f" It ends by {kept.value.until:%H:%M:%SZ}, if it was killed." if kept else ""
        raise BusyError(
            f"cannot apply applyset '{name}': another apply of it is under way; try again.{ends}"
        )

    def renew(self, name: str, token: str) -> str:
        """Keep the lease for as long again, and return its new token.

        Raises:
            StaleError: it has expired, or another apply has it.
        """
        now = self._clock.now()
        return self.put(name, Lease(now, now + LEASE), expect=token)

    def release(self, name: str, token: str) -> None:
        """Let others apply it; a lease that was lost is left unchanged."""
        with suppress(StaleError):
            self.delete(name, expect=token)


Rule = tuple[str, str]
"""A trigger and no profile, or the other way round."""


class HeldRemovals(Table[HeldRemoval, Rule]):
    """Held removals, by the trigger or profile whose add-ons stay.

    There are as many as rules that a mistake concerns: mostly none. They are written before the
    change, so that no worker sees the change without them.
    """

    kind = HeldRemoval
    partition, sort = "removal", "{rule}"

    def place(self, rule: Rule) -> tuple[str, str]:
        """Return the place of what is held of a rule."""
        return "removal", _sort(rule)

    def all(self, *, most: int | None = None) -> Iterator[Stored[HeldRemoval]]:
        """Yield all that is held, triggers after profiles, as far as `most`."""
        return (held for _, held in self.rows(limit=most))

    def leave(self, rule: Rule, cluster: str, addons: int, until: datetime) -> None:
        """Record until when add-ons that a change of one cluster removes count as one removal."""
        item = Item(f"removed/{_sort(rule)}", cluster, {"addons": addons}, expires_at=until)
        self._store.put(item)

    def left(self, rule: Rule) -> Iterator[int]:
        """Yield how many add-ons of a rule changes of single clusters removed a moment ago."""
        return (item.value["addons"] for item in self._store.query(f"removed/{_sort(rule)}"))


def _sort(rule: Rule) -> str:
    trigger, profile = rule
    return f"trigger/{trigger}" if trigger else f"profile/{profile}"
