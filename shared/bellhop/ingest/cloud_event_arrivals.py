"""CloudEvents that were let in: for which EventSources each is kept, as what, and in which place.

  event ─► sources in force that take it ─► the note of its first arrival ─► an observation

What is kept is the newest event of a source and subject, for each EventSource by itself: one that
it does not take changes nothing for it. From there on it is evaluated as an object is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from bellhop.ingest.records.arrivals import Arrival
from bellhop.ingest.records.observations import TOMBSTONE
from bellhop.rendering.cloud_event_filters import taking
from bellhop.rendering.cloud_events import CloudEvent
from bellhop.state.record import Listener, Observation
from bellhop.state.records import Records

_REPEATED = TOMBSTONE - timedelta(days=1)
"""An event that first came longer ago is a repeat, and all that it was to do is done.

What withdrew it may be forgotten soon after; it must not bring it back.
"""

Taken = Sequence[tuple[CloudEvent, Sequence[str]]]
"""Events, each with the EventSources that take it."""


class Arriving:
    """Makes observations of CloudEvents."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def taken(self, listeners: Sequence[Listener], events: Iterable[CloudEvent]) -> Taken:
        """Return the events that some EventSource takes."""
        found = ((each, list(taking(listeners, each.content))) for each in events)
        return [(each, sources) for each, sources in found if sources]

    def observe(self, cluster: str, taken: Taken, now: datetime) -> Iterator[Observation]:
        """Yield what is to be kept of events, in their order; each is noted just before."""
        for event, listeners in taken:
            for listener in listeners:
                seen = self._observe(cluster, listener, event, now)
                if now - seen.seen_at < _REPEATED:
                    yield seen

    def _observe(
        self, cluster: str, listener: str, event: CloudEvent, now: datetime
    ) -> Observation:
        key = event.key(listener)
        head = self._records.observations.head(cluster, key)
        last = head.resource_version if head else 0
        came = Arrival(now, last if head and head.uid == event.uid else event.order(now, last))
        first = self._records.arrivals.first(cluster, listener, event.uid, came)
        manifest = event.manifest(listener)
        return Observation(cluster, key, event.uid, first.order, manifest, first.at)
