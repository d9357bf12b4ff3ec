"""Leases of profiles in clusters: an inventory is its own lease, and fences its writers.

    inventory: worker, until, uncertain objects ─► operations ─► inventory: objects

Every write is conditional on the one before. A process that is killed in between has stored the
objects that it may have applied, so that the next one misses none; to apply the same object again
changes nothing. If two workers believe that they hold the lease, the one whose write fails adds its
objects as uncertain, and the next attempt corrects them.
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
from bellhop.state.deployment import Held, Inventory
from bellhop.state.records import Records

_LONGEST = 2
"""Visibilities after which a lease is ignored: the clocks of two processes may differ."""


class Peers(Struct, frozen=True):
    """The processes that work on the same records: the badge of this one, and which are alive.

    A process has a badge only if it does all work; without one, all others count as alive.
    """

    badge: str = ""
    lives: Callable[[str], bool] = lambda _: True

    @property
    def is_single(self) -> bool:
        """True if one process does all work, the schedule included."""
        return bool(self.badge)


UNKNOWN = Peers()


class Leases:
    """Leases of inventories; those of a dead process are free."""

    def __init__(self, records: Records, settings: Settings, peers: Peers) -> None:
        self._peers = peers
        self._records = records
        self._settings = settings

    def check_free(self, inventory: Inventory) -> None:
        """Check that no other worker holds the lease.

        Most leases are released long before their end, so the queue's own delays apply.

        Raises:
            BusyError: another worker holds it, and its time is not over.
        """
        now = self._records.clock.now()
        left = inventory.until - now if inventory.worker and inventory.until else timedelta(0)
        # No lease is that long: a clock that was ahead wrote it.
        late = left > _LONGEST * self._settings.visibility
        lives = not late and self._peers.lives(inventory.worker.partition(".")[0])
        if left > timedelta(0) and lives:
            raise BusyError(
                f"cannot apply '{inventory.profile}' to '{inventory.cluster}': another worker is"
                " at it"
            )

    def acquire(self, context: ReconcileContext, begun: Mapping[Identity, Held]) -> None:
        """Acquire the lease, and store the objects that are uncertain from now on.

        The worker may die before it can store what it did. Its turn begins now, however long it
        took to plan.

        Raises:
            StaleError: another worker was quicker.
        """
        context.lease.before, context.progress.held = dict(context.progress.held), dict(begun)
        context.lease.worker = f"{self._peers.badge}.{os.urandom(4).hex()}"
        context.lease.begun_at = self._records.clock.now()
        until = context.lease.begun_at + self._settings.visibility
        inventory = Inventory(
            context.cluster.key,
            context.profile.name,
            context.progress.held,
            context.lease.worker,
            until,
        )
        context.lease.token = self._records.inventories.put(inventory, expect=context.lease.token)

    def release(self, context: ReconcileContext) -> None:
        """Release the lease, and store the objects.

        Raises:
            StaleError: another worker has acquired it meanwhile; the objects of both are stored.
        """
        inventory = Inventory(context.cluster.key, context.profile.name, context.progress.held)
        try:
            context.lease.token = self._records.inventories.put(
                inventory, expect=context.lease.token
            )
        except StaleError:
            self._add(context)
            raise

    @until_written("add to what '{context.profile.name}' has in '{context.cluster.key}'")
    def _add(self, context: ReconcileContext) -> None:
        """Add this worker's objects to those of another one, as uncertain.

        The next attempt claims the objects that it applies again, and removes the others. This
        worker's lease ends with the write; that of the other worker does not.
        """
        kept = self._records.inventories.get(context.cluster.key, context.profile.name)
        there = kept.value if kept else Inventory(context.cluster.key, context.profile.name, {})
        token = kept.token if kept else ABSENT
        both = {**there.held, **context.progress.held}
        unsure = {
            key: held
            if there.held.get(key) == context.progress.held.get(key)
            else replace(held, digest="", uid="", secret=True)
            for key, held in both.items()
        }
        ended = {"worker": "", "until": None} if there.worker == context.lease.worker else {}
        self._records.inventories.put(replace(there, held=unsure, **ended), expect=token)
