"""Tables of deploy: inventories and owners, statuses, previews, and who depends on what."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop.core.digest import digest
from bellhop.core.gvk import Identity
from bellhop.errors import MissingError, StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.concurrency import until_written
from bellhop.state.deployment import (
    DeploymentStatus,
    Held,
    Inventory,
    Mount,
    Orphan,
    Owner,
    Preview,
    TemplateDependency,
    Watch,
)
from bellhop.state.payloads import Payloads
from bellhop.state.table import SealedTable, Stored, Table, decode, encode

# Inventories, owners, orphans ---------------------------------------------------------------------

_ORPHAN_AGE = timedelta(days=7)


class Owners(Table[Owner, str, Identity]):
    """The profile that owns an object, by cluster and object."""

    kind = Owner
    partition, sort = "owner/{cluster}", "{object}"
    published = MappingProxyType({"tell": ()})

    def of(
        self, cluster: str, prefix: str = "", *, after: str = ""
    ) -> Iterator[tuple[Identity, Owner]]:
        """Yield the objects of a cluster that are owned, each with its owner, by object.

        Only those whose text begins with `prefix` and comes `after` another one.
        """
        for sort, owner in self.rows(cluster, prefix=prefix, after=after):
            yield Identity.parse(sort), owner.value


class Inventories(SealedTable[Inventory, str, str]):
    """The objects that each profile owns, by cluster and profile.

    An inventory whose payload is lost is rebuilt from the owners. It then records of each object
    only that it may have been applied, so that it is applied again or removed.
    """

    kind = Inventory
    partition, sort = "inventory/{cluster}", "{profile}"
    in_key = ("cluster", "profile")
    sealed = ("held",)

    def __init__(self, payloads: Payloads, owners: Owners) -> None:
        super().__init__(payloads)
        self._owners = owners

    def of(self, cluster: str) -> Iterator[Inventory]:
        """Yield the inventories of a cluster, as `get` would read them."""
        return (inventory.value for _, inventory in self.rows(cluster))

    def seal(self, record: Inventory) -> Mapping[str, Any]:
        """Write what is held by object: keys of JSON are text."""
        return {str(key): encode(each) for key, each in record.held.items()}

    def unseal(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read what `seal` wrote."""
        held = {Identity.parse(key): decode(Held, each) for key, each in payload.items()}
        return {"held": held}

    def restore(self, item: Item, _: MissingError) -> Inventory:
        """Make an inventory up from the owners."""
        known = self.key_fields(item)
        owned = self._owners.of(known["cluster"])
        mine = [key for key, owner in owned if owner.profile == known["profile"]]
        return Inventory(**known, held={key: Held("", "") for key in mine})

    def put_at(self, partition: str, sort: str, record: Inventory, *, expect: str | None) -> str:
        """Write an inventory and return its token; an empty one is deleted, and has ABSENT."""
        if record.held or record.worker:
            return super().put_at(partition, sort, record, expect=expect)
        self.delete_at(partition, sort, expect=expect)
        return ABSENT

    @until_written("doubt what '{profile}' holds")
    def doubt(
        self,
        cluster: str,
        profile: str,
        now: datetime | None,
        keys: Collection[Identity] | None = None,
    ) -> bool:
        """Record these objects, or all, as uncertain: they may not be as they were applied.

        False if a worker has the lease `now`, or if there is nothing to doubt. Without a time the
        next write of the lease holder is refused.

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


class Noted(NamedTuple):
    """An orphan or conflict, and whether its record expires late enough yet."""

    finding: Orphan
    lasts: bool


class Orphans(Table[Orphan, str, Identity]):
    """Objects that are not as the records have them, by cluster and object.

    A record expires after a week in which no resync finds the object again.
    """

    kind = Orphan
    partition, sort = "finding/{cluster}", "{object}"

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock

    def expiry(self, _: Orphan) -> datetime:
        """Expire in a week."""
        return self._clock.now() + _ORPHAN_AGE

    def of(
        self, cluster: str, prefix: str = "", *, after: str = ""
    ) -> Iterator[tuple[Identity, Orphan]]:
        """Yield what was found in a cluster, by object, as `Owners.of` does."""
        for key, noted in self.noted(cluster, prefix, after=after):
            yield key, noted.finding

    def noted(
        self, cluster: str, prefix: str = "", *, after: str = ""
    ) -> Iterator[tuple[Identity, Noted]]:
        """Yield the same, and whether each is kept for half of its time yet."""
        soon = self._clock.now() + _ORPHAN_AGE / 2
        for item in self.items(cluster, prefix=prefix, after=after):
            lasts = item.expires_at is None or item.expires_at > soon
            yield Identity.parse(item.sort), Noted(self.read_item(item), lasts)

    def put_at(self, partition: str, sort: str, record: Orphan, *, expect: str | None) -> str:
        """Record what was found, since when it first was as it is now."""
        old = self._store.get(partition, sort)
        found = self.read_item(old) if old else record
        if replace(found, since=record.since) == record:
            record = found
        return super().put_at(partition, sort, record, expect=expect)


# Statuses and previews ----------------------------------------------------------------------------


class DeploymentStatuses(Table[DeploymentStatus, str, str]):
    """How applying each profile to each cluster ended, by cluster and profile."""

    kind = DeploymentStatus
    partition, sort = "outcome/{cluster}", "{profile}"
    in_key = ("cluster", "profile")

    def of(self, cluster: str) -> Iterator[DeploymentStatus]:
        """Yield the statuses of a cluster, by profile."""
        return (status.value for _, status in self.rows(cluster))

    @until_written("recount the failures of '{profile}'")
    def recount(self, cluster: str, profile: str) -> None:
        """Count the failures of a profile in a cluster from zero; pauses begin with the first, too.

        Raises:
            StaleError: other writers keep winning.
        """
        kept = self.get(cluster, profile)
        if kept and (kept.value.counted or kept.value.failures):
            self.put(replace(kept.value, counted=0, failures=0), expect=kept.token)


class Previews(SealedTable[Preview, str, str]):
    """Changes that dry runs found, by cluster and profile; of one that is lost there are none."""

    kind = Preview
    partition, sort = "preview/{cluster}", "{profile}"
    in_key = ("cluster", "profile")
    sealed = ("changes",)

    def of(self, cluster: str) -> Iterator[Preview]:
        """Yield the previews of a cluster, by profile."""
        return (preview.value for _, preview in self.rows(cluster))

    def seal(self, record: Preview) -> Any:
        """Seal the list of changes."""
        return encode(record)["changes"]

    def unseal(self, payload: Any) -> Mapping[str, Any]:
        """Read what `seal` wrote."""
        return {"changes": payload}

    def restore(self, item: Item, _: MissingError) -> Preview:
        """Read when the dry run was."""
        head = {**self._payloads.head(item), "changes": []}
        return decode(Preview, head, **self.key_fields(item))


# Dependencies -------------------------------------------------------------------------------------


class Watches(Table[Watch, str, str]):
    """Kinds whose events are to correct what a profile deployed, by cluster and profile."""

    kind = Watch
    partition, sort = "watch/{cluster}", "{profile}"
    in_key = ("cluster", "profile")

    def of(self, cluster: str) -> Iterator[Stored[Watch]]:
        """Yield the watches of a cluster, by profile."""
        return (watch for _, watch in self.rows(cluster))


class ReloadIndex(Table[Mount, str, Identity, str]):
    """Profiles whose workloads read a ConfigMap or Secret, by cluster and object."""

    kind = Mount
    partition, sort = "mount/{cluster}", "{object}/{profile}"

    def of(self, cluster: str, key: Identity) -> Iterator[Mount]:
        """Yield the profiles whose workloads read an object."""
        return (each.value for _, each in self.rows(cluster, prefix=f"{key}/"))

    def put(self, cluster: str, key: Identity, mount: Mount) -> None:  # type: ignore[override]
        """Record that a profile's workloads read an object."""
        super().put(cluster, key, mount.profile, mount)

    def has_any(self, cluster: str) -> bool:
        """Say whether anything in a cluster is read by workloads that restart."""
        return any(True for _ in self.items(cluster, limit=1))


