"""Tables of the catalog: manifests, its revision and snapshot, pending changes, chosen clusters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import DeniedError, LostWriteError, MissingError, TemporaryError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Blobs, Item, Store
from bellhop.state.blob_garbage import BlobGarbage, blob_name
from bellhop.state.cluster import SetSelection
from bellhop.state.concurrency import until_written
from bellhop.state.payloads import Payloads
from bellhop.state.sealer import Sealer
from bellhop.state.table import SealedTable, Stored, Table

Manifest = dict[str, Any]

_NONE: Mapping[str, Manifest] = {}

Key = tuple[str, ...]
"""Kind, namespace and name of a manifest."""

_TIMES = 64
"""Times that a change of the revision is tried: each loss is another writer's success."""


class Manifests:
    """Manifests that users applied, by kind, namespace and name; sealed, as some are Secrets."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, kind: str, namespace: str, name: str) -> Stored[Manifest] | None:
        """Read a manifest as it was applied.

        Raises:
            MissingError: its payload is lost; apply it again, or delete it.
        """
        found = self._payloads.get(f"manifest/{kind}", f"{namespace}/{name}")
        return Stored(found.payload, found.item.token) if found else None

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Say whether there is such a manifest, though its payload may be lost."""
        return self._payloads.store.get(f"manifest/{kind}", f"{namespace}/{name}") is not None

    def of(self, kind: str, cached: Mapping[str, Manifest] = _NONE) -> Iterator[Manifest]:
        """Yield all manifests of one kind; those of `cached`, by their tokens, are not opened.

        Raises:
            MissingError: the payload of one is lost.
        """
        for item in self._payloads.store.query(f"manifest/{kind}"):
            if known := cached.get(item.token):
                yield known
            elif found := self._payloads.open(item):
                yield found.payload

    def listed(self, kind: str) -> Iterator[tuple[str, Manifest | None]]:
        """Yield namespace/name and manifest of all of one kind; None for one that is lost."""
        for item in self._payloads.store.query(f"manifest/{kind}"):
            try:
                found = self._payloads.open(item)
            except MissingError:
                yield item.sort, None
                continue
            if found:
                yield item.sort, found.payload

    def names(self, kind: str) -> Iterator[str]:
        """Yield namespace/name of all of one kind, without reading what they hold."""
        return (item.sort for item in self._payloads.store.query(f"manifest/{kind}"))

    def put(
        self,
        kind: str,
        namespace: str,
        name: str,
        manifest: Mapping[str, Any],
        *,
        expect: str | None = ANY,
    ) -> str:
        """Write a manifest, and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        sort = f"{namespace}/{name}"
        return self._payloads.put(f"manifest/{kind}", sort, {}, manifest, expect=expect)

    def delete(self, kind: str, namespace: str, name: str, *, expect: str | None = ANY) -> bool:
        """Delete a manifest; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.delete(f"manifest/{kind}", f"{namespace}/{name}", expect=expect)


class Revision(Struct, frozen=True):
    """The current revision of the catalog.

    `number` grows with each change. `declared` and `clusters` are marks, drawn again when users'
    rules or the clusters change: a cached half is current as long as its mark is. `blob` names the
    snapshot of the rules of the mark `laid`, if there is one. `changes` are the last marks, each
    with the keys of the manifests that changed between it and the one before.
    """

    number: int = 0
    declared: str = ""
    clusters: str = ""
    blob: str = ""
    laid: str = ""
    changes: tuple[tuple[str, tuple[Key, ...]], ...] = ()

    def since(self, mark: str) -> list[Key] | None:
        """Return the keys of the manifests that changed since a mark; None if that is unknown."""
        if mark == self.declared:
            return []
        for place, (each, _) in enumerate(self.changes, 1):
            if each == mark:
                return [key for _, keys in self.changes[place:] for key in keys]
        return None

    def declaring(self, keys: Sequence[Key] | None) -> Revision:
        """Draw a mark of the rules for manifests that changed; without keys, for any of them."""
        mark = _drawn()
        known = [*(self.changes or [(self.declared, ())]), (mark, keys)] if keys is not None else []
        while sum(max(1, len(each)) for _, each in known[1:]) > _REMEMBERED:
            known = known[1:]
        # The changes before the first mark are unknown.
        changes = ((known[0][0] if known else mark, ()), *known[1:])
        new = replace(self, declared=mark, changes=changes)
        return new if new.since(self.laid) is not None else replace(new, blob="", laid="")


