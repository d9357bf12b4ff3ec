"""The rules that users declared, as one sealed record: a cold start reads it instead of each.

  who declares   pending ─► manifests ─► the revision: a fresh mark ─► reads, as everybody does
  who reads      the revision's mark ─► the snapshot: is it of that mark?
                   ├ yes ───────────► its manifests
                   └ no, or lost ───► the manifests ─► the snapshot's head ─► the revision: still
                                      that mark? ─► the snapshot, on condition of that head

A snapshot holds at least what its mark says: the mark is read before the manifests, and drawn
after those it tells of were written. It may hold more, of one who is about to draw a mark.
It is never taken for newer than it is, as marks are drawn and not counted: none comes back, in a
store that was restored from a backup neither. Nor does it replace one of a later mark, which was
written after the mark had changed: whoever saw the mark unchanged after reading the head holds a
head from before. Killed anywhere, the next reader finds no snapshot of the mark and writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bellhop.errors import MissingError, TemporaryError
from bellhop.ports.store import Item
from bellhop.records.declared import CatalogRevision, Manifest
from bellhop.records.payloads import Payloads

_PLACE = ("catalog", "snapshot")


class Snapshot:
    """All manifests of some kinds, in one record."""

    def __init__(self, payloads: Payloads, revision: CatalogRevision) -> None:
        self._payloads = payloads
        self._revision = revision

    def get(self, mark: str, kinds: Iterable[str]) -> dict[str, list[Manifest]] | None:
        """Read the manifests of a mark by kind; None where they must be read one by one."""
        item = self._payloads.store.get(*_PLACE) if mark else None
        if item is None or not _holds(item, mark, kinds):
            return None
        try:
            found = self._payloads.open(item)
        except MissingError:
            return None
        # It may have been replaced meanwhile.
        return found.payload if found and _holds(found.item, mark, kinds) else None

    def put(self, mark: str, manifests: Mapping[str, list[Manifest]]) -> None:
        """Write what was read after a mark, unless the mark is out of date."""
        if not mark:
            return  # Nobody has declared anything.
        item = self._payloads.store.get(*_PLACE)
        if self._revision.read().declared != mark:
            return
        head: dict[str, Any] = {"of": mark, "kinds": sorted(manifests)}
        try:
            self._payloads.follow(item, Item(*_PLACE, head), dict(manifests))
        except TemporaryError:
            # It saves work and bears nothing: the next cold start writes it.
            return


def _holds(item: Item, mark: str, kinds: Iterable[str]) -> bool:
    """Say whether a snapshot is of a mark, and by a version that knew these kinds."""
    return item.value.get("of") == mark and set(kinds) <= set(item.value.get("kinds", ()))
