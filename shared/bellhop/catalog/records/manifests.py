"""What users declared, the revision that changes with it, and changes that are under way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import MissingError, StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.blob_garbage import BlobGarbage, blob_name
from bellhop.state.concurrency import until_written
from bellhop.state.payloads import Payloads
from bellhop.state.table import Stored, decode, encode

Manifest = dict[str, Any]

_NONE: Mapping[str, Manifest] = {}

Key = tuple[str, ...]
"""Kind, namespace and name of what was declared."""

_PATIENCE = 64
"""Times that a change of the revision is tried: each loss is somebody else's success."""


class Manifests:
    """What users declared, by kind, namespace and name; sealed, as Secrets are among it."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, kind: str, namespace: str, name: str) -> Stored[Manifest] | None:
        """Read what a user declared, as it was written.

        Raises:
            MissingError: its payload is lost; declaring it again, or deleting it, is the cure.
        """
        found = self._payloads.get(f"manifest/{kind}", f"{namespace}/{name}")
        return Stored(found.payload, found.item.token) if found else None

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Say whether there is such a manifest, though its payload may be lost."""
        return self._payloads.store.get(f"manifest/{kind}", f"{namespace}/{name}") is not None

    def of(self, kind: str, at_hand: Mapping[str, Manifest] = _NONE) -> Iterator[Manifest]:
        """Yield all that users declared of one kind; what is at hand, by its token, is not opened.

        Raises:
            MissingError: the payload of one is lost.
        """
        for item in self._payloads.store.query(f"manifest/{kind}"):
            if known := at_hand.get(item.token):
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
        """Write what a user declared, and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        sort = f"{namespace}/{name}"
        return self._payloads.put(f"manifest/{kind}", sort, {}, manifest, expect=expect)

    def delete(self, kind: str, namespace: str, name: str, *, expect: str | None = ANY) -> bool:
        """Delete what a user declared; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.delete(f"manifest/{kind}", f"{namespace}/{name}", expect=expect)


class Revision(Struct, frozen=True):
    """Which catalog counts.

    `number` grows with each change. `declared` and `clusters` are drawn anew when users' rules or
    the clusters change: what was kept of a half is good as long as its mark stands. `blob` is
    where the rules of the mark `laid` lie together, if anybody has laid them there. `changes` are
    the last marks, each with the keys of what was declared between it and the one before.
    """

    number: int = 0
    declared: str = ""
    clusters: str = ""
    blob: str = ""
    laid: str = ""
    changes: tuple[tuple[str, tuple[Key, ...]], ...] = ()

    def since(self, mark: str) -> list[Key] | None:
        """Name what was declared since a mark; None if that is not known any more."""
        if mark == self.declared:
            return []
        for place, (each, _) in enumerate(self.changes, 1):
            if each == mark:
                return [key for _, keys in self.changes[place:] for key in keys]
        return None

    def declaring(self, keys: Sequence[Key] | None) -> Revision:
        """Draw a mark of the rules for what was declared; without keys that may be anything."""
        mark = _drawn()
        known = [*(self.changes or [(self.declared, ())]), (mark, keys)] if keys is not None else []
        while sum(max(1, len(each)) for _, each in known[1:]) > _REMEMBERED:
            known = known[1:]
        # What led to the first mark leads from nowhere.
        changes = ((known[0][0] if known else mark, ()), *known[1:])
        new = replace(self, declared=mark, changes=changes)
        return new if new.since(self.laid) is not None else replace(new, blob="", laid="")


Half = Literal["declared", "clusters"]

_PLACE = ("catalog", "revision")
_NUMBER = "number"
_BUSY = "cannot publish the change of the catalog: others change it all the time"

SHARES = tuple(f"catalog/{share}" for share in "0123")
"""Where the number of a revision lies beside it: every event asks four times whether it stands."""

_REMEMBERED = 16
"""Keys that a revision tells of: it stays small."""


