"""Tables of ingest: observations, senders and their credentials, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct

from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.errors import MissingError, StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, Item, Store
from bellhop.state.concurrency import until_written
from bellhop.state.ingest_policy import Issuer, Refusals, Sender
from bellhop.state.match import Observation
from bellhop.state.payloads import Payloads, Sealed
from bellhop.state.table import SealedTable, Stored, Table

# Observations -------------------------------------------------------------------------------------

TOMBSTONE = timedelta(days=7)
"""How long a deletion is remembered: longer than any queue of ours keeps a message."""

_UNCONFIRMED = "unconfirmed"
_NEVER = datetime.min.replace(tzinfo=UTC)


class Seen(NamedTuple):
    """The head of an observation; its token is for a caller that then asks the cluster itself."""

    key: ObjectKey
    uid: str
    resource_version: int
    gone: bool
    token: str = ""
    unconfirmed: bool = False
    at: datetime = _NEVER


class Observations:
    """The newest state of each object, by cluster and key; of a deleted one its tombstone."""

    def __init__(self, payloads: Payloads, clock: Clock) -> None:
        self._payloads = payloads
        self._store = payloads.store
        self._clock = clock

    def get(self, cluster: str, key: ObjectKey) -> Stored[Observation] | None:
        """Read the newest state of an object.

        Raises:
            StaleError: it is known that there is one, but its manifest is lost: the next resync
                writes it again.
        """
        item = self._item(cluster, key)
        found = self._open(item) if item else None
        return Stored(_observation(cluster, found), found.item.token) if found else None

    def last(self, cluster: str, key: ObjectKey) -> Mapping[str, Any] | None:
        """Read the last state of an object that was deleted, as long as that is kept.

        For callers that have not evaluated its deletion yet; a CloudEvent says itself when it is
        over.
        """
        item = self._item(cluster, key)
        manifest: Mapping[str, Any] | None = self._payloads.last(item) if item else None
        return manifest

    def token(self, cluster: str, key: ObjectKey) -> str:
        """Read the token of an observation, without the object; ABSENT if there is none."""
        item = self._item(cluster, key)
        return item.token if item else ABSENT

    def head(self, cluster: str, key: ObjectKey) -> Seen | None:
        """Read the head of an observation, without the object."""
        item = self._item(cluster, key)
        return _seen(item) if item else None

    def heads(self, cluster: str, gvk: GVK | None = None, *, after: str = "") -> Iterator[Seen]:
        """Yield the heads of all or one kind's objects, without reading the objects.

        In the byte order of their keys; only those that come `after` a key.
        """
        prefix = "/".join(gvk) + "/" if gvk else ""
        return map(_seen, self._store.query(f"observation/{cluster}", prefix=prefix, after=after))

    def of(self, cluster: str, gvk: GVK) -> Iterator[Observation]:
        """Yield the observations of a kind.

        Raises:
            StaleError: the manifest of one is lost: the next resync writes it again.
        """
        prefix = "/".join(gvk) + "/"
        for item in self._store.query(f"observation/{cluster}", prefix=prefix):
            found = self._open(item)
            if found:
                yield _observation(cluster, found)

    @until_written("write the observation of '{observation.key}'")
    def put(self, observation: Observation, *, asked: str | None = None) -> bool:
        """Write an observation if it is not older than the stored one; say whether it is news.

        Equal ones are written too: of a sender that repeats itself the first message may have been
        handled in part only. A tombstone hides its object's uid and every older version, and keeps
        for `last` what was there.

        Versions are compared within one life of a cluster. A caller that has asked the cluster
        itself says what was stored before (`asked`: the head's token, or ABSENT). Where that is
        still stored, the answer is newer, whatever versions say, so that a cluster that was
        restored from a backup, or created again, is seen as it is; where it was replaced
        meanwhile, versions decide.

        Raises:
            StaleError: other writers keep winning.
        """
        partition, sort = f"observation/{observation.cluster}", str(observation.key)
        old = self._store.get(partition, sort)
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
        """Record that a list has shown an object as it is stored; not if that changed since."""
        item = self._item(cluster, seen.key)
        if item and item.token == seen.token:
            head = {name: item.value[name] for name in ("uid", "rv", "gone", "at")}
            with suppress(StaleError):
                self._payloads.put_head(item.partition, item.sort, head, expect=item.token)

    def delete(self, cluster: str, key: ObjectKey) -> bool:
        """Delete an observation, of a kind that no longer counts; say whether it was there."""
        return self._payloads.delete(f"observation/{cluster}", str(key))

    def forget(self, cluster: str) -> None:
        """Delete all observations of a cluster."""
        self._payloads.forget(f"observation/{cluster}")

    def _item(self, cluster: str, key: ObjectKey) -> Item | None:
        return self._store.get(f"observation/{cluster}", str(key))

    def _open(self, item: Item) -> Sealed | None:
        try:
            return self._payloads.open(item)
        except MissingError as error:
            # Older than anything, of no uid: whatever is seen next is news.
            unknown = {**item.value, "uid": "", "rv": 0, "at": _NEVER.isoformat()}
            with suppress(StaleError):
                if unknown != item.value:
                    new = Item(item.partition, item.sort, unknown)
                    self._store.put(new, expect=item.token)
            raise StaleError(
                f"cannot read the observation of '{item.sort}': its payload is lost; the next"
                " resync of the cluster writes it again"
            ) from error


def _seen(item: Item) -> Seen:
    value = item.value
    key, unconfirmed = ObjectKey.parse(item.sort), value.get(_UNCONFIRMED, False)
    at = datetime.fromisoformat(value["at"])
    return Seen(key, value["uid"], value["rv"], value["gone"], item.token, unconfirmed, at)


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


# CloudEvents --------------------------------------------------------------------------------------

REMEMBERED = timedelta(days=30)
"""How long an event is known for one that came before."""


class Arrival(Struct, frozen=True):
    """The time when an event came first, and its place among those of its source and subject."""

    at: datetime
    order: int


class Arrivals(Table[Arrival, str, str, str]):
    """First arrivals of CloudEvents, by cluster, EventSource and event.

    An event that comes again takes its old place, behind what has come since. The specification
    says that two events of one source and id are the same one.
    """

    kind = Arrival
    partition, sort = "arrival/{cluster}", "{listener}/{uid}"

    def expiry(self, arrival: Arrival) -> datetime:
        """Expire a month after the arrival."""
        return arrival.at + REMEMBERED

    def first(self, cluster: str, listener: str, uid: str, arrival: Arrival) -> Arrival:
        """Record that an event has come; return its first arrival, which may be another one."""
        try:
            self.put(cluster, listener, uid, arrival, expect=ABSENT)
        except StaleError:
            kept = self.get(cluster, listener, uid)
            return kept.value if kept else arrival
        return arrival


# Senders and credentials --------------------------------------------------------------------------


class Senders(SealedTable[Sender, str, str]):
    """The senders of CloudEvents outside of clusters, by cluster and name.

    Their credentials are sealed: the key of one that signs has to be kept as it is. They lie here
    and not with the secrets, which ingest has no right to read and which cost a call for each
    request.
    """

    kind = Sender
    partition, sort = "sender/{cluster}", "{name}"
    in_key = ("cluster", "name")
    sealed = ("proof", "former")

    def of(self, cluster: str) -> Iterator[Sender]:
        """Yield a cluster's senders by name, without their credentials."""
        return map(self.read_item, self.items(cluster))


class Receipts:
    """Signed requests that were accepted, each until its signature expires."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, cluster: str, sender: str, digest: str, until: datetime) -> bool:
        """Record that a request comes; True for the first, and for one of those at once."""
        note = Item(f"receipt/{cluster}", f"{sender}/{digest}", {}, expires_at=until)
        try:
            self._store.put(note, expect=ABSENT)
        except StaleError:
            return False
        return True

    def release(self, cluster: str, sender: str, digest: str) -> None:
        """Let a request come again, of which nothing was accepted."""
        self._store.delete(f"receipt/{cluster}", f"{sender}/{digest}")

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"receipt/{cluster}"):
            self._store.delete(item.partition, item.sort)


class Issuers(Table[Issuer, str]):
    """Issuers of the tokens of each cluster's service accounts, as its API server named them."""

    kind = Issuer
    partition, sort = "issuer", "{cluster}"


# Limits -------------------------------------------------------------------------------------------


FORGOTTEN = timedelta(minutes=10)
"""How long rejected senders are reported; of one that goes on the record is renewed each minute."""


class RefusalCounts(Table[Refusals, str]):
    """Requests that were rejected lately, by cluster; by the name of an outside sender, too."""

    kind = Refusals
    partition, sort = "refusals", "{cluster}"

    def expiry(self, refusals: Refusals) -> datetime:
        """Expire once no more requests are rejected."""
        return refusals.at + FORGOTTEN

    def all(self) -> Iterator[tuple[str, Refusals]]:
        """Yield the clusters and senders of requests that were rejected, and how many were."""
        return ((sender, refusals.value) for sender, refusals in self.rows())

    def forget(self, cluster: str) -> None:
        """Delete the counts of a cluster and of its outside senders."""
        super().forget(cluster)
        for item in self.items(prefix=f"{cluster}/"):
            self.delete(item.sort)


LOOK_PAUSE = timedelta(minutes=1)
"""How often a cluster may request a resync, or its keys be read again."""


class RequestLimits:
    """Clusters whose sender requested something lately, in whichever process.

    A forwarder requests a resync of its cluster, and a token that is signed with an unknown key a
    read of the keys: each at most once a minute.
    """

    def __init__(self, store: Store, partition: str) -> None:
        self._store = store
        self._partition = partition

    def ask(self, cluster: str, now: datetime) -> timedelta:
        """Accept a request now and return zero, or return how long it is to wait.

        Of several at once one is accepted. A sender that asks in a loop costs a read each time.
        """
        item = self._store.get(self._partition, cluster)
        wait = datetime.fromisoformat(item.value["until"]) - now if item else timedelta(0)
        # A clock that was ahead must not close this for long.
        if timedelta(0) < wait <= LOOK_PAUSE:
            return wait
        until = now + LOOK_PAUSE
        said = {"until": until.isoformat()}
        note = Item(self._partition, cluster, said, expires_at=until)
        try:
            self._store.put(note, expect=item.token if item else ABSENT)
        except StaleError:
            return LOOK_PAUSE
        return timedelta(0)

    def delete(self, cluster: str) -> None:
        """Delete the request of a cluster."""
        self._store.delete(self._partition, cluster)

    forget = delete
