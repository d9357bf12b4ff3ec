"""Reports: the objects that match a source now, or that its aggregatedSelection selected."""

from __future__ import annotations

import copy
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from bellhop.api.kinds import EventSource
from bellhop.api.names import classifier_of
from bellhop.catalog.catalog import Catalog
from bellhop.core.digest import content, digest
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.errors import TemporaryError
from bellhop.state.envelope import Envelope
from bellhop.state.event_recorder import Origin
from bellhop.state.match import Match, Selection
from bellhop.state.messages import Aggregate, Instantiate, UpdateLabels
from bellhop.state.records import Records

Marks = tuple[tuple[str, str], ...]
"""Objects by the text of their keys, each with a digest of its state."""

Found = list[tuple[ObjectKey, Mapping[str, Any]]]
"""Objects by key; those that exist no more are missing."""

MOST_BYTES = 64 * 1024 * 1024
"""Size of the cached objects. They are cached as JSON, so that no rendering can change them."""

_CacheKey = tuple[str, ObjectKey]


class Objects:
    """A cache of objects by the digests of their matches; shared between threads.

    A trigger for all objects is rendered with all of them whenever one changes; the others need
    not be read and unsealed again. A match has the digest of one state of its object, and only an
    object of that digest is cached.

    A deleted object that still matches, since it is not evaluated yet or is held, is returned in
    its last state: its profile is kept until the match ends.
    """

    def __init__(self, records: Records, most_bytes: int = MOST_BYTES) -> None:
        self._records = records
        self._most = most_bytes
        self._lock = threading.Lock()
        self._cached: OrderedDict[_CacheKey, tuple[str, str]] = OrderedDict()
        self._size = 0

    def get(self, cluster: str, source: str, key: ObjectKey, mark: str) -> dict[str, Any] | None:
        """Return an object in the state of a digest, or else its newest or last state.

        If it is newer than the digest, a worker is about to publish its evaluation.
        """
        with self._lock:
            found, text = self._cached.get((cluster, key), ("", ""))
            if found == mark:
                self._cached.move_to_end((cluster, key))
        if found == mark:
            kept: dict[str, Any] = json.loads(text)
            return kept
        manifest = self.newest(cluster, source, key)
        if manifest and digest(content(manifest)) == mark:
            self._store((cluster, key), mark, json.dumps(manifest))
        return manifest

    def newest(self, cluster: str, source: str, key: ObjectKey) -> dict[str, Any] | None:
        """Return an object's newest or last state; None if neither is stored."""
        seen = self._records.observations.get(cluster, key)
        manifest = seen.value.manifest if seen else None
        if manifest is None:
            manifest = self._records.observations.last(cluster, key)
        if manifest is None:
            manifest = self._records.holds.state(cluster, source, key)
        return None if manifest is None else dict(manifest)

    def _store(self, place: _CacheKey, mark: str, text: str) -> None:
        with self._lock:
            self._size += len(text) - len(self._cached.pop(place, ("", ""))[1])
            self._cached[place] = mark, text
            while self._size > self._most:
                _, (_, dropped) = self._cached.popitem(last=False)
                self._size -= len(dropped)


def inputs_digest(revision: int, marks: Marks) -> str:
    """Digest what a profile for all objects is rendered from: the catalog and the report."""
    return digest([revision, marks])


class Reports:
    """Reports by cluster and source, for rendering."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._objects = Objects(records)

    def awaited(self, cluster: str, source: EventSource) -> bool:
        """Return whether a source's aggregation has not run yet."""
        if not source.aggregation:
            return False
        kept = self._records.selections.head(cluster, source.name)
        return kept is None or not kept.value.made

    def marks(self, cluster: str, source: EventSource) -> Marks:
        """Return all objects of a report: by key, or in the order that a script returned."""
        if source.aggregation:
            return self._selection(cluster, source).marks
        return tuple(self._records.matches.marks(cluster, source.name))

    def mark(self, cluster: str, source: EventSource, key: str) -> str:
        """Return the digest of one object; empty if it is not in the report."""
        if source.aggregation:
            selected = self._selection(cluster, source).by_key.get(key)
            return selected.digest if selected else ""
        found = self._records.matches.get(cluster, source.name, ObjectKey.parse(key))
        return found.value.digest if found else ""

    def objects(self, cluster: str, source: EventSource, marks: Marks, *, many: bool) -> Found:
        """Return objects by key; without content if the source collects no resources.

        An object may be newer than its digest: a worker is about to publish its evaluation.
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
                # One object is not rendered twice, so it is not cached.
                found.append((key, self._objects.newest(cluster, source.name, key)))
        return [(key, manifest) for key, manifest in found if manifest is not None]

    def lacks(self, cluster: str, source: EventSource, marks: Marks, found: Found) -> bool:
        """Return whether an object of a held match is lost, so that it cannot be rendered again.

        Raises:
            TemporaryError: an object was deleted just now; its match is about to end or be held.
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
        # A template may change its input.
        return [(each.key, copy.deepcopy(each.manifest)) for each in found if each]


def follow_up(catalog: Catalog, match: Match, origin: Origin) -> list[Envelope]:
    """Return the messages to publish after a match changed."""
    cluster, source = match.cluster, catalog.sources.get(match.source)
    if source and source.aggregation:
        # Its report depends on all objects that match.
        return [Aggregate(cluster, source.name, origin.trace, origin.event_at)]
    triggers = catalog.triggers_on(cluster, match.source)
    if not triggers and classifier_of(match.source):
        return [UpdateLabels(cluster)]
    return [
        Instantiate(
            name,
            cluster,
            str(match.key) if catalog.triggers[name].one_for_event else "",
            trace=origin.trace,
            event_at=origin.event_at,
        )
        for name in triggers
    ]
