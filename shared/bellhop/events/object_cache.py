"""Objects that match, as they were judged, kept in memory between two renderings.

A trigger for all objects is rendered with all of them whenever one changes: the others need not
be read and unsealed again. A match says by a digest which state of its object it means, and what
is kept of that digest is that state, however old it is.

What is gone and matches still, because nobody has judged it yet or because it is held, is as it
was last: a profile is made of it until its match ends.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any

from bellhop.core.digest import content, digest
from bellhop.core.gvk import ObjectKey
from bellhop.state.records import Records

MOST_BYTES = 64 * 1024 * 1024
"""Of all that is kept, as JSON: no rendering can change it, and it takes what it is said to."""

_Place = tuple[str, ObjectKey]


class Objects:
    """What matches looks like; shared between threads."""

    def __init__(self, records: Records, most_bytes: int = MOST_BYTES) -> None:
        self._records = records
        self._most = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Place, tuple[str, str]] = OrderedDict()
        self._size = 0

    def get(self, cluster: str, source: str, key: ObjectKey, mark: str) -> dict[str, Any] | None:
        """Return an object that matches in the state of a digest, or as it is now, or was last.

        It may be newer than the digest: who judges it is about to tell.
        """
        with self._lock:
            found, text = self._kept.get((cluster, key), ("", ""))
            if found == mark:
                self._kept.move_to_end((cluster, key))
        if found == mark:
            kept: dict[str, Any] = json.loads(text)
            return kept
        manifest = self.newest(cluster, source, key)
        if manifest and digest(content(manifest)) == mark:
            self._keep((cluster, key), mark, json.dumps(manifest))
        return manifest

    def newest(self, cluster: str, source: str, key: ObjectKey) -> dict[str, Any] | None:
        """Return an object as it is now, or was last; None if that is known no more."""
        seen = self._records.observations.get(cluster, key)
        manifest = seen.value.manifest if seen else None
        if manifest is None:
            manifest = self._records.observations.last(cluster, key)
        if manifest is None:
            manifest = self._records.holds.state(cluster, source, key)
        return None if manifest is None else dict(manifest)

    def _keep(self, place: _Place, mark: str, text: str) -> None:
        """Keep one, and of the others those that were asked for last."""
        with self._lock:
            self._size += len(text) - len(self._kept.pop(place, ("", ""))[1])
            self._kept[place] = mark, text
            while self._size > self._most:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._size -= len(dropped)
