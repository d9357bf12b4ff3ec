"""Tables of profiles: profiles, their former revisions, pending removals, reserved names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from bellhop.errors import MissingError, StaleError
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.check import Check
from bellhop.state.content import Content, Reading
from bellhop.state.payloads import SHARDS, Payloads
from bellhop.state.profile import NameReservation, Profile, Rendering
from bellhop.state.table import SealedTable, Stored, Table, decode, encode


class Place(NamedTuple):
    """The identity of a profile."""

    trigger: str
    cluster: str
    name: str


def place(profile: Profile) -> Place:
    """Return the identity of a profile."""
    return Place(profile.trigger, profile.cluster, profile.name)


class ProfileClusters:
    """Clusters about which a profile has something to do, one empty record each.

    Each profile has a partition, so that thousands of clusters are written beside each other.

    Of `leaving` these are the clusters that it is still to leave.

        record of each cluster ─► head "leaves" ─► … ─► a cluster is left: its record is deleted
                                                   └─► the last one: head closed, or "leaves" not

    The records are there before the head says so: a worker that finds none knows that all clusters
    are left. One that was written by a worker whose head lost, or that died, names a cluster that
    is a destination still, or is notified with the others when the profile is withdrawn.

    Of `queued` these are the clusters that wait for their place in its rollout.
    """

    def __init__(self, store: Store, table: Literal["leaving", "queued"]) -> None:
        self._store = store
        self._table = table

    def of(self, profile: Place) -> Iterator[str]:
        """Yield the clusters of a profile, by name."""
        return (each.value for each in self.stored(profile))

    def stored(self, profile: Place) -> Iterator[Stored[str]]:
        """Yield them with the tokens of their records."""
        items = self._store.query(self._partition(profile))
        return (Stored(item.sort, item.token) for item in items)

    def token(self, profile: Place, cluster: str) -> str:
        """Return the token of a record, ABSENT where there is none."""
        item = self._store.get(self._partition(profile), cluster)
        return item.token if item else ABSENT

    def begin(self, profile: Place, clusters: Iterable[str]) -> Mapping[str, str]:
        """Record clusters, also those that are recorded, and return the new token of each."""
        partition = self._partition(profile)
        return {each: self._store.put(Item(partition, each, {})).token for each in clusters}

    def take_back(self, profile: Place, begun: Mapping[str, str]) -> None:
        """Delete the records of these tokens; one that was written again since stays."""
        for cluster, token in begun.items():
            with suppress(StaleError):
                self.end(profile, cluster, expect=token)

    def end(self, profile: Place, cluster: str, *, expect: str | None = ANY) -> None:
        """Delete the record of a cluster.

        Raises:
            StaleError: it was written again since it was read.
        """
        self._store.delete(self._partition(profile), cluster, expect=expect)

    def _partition(self, profile: Place) -> str:
        return f"{self._table}/{'/'.join(profile)}"


class _Contents(Struct, frozen=True):
    contents: tuple[Content, ...] = ()
    generated: tuple[Mapping[str, Any], ...] = ()
    reads: tuple[Reading, ...] = ()
    checks: tuple[Check, ...] = ()
    jobs: Mapping[str, tuple[Content, ...]] = {}
    made_at: datetime | None = None
    recipe: Mapping[str, str] = {}


_NOTHING = _Contents()
_WITHOUT = asdict(_NOTHING)


class Profiles(SealedTable[Profile, str, str, str]):
    """Profiles by trigger, source cluster and name: destinations in the head, contents sealed.

    A profile for a thousand clusters is read two thousand times, each time the same: the last ones
    are kept as they were read.
    """

    kind = Profile
    partition, sort = "profile/{trigger}/{shard}", "{cluster}/{name}"
    sealed = _Contents.__struct_fields__
    remembered = 8  # About as many as are worked on at once.

    def __init__(self, payloads: Payloads, removals: ProfileClusters) -> None:
        super().__init__(payloads)
        self._departures = removals

    def place(self, trigger: str, cluster: str, name: str) -> tuple[str, str]:
        """Return the place of a profile."""
        return _partition(trigger, cluster), f"{cluster}/{name}"

    def key(self, profile: Profile) -> Place:
        """Return the identity of a profile."""
        return place(profile)

    def head(self, trigger: str, cluster: str, name: str) -> Stored[Profile] | None:
        """Read a profile without its contents, for callers that ask only for its destinations.

        Raises:
            MissingError: these are very many, lie with the contents, and are lost.
        """
        item = self._store.get(*self.place(trigger, cluster, name))
        if item is None:
            return None
        if not self._recall(item.token) and not self._payloads.wide(item):
            return Stored(self.read_item(item), item.token)
        found = self.open(item)
        return Stored(replace(found.value, **_WITHOUT), found.token) if found else None

    def of(self, trigger: str, cluster: str = "") -> Iterator[Profile]:
        """Yield the profiles a trigger generated, in all or one source cluster, for people.

        Each names the clusters that it is still to leave. Of one whose contents are lost the error
        says so.
        """
        for item in self._all(trigger, cluster):
            try:
                found = self.open(item)
            except MissingError as error:
                lost = replace(self.read_item(item), error=str(error), error_code=error.code)
                yield self.with_leaving(lost)
                continue
            if found:
                yield self.with_leaving(found.value)

    def heads(self, trigger: str, cluster: str = "") -> Iterator[Profile]:
        """Yield the profiles a trigger generated as `of` does, without reading their contents.

        One that is `vague` has more destinations than its head holds: `may_name` answers for these.
        """
        return (self.with_leaving(self.read_item(item)) for item in self._all(trigger, cluster))

    def with_leaving(self, profile: Profile) -> Profile:
        """Name the clusters that a profile is still to leave."""
        if not profile.leaves:
            return profile
        found = self._departures.of(place(profile))
        leaving = tuple(each for each in found if each not in profile.destinations)
        return replace(profile, leaving=leaving)

    def read_item(self, item: Item) -> Profile:
        """Read a profile without its contents, and without destinations that are very many."""
        head = {"destinations": (), **self._payloads.head(item)}
        return decode(Profile, head, contents=(), vague=self._payloads.wide(item))

    def head_fields(self, record: Profile) -> dict[str, Any]:
        """Return what is in the head of a profile."""
        return encode(record, omit=(*self.sealed, "leaving", "vague"))

    def seal(self, record: Profile) -> Any:
        """Seal the contents; nothing where there are none."""
        held = _Contents(**{name: getattr(record, name) for name in self.sealed})
        return encode(held) if held != _NOTHING else None

    def unseal(self, payload: Any) -> Mapping[str, Any]:
        """Read the contents."""
        return asdict(decode(_Contents, payload)) if payload else _WITHOUT

    def _all(self, trigger: str, cluster: str) -> Iterator[Item]:
        if cluster:
            partitions, prefix = [_partition(trigger, cluster)], f"{cluster}/"
        else:
            partitions, prefix = [f"profile/{trigger}/{shard}" for shard in SHARDS], ""
        for partition in partitions:
            yield from self._store.query(partition, prefix=prefix)


def _partition(trigger: str, cluster: str) -> str:
    """Return the partition of a trigger's profiles of a source cluster.

    One trigger may take all events of a fleet, and each writes twice: sixteen share that.
    """
    return f"profile/{trigger}/{hashlib.sha256(cluster.encode()).hexdigest()[0]}"


class RevisionRecords(SealedTable[Rendering, str, str, str, str]):
    """Former revisions of profiles, the last few of each; each profile has a partition.

    Each lies under the digest of its contents: one that comes and goes is written once. The profile
    itself has the one in force, so a profile that never changes has none here.
    """

    kind = Rendering
    partition, sort = "rendering/{trigger}/{cluster}/{name}", "{digest}"
    sealed = ("recipe", "contents", "generated", "reads")

    def of(self, profile: Place) -> list[Rendering]:
        """Return the former revisions of a profile, the last one in force first."""
        found = []
        for item in list(self.items(*profile)):
            # A revision of which the contents are lost is left out.
            with suppress(MissingError):
                found.append(self.open(item))
        return _newest_first(each.value for each in found if each)

    def numbers(self, profile: Place) -> dict[str, int]:
        """Return the number of each revision by its digest."""
        return {each.digest: each.number for each in map(self.read_item, self.items(*profile))}

    def keep(self, profile: Place, revision: Rendering, most: int) -> None:
        """Keep what a profile held until now, and so many revisions in all."""
        place = self.place(*profile, revision.digest)
        with suppress(StaleError):
            # Another worker that keeps the same at once writes the same.
            if self._store.get(*place):
                self._payloads.put_head(*place, self.head_fields(revision))
            else:
                self.put_at(*place, revision, expect=ABSENT)
        for each in _newest_first(map(self.read_item, self.items(*profile)))[most:]:
            self.delete(*profile, each.digest)

    def delete_all(self, profile: Place) -> None:
        """Delete all former revisions of a profile."""
        for item in list(self.items(*profile)):
            self.delete(*profile, item.sort)


def _newest_first(revisions: Iterable[Rendering]) -> list[Rendering]:
    return sorted(revisions, key=attrgetter("until", "number"), reverse=True)


class NameReservationRecords(Table[NameReservation, str, str]):
    """Names that templates wrote, by kind and name, each with the profile that has it.

    They are spread over partitions, as each event may write one.
    """

    kind = NameReservation
    partition, sort = "title/{shard}", "{kind}/{name}"

    def place(self, kind: str, name: str) -> tuple[str, str]:
        """Return the place of a name."""
        return f"title/{hashlib.sha256(name.encode()).hexdigest()[0]}", f"{kind}/{name}"
