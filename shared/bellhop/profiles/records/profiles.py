"""Profiles as they are to be applied: heads that say where, payloads that say what."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from bellhop.errors import MissingError
from bellhop.ports.store import ANY, Item
from bellhop.profiles.records.pending_removals import PendingRemovals, Place
from bellhop.state.check import Check
from bellhop.state.payloads import SHARDS, Payloads, Sealed
from bellhop.state.record import Content, Profile, Reading
from bellhop.state.table import Stored, decode, encode

_KEPT = 8
"""Profiles that are kept as they were read, about as many as are worked on at once."""


class _Contents(Struct, frozen=True):
    contents: tuple[Content, ...] = ()
    generated: tuple[Mapping[str, Any], ...] = ()
    reads: tuple[Reading, ...] = ()
    checks: tuple[Check, ...] = ()
    jobs: Mapping[str, tuple[Content, ...]] = {}
    made_at: datetime | None = None
    recipe: Mapping[str, str] = {}


class _Known(Struct, frozen=True):
    """A profile as it was read, and without its contents."""

    whole: Profile
    head: Profile


_NOTHING = _Contents()
_APART = _Contents.__struct_fields__
_WITHOUT = asdict(_NOTHING)


class Profiles:
    """Profiles by trigger, source cluster and name.

    A profile for a thousand clusters is read two thousand times, each time the same: what was read
    last is kept by the token of its head, which says that it is still so.
    """

    def __init__(self, payloads: Payloads, departures: PendingRemovals) -> None:
        self._payloads = payloads
        self._departures = departures
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Known] = OrderedDict()

    def get(self, trigger: str, cluster: str, name: str) -> Stored[Profile] | None:
        """Read a profile.

        Raises:
            MissingError: its contents are lost; `head` reads the rest.
        """
        item = self._payloads.store.get(_partition(trigger, cluster), f"{cluster}/{name}")
        if item is None:
            return None
        known = self._known(item)
        if known:
            return Stored(known.whole, item.token)
        found = self._payloads.open(item)
        return self._keep(Stored(_profile(found), found.item.token)) if found else None

    def head(self, trigger: str, cluster: str, name: str) -> Stored[Profile] | None:
        """Read a profile without its contents, for who only asks where it goes.

        Raises:
            MissingError: that is very much, lies with the contents, and is lost.
        """
        item = self._payloads.store.get(_partition(trigger, cluster), f"{cluster}/{name}")
        known = self._known(item) if item else None
        if item and known:
            return Stored(known.head, item.token)
        if item is None or not self._payloads.wide(item):
            return Stored(self._glance(item), item.token) if item else None
        found = self._payloads.open(item)
        return Stored(decode(Profile, found.head, contents=()), found.item.token) if found else None

    def of(self, trigger: str, cluster: str = "") -> Iterator[Profile]:
        """Yield the profiles a trigger generated, in all or one source cluster, for people.

        Each names the clusters that it is still to leave. Of one whose contents are lost the error
        says so.
        """
        for item in self._items(trigger, cluster):
            try:
                found = self._payloads.open(item)
            except MissingError as error:
                lost = replace(self._glance(item), error=str(error), error_code=error.code)
                yield self.with_leaving(lost)
                continue
            if found:
                yield self.with_leaving(_profile(found))

    def heads(self, trigger: str, cluster: str = "") -> Iterator[Profile]:
        """Yield the profiles a trigger generated as `of` does, without reading their contents.

        One that is `vague` has more destinations than its head holds: `may_name` tells of these.
        """
        return (self.with_leaving(self._glance(item)) for item in self._items(trigger, cluster))

    def with_leaving(self, profile: Profile) -> Profile:
        """Name the clusters that a profile is still to leave."""
        if not profile.leaves:
            return profile
        found = self._departures.of(place(profile))
        leaving = tuple(each for each in found if each not in profile.destinations)
        return replace(profile, leaving=leaving)

    def put(self, profile: Profile, *, expect: str | None = ANY) -> str:
        """Write a profile and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        held = _Contents(**{name: getattr(profile, name) for name in _APART})
        payload = encode(held) if held != _NOTHING else None
        return self._payloads.put(*_key(profile), _clear(profile), payload, expect=expect)

    def put_head(self, profile: Profile, *, expect: str | None = ANY) -> str:
        """Write all of a profile but its contents, which stay what they are; return its token.

        Raises:
            StaleError: something else than `expect` is there, or nothing.
        """
        return self._payloads.put_head(*_key(profile), _clear(profile), expect=expect)

    def delete(self, trigger: str, cluster: str, name: str, *, expect: str | None = ANY) -> bool:
        """Delete a profile that holds nothing any more; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.delete(
            _partition(trigger, cluster), f"{cluster}/{name}", expect=expect
        )

    def _known(self, item: Item) -> _Known | None:
        with self._lock:
            known = self._kept.get(item.token)
            if known:
                self._kept.move_to_end(item.token)
            return known

    def _keep(self, read: Stored[Profile]) -> Stored[Profile]:
        with self._lock:
            self._kept[read.token] = _Known(read.value, replace(read.value, **_WITHOUT))
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return read

    def _glance(self, item: Item) -> Profile:
        vague = self._payloads.wide(item)
        head = {"destinations": (), **self._payloads.head(item)}
        return decode(Profile, head, contents=(), vague=vague)

    def _items(self, trigger: str, cluster: str) -> Iterator[Item]:
        if cluster:
            partitions, prefix = [_partition(trigger, cluster)], f"{cluster}/"
        else:
            partitions, prefix = [f"profile/{trigger}/{shard}" for shard in SHARDS], ""
        for partition in partitions:
            yield from self._payloads.store.query(partition, prefix=prefix)


def place(profile: Profile) -> Place:
    """Return which profile it is."""
    return Place(profile.trigger, profile.cluster, profile.name)


def _key(profile: Profile) -> tuple[str, str]:
    return _partition(profile.trigger, profile.cluster), f"{profile.cluster}/{profile.name}"


def _partition(trigger: str, cluster: str) -> str:
    """Return where a trigger's profiles of a source cluster lie.

    One trigger may take all events of a fleet, and each writes twice: sixteen share that.
    """
    return f"profile/{trigger}/{hashlib.sha256(cluster.encode()).hexdigest()[0]}"


def _clear(profile: Profile) -> dict[str, Any]:
    return encode(profile, omit=(*_APART, "leaving", "vague"))


def _profile(found: Sealed) -> Profile:
    held = decode(_Contents, found.payload) if found.payload else _NOTHING
    return decode(Profile, found.head, **asdict(held))