Kind = tuple[str, str]
"""Group and kind."""

_READERS = "reader"
_END = "\U0010ffff"
_DIGEST = 16


class DependencyIndex(Table[TemplateDependency, str, str, Identity]):
    """Profiles that are rendered with an object of `mgmt/mgmt`, by the object, one record each.

    Beside that, by destination and profile, the objects that are read, and whether somebody has
    seen to it that they send events. That record is written before the former, and deleted after
    it, so that nothing is left that nobody finds; it is settled only where both are there.
    """

    kind = TemplateDependency
    partition, sort = "reads/{destination}", "{profile}:{object}"
    published = MappingProxyType({"settled": True})

    def place(self, destination: str, profile: str, key: Identity) -> tuple[str, str]:
        """Return the place of what a profile reads, by its destination."""
        return f"reads/{destination}", f"{profile}:{_object_place(key)}"

    def of(self, key: Identity) -> Iterator[TemplateDependency]:
        """Yield the readers of an object; one without a namespace is read in every namespace.

        Nobody can say of a kind that is not served yet whether its objects have one.
        """
        prefix = f"{_object_place(key)}/" if key.namespace else _object_place(key)
        return map(self.read_item, self._store.query(_READERS, prefix=prefix))

    def of_kind(self, kind: Kind) -> Iterator[tuple[Identity, TemplateDependency]]:
        """Yield the objects of a kind that are read, and each of their readers."""
        for item in self._store.query(_READERS, prefix=f"{'/'.join(kind)}/"):
            yield _object(item.sort.rpartition("/")[0]), self.read_item(item)

    def first(self, kind: Kind) -> TemplateDependency | None:
        """Return the first of the readers of anything of a kind."""
        items = self._store.query(_READERS, prefix=f"{'/'.join(kind)}/", limit=1)
        return next(map(self.read_item, items), None)

    def kinds(self) -> Iterator[Kind]:
        """Yield the kinds of which anything is read; each costs one query, however much it is."""
        after = ""
        while item := next(self._store.query(_READERS, after=after, limit=1), None):
            group, kind, _ = item.sort.split("/", 2)
            yield group, kind
            after = f"{group}/{kind}/{_END}"

    def note(self, key: Identity, reader: TemplateDependency) -> str:
        """Record that a profile reads an object for a destination; return the token."""
        token = self._put_beside(key, reader, expect=ANY)
        self.put_at(_READERS, _row(key, reader), reader, expect=ANY)
        return token

    def settle(self, key: Identity, reader: TemplateDependency, *, expect: str) -> None:
        """Record that somebody has seen to it that the object sends events for a reader.

        Raises:
            StaleError: another worker writes or deletes the record.
        """
        try:
            place = reader.destination, reader.profile, key
            self.mark_published(*place, reader, expect=expect)
        except StaleError:
            found = self.get(*place)
            if found is None or not found.value.settled:
                # It may have been written after it was deleted: nobody else would find that.
                self.delete(key, reader)
            raise

    def read_for(self, destination: str, profile: str) -> dict[Identity, TemplateDependency]:
        """Return the objects that a profile reads for a destination, and whether it is settled."""
        prefix = f"{profile}:"
        found = self.rows(destination, prefix=prefix)
        return {_object(sort.removeprefix(prefix)): kept.value for sort, kept in found}

    @until_written("strike out '{key}' for '{reader.profile}'")
    def delete(  # type: ignore[override]
        self, key: Identity, reader: TemplateDependency
    ) -> None:
        """Record that a profile reads an object no more for a destination.

        A death before the end leaves a record that is not settled: it is written or deleted again.

        Raises:
            StaleError: other workers write it all the time.
        """
        row = self._store.get(_READERS, _row(key, reader))
        beside = self.place(reader.destination, reader.profile, key)
        token = self._put_beside(key, replace(reader, settled=False), expect=ANY)
        try:
            if row:
                self._store.delete(row.partition, row.sort, expect=row.token)
            self._store.delete(*beside, expect=token)
        except StaleError:
            if self.token(reader.destination, reader.profile, key) == token:
                raise
            # Another worker has written or deleted it since, and sees to both.

    def forget(self, cluster: str) -> None:
        """Delete all of a destination."""
        for sort, kept in self.rows(cluster):
            self.delete(_object(sort.removeprefix(f"{kept.value.profile}:")), kept.value)

    def _put_beside(self, key: Identity, reader: TemplateDependency, *, expect: str | None) -> str:
        return self.put(reader.destination, reader.profile, key, reader, expect=expect)


def _object_place(key: Identity) -> str:
    return f"{key.group}/{key.kind}/{key.name}/{key.namespace}"


def _object(place: str) -> Identity:
    group, kind, name, namespace = place.split("/")
    return Identity(group, kind, namespace, name)


def _row(key: Identity, reader: TemplateDependency) -> str:
    # In full the names would be longer than the key of an item may be.
    return f"{_object_place(key)}/{digest([reader.destination, reader.profile])[:_DIGEST]}"
