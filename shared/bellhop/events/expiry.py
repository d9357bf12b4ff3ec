"""Expiry of CloudEvents: they count as deleted after the time that their source sets.

  an event is evaluated ─► a timer is set for its end ─► evaluated then ─► buried, and evaluated

The timer only requests an evaluation, which decides whether the time is over.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import CLOUD_EVENT
from bellhop.rendering.observation import bury
from bellhop.state.match import Observation
from bellhop.state.messages import Evaluate
from bellhop.state.records import Records
from bellhop.state.table import Stored
from bellhop.state.timers import SKEW

_AGAIN = timedelta(minutes=1)
"""After which it is seen whether a clock that jumped ahead has come back."""


class Expiry:
    """Expires CloudEvents by the annotation of their sources."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def heed(self, catalog: Catalog, seen: Stored[Observation]) -> Stored[Observation]:
        """Return an observation; a CloudEvent whose time is over is buried first.

        Before that time a timer is set for it.
        """
        event = seen.value
        source = catalog.sources.get(event.key.namespace)
        ttl = source.cloud_event_ttl if source and event.key.gvk == CLOUD_EVENT else None
        if ttl is None or event.gone:
            return seen
        now = self._records.clock.now()
        if event.seen_at > now + SKEW:
            # A clock that was ahead has said so; it was seen by now at the latest.
            self._records.observations.put(replace(event, seen_at=now), asked=seen.token)
            put_right = self._records.observations.get(event.cluster, event.key)
            return self.heed(catalog, put_right) if put_right else seen
        ends = event.seen_at + ttl
        if ends <= now and self._records.pulses.doubts(now):
            ends = now + _AGAIN
        if now < ends:
            name = f"cloud-event/{event.cluster}/{event.key}"
            kept = self._records.timers.get(name)
            if kept is None or kept.value.at != ends:
                body = Evaluate(event.cluster, str(event.key)).message().body
                self._records.timers.set(name, ends, body)
            return seen
        tomb = bury(event.cluster, event.key, event.uid, event.resource_version, now)
        self._records.observations.put(tomb, asked=seen.token)
        return self._records.observations.get(event.cluster, event.key) or seen
