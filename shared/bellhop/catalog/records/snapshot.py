"""The rules that users declared, as one sealed blob: a cold start reads it instead of each.

  who declares   pending ─► manifests ─► the revision: a fresh mark, and what was declared
                                         since the marks before it ─► reads, too
  who reads      the revision: what was declared since the rules at hand, or else the blob's?
                   ├ a few ────────────► these manifests, each
                   └ not known, or lost ► all manifests
                 many, or all: the revision: still that mark? ─► a blob ─► the revision names it
                                                                           on condition

A blob holds at least what its mark says: the mark is read before the manifests, and drawn after
those it tells of were written. It may hold more, of one who is about to draw a mark.
So do rules at hand with those read again that the revision names: everybody who declares draws a
mark of his own that names what he wrote, however many were quicker.
A blob is never taken for newer than it is, as its mark is named where it is: in a store that was
restored from a backup, too. Killed anywhere, the next reader finds no blob and writes one; those
that nobody names are collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from msgspec.structs import replace

from bellhop.catalog.records.manifests import CatalogRevision, Manifest, Revision
from bellhop.errors import DeniedError, MissingError, TemporaryError
from bellhop.ports.blobs import Blobs
from bellhop.state.sealer import Sealer


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
        # One of another version of Bellhop may know fewer kinds, or say nothing of its mark.
        found: dict[str, list[Manifest]]
        found = self._sealer.open(sealed, revision.blob).get(revision.laid, {})
        return found if set(kinds) <= set(found) else None

    def put(self, mark: str, manifests: Mapping[str, list[Manifest]]) -> None:
        """Write what was read after a mark, unless the mark is out of date."""
        now = self._revision.kept()
        if not mark or now.value.declared != mark:
            return
        name = self._revision.blob_name()
        with suppress(TemporaryError, DeniedError):
            # It saves work and bears nothing: the next cold start writes it. Who may not write
            # only looks.
            self._revision.discard(name)
            self._blobs.put(name, self._sealer.seal({mark: dict(manifests)}, name))
            self._revision.discard(now.value.blob)
            self._revision.put(replace(now.value, blob=name, laid=mark), expect=now.token)
