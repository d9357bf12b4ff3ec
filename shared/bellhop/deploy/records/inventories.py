"""What profiles hold in clusters: each one's inventory, each object's owner, and what is amiss."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.errors import MissingError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Store
from bellhop.state.concurrency import until_written
from bellhop.state.payloads import Payloads, Sealed
from bellhop.state.record import Held, Inventory, Orphan, Owner
from bellhop.state.table import Stored, Table, decode, encode

_REMEMBERED = timedelta(days=7)


class Noted(NamedTuple):
    """What was found once, and whether that is remembered for long yet."""

    finding: Orphan
    lasts: bool


class Owners:
    """Which profile has an object, by cluster and object."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Owner)

    def get(self, cluster: str, key: Identity) -> Stored[Owner] | None:
        """Read who owns an object."""
        return self._table.get(f"owner/{cluster}", str(key))

    def of(
        self, cluster: str, prefix: str = "", *, after: str = ""
    ) -> Iterator[tuple[Identity, Owner]]:
        """Yield the objects of a cluster that are owned, each with who owns it, by object.

        Only those whose text begins with `prefix` and comes `after` another one.
        """
        for item in self._table.items(f"owner/{cluster}", prefix, after):
            yield Identity.parse(item.sort), self._table.read(item.value)

    def put(self, cluster: str, key: Identity, owner: Owner, *, expect: str | None = ANY) -> str:
        """Write who owns an object, and return the token.

        Raises:
            StaleError: somebody else was quicker.
        """
        return self._table.put(f"owner/{cluster}", str(key), owner, expect=expect)

    def delete(self, cluster: str, key: Identity, *, expect: str | None = ANY) -> bool:
        """Give an object up; say whether anybody had it.

        Raises:
            StaleError: somebody else was quicker.
        """
        return self._store.delete(f"owner/{cluster}", str(key), expect=expect)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"owner/{cluster}"):
            self._store.delete(item.partition, item.sort)


class Inventories:
    """What each profile owns, by cluster and profile."""

    def __init__(self, payloads: Payloads, owners: Owners) -> None:
        self._payloads = payloads
        self._owners = owners

    def get(self, cluster: str, profile: str) -> Stored[Inventory] | None:
        """Read what a profile owns in a cluster.

        An inventory whose payload is lost is made up from the owners: of each object it is known
        that it may have been applied, and no more, so that it is applied again or removed.
        """
        item = self._payloads.store.get(f"inventory/{cluster}", profile)
        if item is None:
            return None
        try:
            found = self._payloads.open(item)
        except MissingError:
            return Stored(self._made_up(cluster, profile), item.token)
        return Stored(_inventory(cluster, found), found.item.token) if found else None

    def of(self, cluster: str) -> Iterator[Inventory]:
        """Yield all inventories of a cluster, as `get` would read them."""
        for item in self._payloads.store.query(f"inventory/{cluster}"):
            kept = self.get(cluster, item.sort)
            if kept:
                yield kept.value

    def put(self, inventory: Inventory, *, expect: str | None = ANY) -> str:
        """Write an inventory and return its token; an empty one is deleted, and has ABSENT.

        Raises:
            StaleError: something else than `expect` is there.
        """
        partition, sort = f"inventory/{inventory.cluster}", inventory.profile
        if not inventory.held and not inventory.worker:
            self._payloads.delete(partition, sort, expect=expect)
            return ABSENT
        head = encode(inventory, omit=("cluster", "profile", "held"))
        payload = {str(key): encode(each) for key, each in inventory.held.items()}
        return self._payloads.put(partition, sort, head, payload, expect=expect)

    @until_written("doubt what '{profile}' holds")
    def doubt(
        self,
        cluster: str,
        profile: str,
        now: datetime | None,
        keys: Collection[Identity] | None = None,
    ) -> bool:
        """Take it for unsure that these objects, or all, are as they were applied.

        False if a worker is at it `now`, or if there is nothing to doubt. Without a time whoever
        is at it finds its next write refused.

        Raises:
            StaleError: other writers keep winning.
        """
        kept = self.get(cluster, profile)
        if kept is None or (now and (kept.value.until or now) > now):
            return False
        held = kept.value.held
        doubted = {key for key in held if keys is None or key in keys}
        unsure = {
            key: replace(each, digest="", uid="") if key in doubted else each
            for key, each in held.items()
        }
        if unsure != held:
            self.put(replace(kept.value, held=unsure), expect=kept.token)
        return bool(doubted)

    def _made_up(self, cluster: str, profile: str) -> Inventory:
        owned = (key for key, owner in self._owners.of(cluster) if owner.profile == profile)
        return Inventory(cluster, profile, {key: Held("", "") for key in owned})


class Orphans:
    """Objects that are not as the records have them, by cluster and object."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._table = Table(store, Orphan)

    def of(
        self, cluster: str, prefix: str = "", *, after: str = ""
    ) -> Iterator[tuple[Identity, Orphan]]:
        """Yield what was found in a cluster, by object, as `Owners.of` does."""
        for key, noted in self.noted(cluster, prefix, after=after):
            yield key, noted.finding

    def noted(
        self, cluster: str, prefix: str = "", *, after: str = ""
    ) -> Iterator[tuple[Identity, Noted]]:
        """Yield the same, and whether each is remembered for half of its time yet."""
        soon = self._clock.now() + _REMEMBERED / 2
        for item in self._table.items(f"finding/{cluster}", prefix, after):
            lasts = item.expires_at is None or item.expires_at > soon
            yield Identity.parse(item.sort), Noted(self._table.read(item.value), lasts)

    def put(self, cluster: str, key: Identity, finding: Orphan) -> None:
        """Note what was found; it is forgotten when nobody finds it again for a week."""
        old = self._table.get(f"finding/{cluster}", str(key))
        if old and replace(old.value, since=finding.since) == finding:
            finding = old.value
        expires = self._clock.now() + _REMEMBERED
        self._table.put(f"finding/{cluster}", str(key), finding, expires_at=expires)

    def delete(self, cluster: str, key: Identity) -> bool:
        """Forget what was found; say whether anything was."""
        return self._store.delete(f"finding/{cluster}", str(key))

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"finding/{cluster}"):
            self._store.delete(item.partition, item.sort)


def _inventory(cluster: str, found: Sealed) -> Inventory:
    held = {Identity.parse(key): decode(Held, each) for key, each in found.payload.items()}
    return decode(Inventory, found.head, cluster=cluster, profile=found.item.sort, held=held)
