"""What matches a source now: its matches, or what its aggregatedSelection made of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from bellhop.api.kinds import EventSource
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.errors import TemporaryError
from bellhop.events.object_cache import Objects
from bellhop.state.record import Selection
from bellhop.state.records import Records

Marks = tuple[tuple[str, str], ...]
"""Objects by the text of their keys, each with a digest of its state."""


Found = list[tuple[ObjectKey, Mapping[str, Any]]]
"""Objects by key, as far as they are there."""


class Reports:
    """Reports by cluster and source, as who renders them reads them."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._objects = Objects(records)

    def awaited(self, cluster: str, source: EventSource) -> bool:
        """Say whether nobody knows yet what a source selects among all that matches it."""
        if not source.aggregation:
            return False
        kept = self._records.selections.head(cluster, source.name)
        return kept is None or not kept.value.made

    def marks(self, cluster: str, source: EventSource) -> Marks:
        """Return all that is in a report: by key, or in the order that a script gave it."""
        if source.aggregation:
            return self._selection(cluster, source).marks
        return tuple(self._records.matches.marks(cluster, source.name))

    def mark(self, cluster: str, source: EventSource, key: str) -> str:
        """Return the digest of one object; empty where it is not in the report."""
        if source.aggregation:
            selected = self._selection(cluster, source).by_key.get(key)
            return selected.digest if selected else ""
        found = self._records.matches.get(cluster, source.name, ObjectKey.parse(key))
        return found.value.digest if found else ""

    def objects(self, cluster: str, source: EventSource, marks: Marks, *, many: bool) -> Found:
        """Return what is marked, by key; nothing of an object where the source collects none.

        An object may be newer than its mark: who judges it is about to tell.
        """
        if source.aggregation:
            return self._selected(self._selection(cluster, source), marks)
        matching = sorted((ObjectKey.parse(key), mark) for key, mark in marks)
        found: list[tuple[ObjectKey, Mapping[str, Any] | None]] = []
        for key, mark in matching:
            if not source.collect_resources and key.gvk != CLOUD_EVENT:
                found.append((key, {}))
            elif many:
                found.append((key, self._objects.get(cluster, source.name, key, mark)))
            else:
                # Nobody renders one object twice: it is not worth keeping.
                found.append((key, self._objects.newest(cluster, source.name, key)))
        return [(key, manifest) for key, manifest in found if manifest is not None]

    def lacks(self, cluster: str, source: EventSource, marks: Marks, found: Found) -> bool:
        """Say whether an object is held of which nothing is known: it cannot be rendered again.

        Raises:
            TemporaryError: one that matches is forgotten just now; its match ends, or is held, or
                the object is found anew.
        """
        if source.aggregation:
            return False
        there = {key for key, _ in found}
        held = False
        for key in map(ObjectKey.parse, dict(marks)):
            kept = None if key in there else self._records.matches.get(cluster, source.name, key)
            if kept is None or not kept.value.matching or key.gvk == CLOUD_EVENT:
                continue
            if not kept.value.held:
                raise TemporaryError(
                    f"cannot render '{key}' in '{cluster}' yet: it is gone, and whether it still"
                    f" matches '{source.name}' is about to be evaluated"
                )
            held = True
        return held

    def _selection(self, cluster: str, source: EventSource) -> Selection:
        kept = self._records.selections.get(cluster, source.name)
        return kept.value if kept else Selection(cluster, source.name, self._records.clock.now())

    def _selected(self, selection: Selection, marks: Sequence[tuple[str, str]]) -> Found:
        found = (selection.by_key.get(key) for key, _ in marks)
        # A template may change what it is given.
        return [(each.key, copy.deepcopy(each.manifest)) for each in found if each]
