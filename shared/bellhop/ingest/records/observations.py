"""The newest we know of each object in each cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.errors import MissingError, StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, Item
from bellhop.state.concurrency import until_written
from bellhop.state.payloads import Payloads, Sealed
from bellhop.state.record import Observation
from bellhop.state.table import Stored

TOMBSTONE = timedelta(days=7)
"""How long a deletion is remembered: longer than any queue of ours keeps a message."""


_UNCONFIRMED = "unconfirmed"
_NEVER = datetime.min.replace(tzinfo=UTC)


class Seen(NamedTuple):
    """The head of an observation; its token is for who then asks the cluster itself."""

    key: ObjectKey
    uid: str
    resource_version: int
    gone: bool
    token: str = ""
    unconfirmed: bool = False


class Observations:
    """Objects by cluster and key, tombstones too."""

    def __init__(self, payloads: Payloads, clock: Clock) -> None:
        self._payloads = payloads
        self._clock = clock

    def get(self, cluster: str, key: ObjectKey) -> Stored[Observation] | None:
        """Read the newest we know of an object.

        Raises:
            StaleError: it is known that there is one, but its manifest is lost: the next sweep
                writes it anew.
        """
        item = self._payloads.store.get(f"observation/{cluster}", str(key))
        found = self._open(item) if item else None
        return Stored(_observation(cluster, found), found.item.token) if found else None

    def last(self, cluster: str, key: ObjectKey) -> Mapping[str, Any] | None:
        """Read what an object was like before it was gone, as long as that is kept.

        For who has not judged yet that it is gone; a CloudEvent says itself when it is over.
        """
        item = self._payloads.store.get(f"observation/{cluster}", str(key))
        manifest: Mapping[str, Any] | None = self._payloads.last(item) if item else None
        return manifest

    def token(self, cluster: str, key: ObjectKey) -> str:
        """Read the token of what we know of an object, without the object; ABSENT if nothing."""
        item = self._payloads.store.get(f"observation/{cluster}", str(key))
        return item.token if item else ABSENT

    def head(self, cluster: str, key: ObjectKey) -> Seen | None:
        """Read the head of an observation, without the object."""
        item = self._payloads.store.get(f"observation/{cluster}", str(key))
        return _seen(item) if item else None

    def heads(self, cluster: str, gvk: GVK | None = None, *, after: str = "") -> Iterator[Seen]:
        """Yield the heads of all or one kind's objects, without reading the objects.

        In the byte order of their keys; only those that come `after` a key.
        """
        prefix = "/".join(gvk) + "/" if gvk else ""
        partition = f"observation/{cluster}"
        for item in self._payloads.store.query(partition, prefix=prefix, after=after):
            yield _seen(item)

    def of(self, cluster: str, gvk: GVK) -> Iterator[Observation]:
        """Yield the observations of a kind.

        Raises:
            StaleError: the manifest of one is lost: the next sweep writes it anew.
        """
        prefix = "/".join(gvk) + "/"
        for item in self._payloads.store.query(f"observation/{cluster}", prefix=prefix):
            found = self._open(item)
            if found:
                yield _observation(cluster, found)

    @until_written("write the observation of '{observation.key}'")
    def put(self, observation: Observation, *, asked: str | None = None) -> bool:
        """Write an observation if it is not older than what is there; say whether it is news.

        Equal ones are written too: a sender that repeats itself may not have been heard to the
        end. A tombstone hides its object's uid and every older version, and keeps for `last` what
        was there.

        Versions are compared within one life of a cluster. Who asked the cluster itself says
        what was kept before (`asked`: the head's token, or ABSENT). Where it still is, the answer
        is newer, whatever versions say, so that a cluster restored from a backup, or made anew,
        is seen as it is; where it was replaced meanwhile, versions decide.

        Raises:
            StaleError: other writers keep winning.
        """
        partition, sort = f"observation/{observation.cluster}", str(observation.key)
        old = self._payloads.store.get(partition, sort)
        if old and old.token != asked and _supersedes(old.value, observation):
            return False
        version = observation.resource_version
        if old and observation.gone:
            # What was older than the object is older than its tombstone.
            version = max(version, old.value["rv"])
        head = {
            "uid": observation.uid,
            "rv": version,
            "gone": observation.gone,
            "at": observation.seen_at.isoformat(),
        }
        if observation.unconfirmed and not _is_confirmed(old, observation):
            head[_UNCONFIRMED] = True
        expires = self._clock.now() + TOMBSTONE if observation.gone else None
        new = Item(partition, sort, head, expires_at=expires)
        if old and observation.gone and observation.key.gvk != CLOUD_EVENT:
            self._payloads.retire(old, new)
        else:
            self._payloads.follow(old, new, observation.manifest)
        return True

    def confirm(self, cluster: str, seen: Seen) -> None:
        """Note that a list of ours has shown an object as it is kept; not if it changed since."""
        item = self._payloads.store.get(f"observation/{cluster}", str(seen.key))
        if item and item.token == seen.token:
            head = {name: item.value[name] for name in ("uid", "rv", "gone", "at")}
            with suppress(StaleError):
                self._payloads.put_head(item.partition, item.sort, head, expect=item.token)

    def delete(self, cluster: str, key: ObjectKey) -> bool:
        """Forget an object, for kinds that no longer count; say whether it was known."""
        return self._payloads.delete(f"observation/{cluster}", str(key))

    def _open(self, item: Item) -> Sealed | None:
        try:
            return self._payloads.open(item)
        except MissingError as error:
            # Older than anything, of no uid: whatever is seen next is news.
            unknown = {**item.value, "uid": "", "rv": 0, "at": _NEVER.isoformat()}
            with suppress(StaleError):
                if unknown != item.value:
                    new = Item(item.partition, item.sort, unknown)
                    self._payloads.store.put(new, expect=item.token)
            raise StaleError(
                f"cannot read the observation of '{item.sort}': its payload is lost; the next"
                " resync of the cluster writes it again"
            ) from error


def _seen(item: Item) -> Seen:
    value = item.value
    return Seen(
        ObjectKey.parse(item.sort),
        value["uid"],
        value["rv"],
        value["gone"],
        item.token,
        value.get(_UNCONFIRMED, False),
    )


def _is_confirmed(old: Item | None, new: Observation) -> bool:
    """Return whether a list or read of ours has shown the very life of an object before."""
    if old is None or new.gone or old.value["uid"] != new.uid:
        return False
    return not old.value.get(_UNCONFIRMED)


def _observation(cluster: str, found: Sealed) -> Observation:
    return Observation(
        cluster=cluster,
        key=ObjectKey.parse(found.item.sort),
        uid=found.head["uid"],
        resource_version=found.head["rv"],
        manifest=found.payload,
        seen_at=datetime.fromisoformat(found.head["at"]),
        unconfirmed=found.head.get(_UNCONFIRMED, False),
    )


def _supersedes(old: Mapping[str, Any], new: Observation) -> bool:
    if new.gone:
        # A deletion concerns one uid; a later object of the same name is another one.
        return bool(old["uid"] != new.uid and old["rv"] > new.resource_version)
    if old["gone"] and old["uid"] == new.uid:
        return True
    return bool(old["rv"] > new.resource_version)