class CatalogRevision:
    """The record that tells whether a catalog in memory still counts, and shares of it to ask.

     who changes   the revision: number n ─► each share: n, unless it says more ─► made
     who asks      any one share: more than what is at hand? ─► the revision

    A share is never behind a change that was made, so it does not matter which one is asked. What
    is under way may be seen in one share and not yet in another: what follows from a change is
    published when all of them tell it. Who dies before that has left a note of the change.
    """

    def __init__(self, store: Store, trash: BlobGarbage, clock: Clock) -> None:
        self._store = store
        self._trash = trash
        self._clock = clock

    def read(self) -> Revision:
        """Read which catalog counts."""
        return self.kept().value

    def stands(self, number: int) -> bool:
        """Say whether no later change was made than the one with this number.

        False as well where nobody knows: no change was made since there are shares.
        """
        told = self._store.get(SHARES[os.urandom(1)[0] % len(SHARES)], _NUMBER)
        return told is not None and told.value["number"] <= number

    def kept(self) -> Stored[Revision]:
        """Read which catalog counts, with the token for who is about to write it."""
        item = self._store.get(*_PLACE)
        return (
            Stored(decode(Revision, item.value), item.token) if item else Stored(Revision(), ABSENT)
        )

    def put(self, revision: Revision, *, expect: str) -> None:
        """Write which catalog counts.

        Raises:
            StaleError: something else than `expect` is there.
        """
        self._store.put(Item(*_PLACE, encode(revision)), expect=expect)

    def blob_name(self) -> str:
        """Return a fresh name for a blob that the revision may name."""
        return blob_name(*_PLACE)

    def discard(self, blob: str) -> None:
        """Have a blob collected if the revision does not name it in a day."""
        if blob:
            self._trash.put(blob, *_PLACE, self._clock.now())

    def change(self, *halves: Half, keys: Sequence[Key] | None = None) -> Revision:
        """Tell every reader that a half of its catalog is out of date, or both.

        `keys` are what was declared; without them all rules are read again.

        Raises:
            StaleError: others change it all the time.
        """
        revision = self._change(halves, keys)
        for share in SHARES:
            self._tell(share, revision.number)
        return revision

    def _change(self, halves: Sequence[Half], keys: Sequence[Key] | None) -> Revision:
        first: Revision | None = None
        for _ in range(_PATIENCE):
            kept = self.kept()
            old = kept.value
            first = first or old
            new = old
            if "clusters" in halves and old.clusters == first.clusters:
                new = replace(new, clusters=_drawn())
            if "declared" in halves:
                new = new.declaring(keys)
            if new == old:
                # Whoever was quicker drew this after what we changed was written: for us too.
                return old
            new = replace(new, number=old.number + 1)
            if new.blob != old.blob:
                self.discard(old.blob)
            try:
                self.put(new, expect=kept.token)
            except StaleError:
                continue
            return new
        raise StaleError(_BUSY)

    @until_written("publish the catalog's revision", _PATIENCE)
    def _tell(self, share: str, number: int) -> None:
        """Have a share say a number, unless somebody who came later has made it say more."""
        said = self._store.get(share, _NUMBER)
        if said is None or said.value["number"] < number:
            item = Item(share, _NUMBER, {"number": number})
            self._store.put(item, expect=said.token if said else ABSENT)


def _drawn() -> str:
    return os.urandom(8).hex()


UPGRADED_FROM = "kubernetes"
"""In a change of one cluster's Kubernetes and of nothing else: the version that it had before."""


_ABANDONED = timedelta(seconds=30)
"""A change noted longer ago than this belongs to nobody who is still at it."""


class Pending:
    """Changes whose follow-up messages may not have been published."""

    def __init__(self, payloads: Payloads, clock: Clock) -> None:
        self._payloads = payloads
        self._clock = clock

    def all(self) -> Iterator[tuple[str, Mapping[str, Any], datetime]]:
        """Yield each change's name, what it was, and when it was noted."""
        for found in self._payloads.all("pending"):
            yield found.item.sort, found.payload, datetime.fromisoformat(found.head["at"])

    def abandoned(self) -> dict[str, Mapping[str, Any]]:
        """Return the changes, by name, whose follow-up nobody is at work on any more."""
        now = self._clock.now()
        # One of the future was noted by a clock that was ahead.
        return {name: change for name, change, at in self.all() if abs(now - at) > _ABANDONED}

    def put(self, name: str, change: Mapping[str, Any]) -> None:
        """Note a change before it is made, so that a crash half-way is made good."""
        head = {"at": self._clock.now().isoformat()}
        # As a payload it may name ten thousand objects.
        self._payloads.put("pending", name, head, change, expect=ABSENT)

    def delete(self, name: str) -> None:
        """Note that a change's messages are all published."""
        self._payloads.delete("pending", name)