Half = Literal["declared", "clusters"]

_NUMBER = "number"

SHARES = tuple(f"catalog/{share}" for share in "0123")
"""Partitions with the number of the revision beside it: every event reads one four times."""

_REMEMBERED = 16
"""Keys that a revision names: it stays small."""


class CatalogRevision(Table[Revision]):
    """The record by which a catalog in memory is current or stale, and shares of it to ask.

      a writer   the revision: number n ─► each share: n, unless it says more ─► changed
      a reader   any one share: more than the number in memory? ─► the revision

    A share is never behind a finished change, so a reader may ask any of them. A change in progress
    may be in one share and not yet in another: its messages are published when it is in all of
    them. A worker that dies before that has left a record in `Pending`.
    """

    kind = Revision
    partition, sort = "catalog", "revision"

    def __init__(self, store: Store, trash: BlobGarbage, clock: Clock) -> None:
        super().__init__(store)
        self._trash = trash
        self._clock = clock

    def read(self) -> Revision:
        """Read the current revision."""
        return self.kept().value

    def stands(self, number: int) -> bool:
        """Say whether a number is that of the last change.

        False as well where that is unknown: no change was made since there are shares.
        """
        share = self._store.get(SHARES[os.urandom(1)[0] % len(SHARES)], _NUMBER)
        return share is not None and share.value["number"] <= number

    def kept(self) -> Stored[Revision]:
        """Read the current revision, with the token to write it."""
        return self.get() or Stored(Revision(), ABSENT)

    def blob_name(self) -> str:
        """Return a fresh name for a blob that the revision may name."""
        return blob_name(*self.place())

    def discard(self, blob: str) -> None:
        """Have a blob collected if the revision does not name it in a day."""
        if blob:
            self._trash.put(blob, *self.place(), self._clock.now())

    def change(self, *halves: Half, keys: Sequence[Key] | None = None) -> Revision:
        """Record that one half of every cached catalog is out of date, or both.

        `keys` name the manifests; without them all rules are read again.

        Raises:
            StaleError: others change it all the time.
        """
        revision = self._change(halves, keys)
        for share in SHARES:
            self._write_share(share, revision.number)
        return revision

    def _change(self, halves: Sequence[Half], keys: Sequence[Key] | None) -> Revision:
        kept = self.kept()
        with suppress(LostWriteError):
            return self._replace(kept, kept.value.clusters, halves, keys)
        return self._replace_newest(kept.value.clusters, halves, keys)

    @until_written("publish the change of the catalog", _TIMES, "others change it all the time")
    def _replace_newest(
        self, clusters: str, halves: Sequence[Half], keys: Sequence[Key] | None
    ) -> Revision:
        return self._replace(self.kept(), clusters, halves, keys)

    def _replace(
        self,
        kept: Stored[Revision],
        clusters: str,
        halves: Sequence[Half],
        keys: Sequence[Key] | None,
    ) -> Revision:
        """Write the next revision, unless another worker has drawn a mark since `clusters`."""
        old = new = kept.value
        if "clusters" in halves and old.clusters == clusters:
            new = replace(new, clusters=_drawn())
        if "declared" in halves:
            new = new.declaring(keys)
        if new == old:
            # The other worker drew its mark after our change was written: it serves for both.
            return old
        new = replace(new, number=old.number + 1)
        if new.blob != old.blob:
            self.discard(old.blob)
        self.put(new, expect=kept.token)
        return new

    @until_written("publish the catalog's revision", _TIMES)
    def _write_share(self, share: str, number: int) -> None:
        """Write a number to a share, unless a later change has written a higher one."""
        said = self._store.get(share, _NUMBER)
        if said is None or said.value["number"] < number:
            item = Item(share, _NUMBER, {"number": number})
            self._store.put(item, expect=said.token if said else ABSENT)


def _drawn() -> str:
    return os.urandom(8).hex()


UPGRADED_FROM = "kubernetes"
"""Key of the former version in a change of one cluster's Kubernetes and of nothing else."""


