"""Who is at work on a profile in a cluster: the inventory is a lease and its own fence.

    inventory: "held by me until …, these have begun" ─► work ─► inventory: "held"

Every write of it is conditional on the one before. A process killed in between has written down
what it may have applied, so that the next neither forgets nor repeats: server-side apply of the
same object changes nothing. Should two believe to hold it, the one whose write fails adds what it
did as unsure, and the next try puts it in order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.errors import BusyError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.settings import Settings
from bellhop.state.concurrency import until_written
from bellhop.state.record import Held, Inventory
from bellhop.state.records import Records

_LONGEST = 2
"""Times the visibility for which a lease is believed: the clocks of two processes may differ."""


class Peers(Struct, frozen=True):
    """The processes that work on the same records: our badge, and whether that of one is alive.

    Where nobody can say, all are taken for alive. Who has a badge does all work in one process.
    """

    badge: str = ""
    lives: Callable[[str], bool] = lambda _: True

    @property
    def alone(self) -> bool:
        """Return whether one process does all work, with the schedule in it."""
        return bool(self.badge)


UNKNOWN = Peers()


class Leases:
    """Leases of inventories; what a dead process holds is free."""

    def __init__(self, records: Records, settings: Settings, peers: Peers) -> None:
        self._peers = peers
        self._records = records
        self._settings = settings

    def refuse_busy(self, inventory: Inventory) -> None:
        """Keep off what another worker holds.

        Most leases are released long before their end, so the queue's own pauses apply.

        Raises:
            BusyError: one does, and its time is not over.
        """
        now = self._records.clock.now()
        left = inventory.until - now if inventory.worker and inventory.until else timedelta(0)
        # Nobody may hold it for that long: a clock that was ahead has said until when.
        late = left > _LONGEST * self._settings.visibility
        lives = not late and self._peers.lives(inventory.worker.partition(".")[0])
        if left > timedelta(0) and lives:
            raise BusyError(
                f"cannot apply '{inventory.profile}' to '{inventory.cluster}': another worker is"
                " at it"
            )

    def take(self, work: ReconcileContext, begun: Mapping[Identity, Held]) -> None:
        """Say that we are at work, and what may be applied or removed from now on.

        Nothing of that is certain any more: we may die before we can tell. Our turn begins now,
        however long it took to know what is to be done.

        Raises:
            StaleError: another worker was quicker.
        """
        work.before, work.held = dict(work.held), dict(begun)
        work.worker = f"{self._peers.badge}.{os.urandom(4).hex()}"
        work.begun_at = self._records.clock.now()
        until = work.begun_at + self._settings.visibility
        inventory = Inventory(work.cluster.key, work.profile.name, work.held, work.worker, until)
        work.token = self._records.inventories.put(inventory, expect=work.token)

    def give_up(self, work: ReconcileContext) -> None:
        """Say what is held, and that nobody is at work any more.

        Raises:
            StaleError: another worker has taken it meanwhile; what both did is noted.
        """
        inventory = Inventory(work.cluster.key, work.profile.name, work.held)
        try:
            work.token = self._records.inventories.put(inventory, expect=work.token)
        except StaleError:
            self._add(work)
            raise

    @until_written("add to what '{work.profile.name}' has in '{work.cluster.key}'")
    def _add(self, work: ReconcileContext) -> None:
        """Note what another worker and we did, so that the next try puts it in order.

        It claims what it applies again, and removes what is nobody's. Our lease ends with it; that
        of another worker does not.
        """
        kept = self._records.inventories.get(work.cluster.key, work.profile.name)
        there = kept.value if kept else Inventory(work.cluster.key, work.profile.name, {})
        token = kept.token if kept else ABSENT
        both = {**there.held, **work.held}
        unsure = {
            key: held
            if there.held.get(key) == work.held.get(key)
            else replace(held, digest="", uid="", secret=True)
            for key, held in both.items()
        }
        ended = {"worker": "", "until": None} if there.worker == work.worker else {}
        self._records.inventories.put(replace(there, held=unsure, **ended), expect=token)
