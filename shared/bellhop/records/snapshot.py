"""The rules that users declared, as one sealed blob: a cold start reads it instead of each.

  who declares   pending ─► manifests ─► the revision: a fresh mark, and no blob ─► reads, too
  who reads      the revision: does it name a blob?
                   ├ yes ───────────► its manifests
                   └ no, or lost ───► the manifests ─► the revision: still that mark?
                                        ─► a blob ─► the revision names it, on condition

A blob holds at least what the revision's mark says: the mark is read before the manifests, and
drawn after those it tells of were written. It may hold more, of one who is about to draw a mark.
It is never taken for newer than it is, as it is named where the mark is and goes with it: in a
store that was restored from a backup, too. Killed anywhere, the next reader finds no blob and
writes one; those that nobody names are collected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from bellhop.errors import MissingError, TemporaryError
from bellhop.ports.blobs import Blobs
from bellhop.records.declared import CatalogRevision, Manifest, Revision
from bellhop.records.sealing import Sealer


class Snapshot:
    """All manifests of some kinds, in one blob."""

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
        found: dict[str, list[Manifest]] = self._sealer.open(sealed, revision.blob)
        # One of another version of Bellhop may know fewer kinds.
        return found if set(kinds) <= set(found) else None

    def put(self, mark: str, manifests: Mapping[str, list[Manifest]]) -> None:
        """Write what was read after a mark, unless the mark is out of date."""
        now = self._revision.kept()
        if not mark or now.value.declared != mark:
            return
        name = f"catalog/{os.urandom(8).hex()}"
        with suppress(TemporaryError):
            # It saves work and bears nothing: the next cold start writes it.
            self._revision.discard(name)
            self._blobs.put(name, self._sealer.seal(dict(manifests), name))
            self._revision.discard(now.value.blob)
            self._revision.put(replace(now.value, blob=name), expect=now.token)