_ABANDONED = timedelta(seconds=30)
"""A worker is no longer at work on a change that was recorded longer ago."""


class Pending:
    """Changes whose follow-up messages may not have been published."""

    def __init__(self, payloads: Payloads, clock: Clock) -> None:
        self._payloads = payloads
        self._clock = clock

    def all(self) -> Iterator[tuple[str, Mapping[str, Any], datetime]]:
        """Yield name, content and time of each change."""
        for found in self._payloads.all("pending"):
            yield found.item.sort, found.payload, datetime.fromisoformat(found.head["at"])

    def abandoned(self) -> dict[str, Mapping[str, Any]]:
        """Return the changes, by name, that no worker is at work on any more."""
        now = self._clock.now()
        # One of the future was recorded by a clock that was ahead.
        return {name: change for name, change, at in self.all() if abs(now - at) > _ABANDONED}

    def put(self, name: str, change: Mapping[str, Any]) -> None:
        """Record a change before it is made, so that the next worker catches up after a death."""
        head = {"at": self._clock.now().isoformat()}
        # As a payload it may name ten thousand objects.
        self._payloads.put("pending", name, head, change, expect=ABSENT)

    def delete(self, name: str) -> None:
        """Delete a change whose messages are all published."""
        self._payloads.delete("pending", name)


class Snapshot:
    """All manifests of some kinds as one sealed blob: a cold start reads it instead of each.

      a writer   pending ─► manifests ─► the revision: a fresh mark, and the keys of the manifests
                                         that changed since the marks before it
      a reader   the revision: the changes since the rules in memory, or else since the blob's?
                   ├ a few ─────────────► these manifests, each
                   └ unknown, or lost ──► all manifests
                 many, or all: the revision: still that mark? ─► a blob ─► the revision names it
                                                                           on condition

    A blob holds at least what its mark says: the mark is read before the manifests, and drawn after
    the manifests that it names were written. It may hold more, of a writer that is about to draw a
    mark. So do rules in memory with the manifests read again that the revision names: every writer
    draws a mark of its own that names its manifests, however many writers were quicker.
    A blob is never taken for newer than it is, as its mark is stored beside it: in a store that was
    restored from a backup, too. After a death anywhere the next reader finds no blob and writes
    one; blobs that no record names are collected.
    """

    def __init__(self, blobs: Blobs, sealer: Sealer, revision: CatalogRevision) -> None:
        self._blobs = blobs
        self._sealer = sealer
        self._revision = revision

    def get(self, revision: Revision, kinds: Iterable[str]) -> dict[str, list[Manifest]] | None:
        """Read the manifests of a revision by kind; None where they must be read one by one."""
        if not revision.blob:
            return None
        try:
            sealed = self._blobs.get(revision.blob)
        except MissingError:
            return None
        # One of another version of Bellhop may have fewer kinds, or no such mark.
        found: dict[str, list[Manifest]]
        found = self._sealer.open(sealed, revision.blob).get(revision.laid, {})
        return found if set(kinds) <= set(found) else None

    def put(self, mark: str, manifests: Mapping[str, list[Manifest]]) -> None:
        """Write the manifests that were read after a mark, unless the mark is out of date."""
        now = self._revision.kept()
        if not mark or now.value.declared != mark:
            return
        name = self._revision.blob_name()
        with suppress(TemporaryError, DeniedError):
            # It only saves work: the next cold start writes it. A reader without the right to
            # write leaves it out.
            self._revision.discard(name)
            self._blobs.put(name, self._sealer.seal({mark: dict(manifests)}, name))
            self._revision.discard(now.value.blob)
            self._revision.put(replace(now.value, blob=name, laid=mark), expect=now.token)


class SetSelections(SealedTable[SetSelection, str]):
    """Clusters that sets with maxReplicas have chosen; those of a very long set lie apart.

    One that is lost is chosen again.
    """

    kind = SetSelection
    partition, sort = "choice", "{set}"

    def all(self) -> dict[str, Stored[SetSelection]]:
        """Read all choices by the places of their sets."""
        return dict(self.rows())

    def restore(self, *_: Item | MissingError) -> SetSelection:
        """Return a choice of no cluster."""
        return SetSelection()
