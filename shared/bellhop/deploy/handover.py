"""Transfers objects that a profile is about to remove to the profiles that wait for them.

    their inventory has the object, as it was applied ─► they own it ─► they are published

So an object that changes owners keeps its uid. The inventory comes first: a worker that dies in
between leaves an entry of an object that another profile owns, which its own profile drops or
takes over. A profile that no longer has the object in its manifests removes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.concurrency import until_written
from bellhop.state.deployment import Held, Inventory, Owner
from bellhop.state.messages import Apply, Publisher
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored
from bellhop.state.worker_pool import WorkerPool

_Who = tuple[str, str, str]
"""A profile's trigger, source cluster and name."""

_Found = dict[Identity, tuple[Held, Stored[Owner]]]
"""Objects with how they are held, and who owns them."""


class Removal(Protocol):
    """A step that would remove an object; both sorts of features have one."""

    @property
    def key(self) -> Identity:
        """Name the object."""

    @property
    def held(self) -> Held:
        """Say how it is held."""


class Transfer:
    """Gives objects to their next owners before the steps that would remove them."""

    def __init__(self, records: Records, publisher: Publisher, pool: WorkerPool) -> None:
        self._records = records
        self._publisher = publisher
        self._pool = pool

    def give(
        self, context: ReconcileContext, steps: Sequence[Removal]
    ) -> dict[Identity, Stored[Owner] | None]:
        """Hand over objects that other profiles wait for, and return the owners of the others.

        Raises:
            StaleError: other writers keep winning.
        """
        cluster, heads = context.cluster.key, dict[_Who, Profile | None]()
        found: dict[_Who, _Found] = {}
        owners, error = self._pool.each(
            lambda step: self._records.owners.get(cluster, step.key), steps, lambda: True
        )
        if error:
            raise error
        for step, owner in zip(steps, owners, strict=True):
            if owner is None or owner.value.profile != context.profile.name:
                continue
            heir = self._heir(cluster, owner.value, heads)
            if heir:
                found.setdefault(heir, {})[step.key] = step.held, owner
        kept = {step.key: owner for step, owner in zip(steps, owners, strict=True)}
        for heir, objects in found.items():
            self._hand(cluster, heads[heir], objects)
            kept = {key: owner for key, owner in kept.items() if key not in objects}
        return kept

    def _heir(self, cluster: str, owner: Owner, heads: dict[_Who, Profile | None]) -> _Who | None:
        """Return the profile that has waited longest of those that deploy to the cluster."""
        for who in owner.waiting:
            if who not in heads:
                kept = self._records.profiles.head(*who)
                heads[who] = kept.value if kept else None
            head = heads[who]
            if head and cluster in head.destinations and head.sync != "DryRun" and not head.paused:
                return who
        return None

    def _hand(self, cluster: str, heir: Profile | None, objects: _Found) -> None:
        assert heir
        # The fields of an object that another profile applied are uncertain.
        given = {key: replace(held, digest="", secret=True) for key, (held, _) in objects.items()}
        self._enter(cluster, heir.name, given)
        who = heir.trigger, heir.cluster, heir.name
        handed = []
        for key, (_, owner) in objects.items():
            rest = tuple(each for each in owner.value.waiting if each != who)
            to_notify = tuple(dict.fromkeys((*owner.value.tell, who)))
            new = Owner(heir.name, heir.trigger, heir.cluster, heir.tier, rest, to_notify)
            with suppress(StaleError):
                # Another profile has claimed it, or waits since: the operation reads it again.
                self._records.owners.put(cluster, key, new, expect=owner.token)
                handed.append(key)
        if handed:
            self._publisher.publish([Apply(*who, cluster, contested=str(handed[0]))])

    @until_written("hand objects to '{profile}'")
    def _enter(self, cluster: str, profile: str, given: Mapping[Identity, Held]) -> None:
        """Write objects into an inventory, and end the lease on it.

        A worker that holds it finds its next write refused, and adds what it did as uncertain.
        """
        kept = self._records.inventories.get(cluster, profile)
        old = kept.value if kept else Inventory(cluster, profile, {})
        new = replace(old, held={**given, **old.held}, worker="", until=None)
        self._records.inventories.put(new, expect=kept.token if kept else ABSENT)
