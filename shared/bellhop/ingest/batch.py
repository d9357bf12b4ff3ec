"""Batches of a forwarder, and CloudEvents: each item succeeds or fails on its own.

The answer names the failed items:

    400, 413   the item can never be stored
    503        other writers keep winning; the item can be sent again
    500        an unforeseen defect for this item; it can be sent again

A temporary failure of the store or a queue concerns no single item: the whole request fails. Items
stored before it are published, and are sent again with the others, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

from bellhop.errors import BellhopError, InvalidError, StaleError, TemporaryError, TooLargeError
from bellhop.ingest.admission import RelevantKinds
from bellhop.ingest.http import Response
from bellhop.ingest.recorder import FEW, Change, Recorder, trace
from bellhop.ingest.records import TOMBSTONE, Arrival
from bellhop.logs import Log
from bellhop.rendering.cloud_event_filters import list_accepting
from bellhop.rendering.cloud_events import CloudEvent, parse
from bellhop.rendering.observation import read_hint, read_observation, read_tombstone
from bellhop.state.ingest_policy import IngestPolicy, Listener
from bellhop.state.match import Observation
from bellhop.state.messages import ReadBack
from bellhop.state.records import Records

_REPEATED = TOMBSTONE - timedelta(days=1)
"""Age of an event's first arrival after which a repeat is ignored.

The event that withdrew it may be deleted soon after; a repeat must not restore it.
"""

Taken = Sequence[tuple[CloudEvent, Sequence[str]]]
"""Events, each with the EventSources that take it."""


class CloudEventArrivals:
    """Makes observations of CloudEvents.

      event ─► sources in force that accept it ─► the record of its first arrival ─► an observation

    The newest event of a source and subject is stored, for each EventSource separately: an event
    that it does not accept changes nothing for it. From then on it is evaluated as an object is.
    """

    def __init__(self, records: Records) -> None:
        self._records = records

    def select_accepted(self, listeners: Sequence[Listener], events: Iterable[CloudEvent]) -> Taken:
        """Return the events that some EventSource takes."""
        found = ((each, list(list_accepting(listeners, each.content))) for each in events)
        return [(each, sources) for each, sources in found if sources]

    def observe(self, cluster: str, taken: Taken, now: datetime) -> Iterator[Observation]:
        """Yield the observations of events in order; each arrival is recorded just before."""
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


BATCH = "Observations"
"""The kind of a batch, in apiVersion `bellhop.dev/v1`."""

_FORMS = ("object", "gone", "event", "hint")
_LONGEST_NAME = 300


class Origin(NamedTuple):
    """The cluster that a batch comes from, its gate, what counts in it, and the time by now."""

    cluster: str
    gate: IngestPolicy
    kinds: RelevantKinds
    now: datetime


class Batches:
    """Takes batches for one process of ingest; shared between threads."""

    def __init__(
        self, records: Records, recorder: Recorder, arriving: CloudEventArrivals, log: Log
    ) -> None:
        self._records = records
        self._recorder = recorder
        self._arriving = arriving
        self._log = log

    def take(
        self, cluster: str, items: Sequence[Any], gate: IngestPolicy, kinds: RelevantKinds
    ) -> Response:
        """Take the items of a batch, and answer which of them failed.

        Raises:
            TemporaryError: the store or the queue fails for now.
        """
        origin = Origin(cluster, gate, kinds, self._records.clock.now())
        failed: list[dict[str, Any]] = []
        taken = 0
        for start in range(0, len(items), FEW):
            with self._recorder.publishing() as changes:
                for index, item in enumerate(items[start : start + FEW], start):
                    try:
                        taken += self._take(origin, item, changes)
                    except Exception as error:  # noqa: BLE001 - one item's failure is its own
                        failed.append({"index": index, **self._failure(cluster, item, error)})
        counts = {"taken": taken, "dropped": len(items) - taken - len(failed)}
        return Response(HTTPStatus.OK, {**counts, "failed": failed} if failed else counts)

    def _take(self, origin: Origin, item: Any, changes: list[Change]) -> bool:
        """Store one item and add its effects; return whether any part of Bellhop uses it."""
        if not isinstance(item, Mapping) or not any(form in item for form in _FORMS):
            raise InvalidError(
                f"cannot read an item of the {BATCH}: it is neither an 'object' nor 'gone', and no"
                " 'event'"
            )
        event_at = _event_time(item, origin.now)
        if item.get("event") is not None:
            return self._take_event(origin, item["event"], event_at, changes)
        if item.get("hint") is not None:
            return self._take_hint(origin, item, event_at, changes)
        return self._take_object(origin, item, event_at, changes)

    def _take_event(self, origin: Origin, event: Any, event_at: str, changes: list[Change]) -> bool:
        taken = self._arriving.select_accepted(origin.gate.listeners, [parse(event)])
        for seen in self._arriving.observe(origin.cluster, taken, origin.now):
            changes.extend(self._recorder.put(seen, event_at))
        return bool(taken)

    def _take_hint(
        self, origin: Origin, item: Mapping[str, Any], event_at: str, changes: list[Change]
    ) -> bool:
        """Have an object read that is, or may be, a part of the configuration."""
        uid, before, key = read_hint(item["hint"])
        own = item.get("own") is True
        if own or not origin.kinds.are_configured(key):
            return False
        place = origin.cluster, str(key)
        creates = bool(uid) and not before
        hint = ReadBack(*place, uid, before, trace=trace(), event_at=event_at, creates=creates)
        changes.append(Change(hint))
        return True

    def _take_object(
        self, origin: Origin, item: Mapping[str, Any], event_at: str, changes: list[Change]
    ) -> bool:
        cluster, _, kinds, now = origin
        if item.get("object") is not None:
            seen = read_observation(cluster, item["object"], now)
        else:
            seen = read_tombstone(cluster, item.get("gone"), now)
        # A deletion counts, by any writer.
        own = item.get("own") is True and not seen.gone
        asked = seen.key.gvk in kinds.asked.by(own=own)
        if asked:
            changes.extend(self._recorder.put(seen, event_at))
        if own:
            return asked
        changes.extend(self._recorder.concern(cluster, seen.key, event_at, kinds))
        if kinds.are_configured(seen.key):
            # Sources select the kind, too, or they did until now.
            hint = ReadBack(cluster, str(seen.key), "", 0, trace=trace(), event_at="")
            changes.append(Change(hint))
        return asked or kinds.are_owned(seen.key) or kinds.are_read(seen.key)

    def _failure(self, cluster: str, item: Any, error: Exception) -> dict[str, Any]:
        """Describe the failure of an item; what concerns all of them is raised again."""
        match error:
            case TooLargeError():
                status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            case InvalidError():
                status = HTTPStatus.BAD_REQUEST
            case StaleError():
                status = HTTPStatus.SERVICE_UNAVAILABLE
            case TemporaryError():
                raise error
            case _:
                status = HTTPStatus.INTERNAL_SERVER_ERROR
                self._log.error("Failed on an item", error, cluster=cluster, object=_name(item))
        foreseen = isinstance(error, BellhopError)
        return {"status": status, "reason": str(error) if foreseen else "ingest failed on it"}


def _event_time(item: Mapping[str, Any], now: datetime) -> str:
    """Read when the cluster noticed; now if it does not say, or names a time that is to come.

    Only people read it, so that no event is refused for a clock that is wrong, be it ours.
    """
    text = item.get("rang") or ""
    try:
        event_at = datetime.fromisoformat(text) if text else now
        ahead = event_at - now
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError(
            f"cannot read an item of the {BATCH}: 'rang' is not a time with a zone in ISO 8601"
        ) from error
    return str(text) if text and ahead <= timedelta(0) else now.isoformat()


def _name(item: Mapping[str, Any]) -> str:
    """Name an item as far as it says what it is."""
    shown: Mapping[str, Any]
    shown = next((item[form] for form in _FORMS if isinstance(item.get(form), Mapping)), {})
    metadata = shown.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else shown
    names = (shown.get("kind"), *map(named.get, ("namespace", "name", "key", "source", "id")))
    return "/".join(str(name) for name in names if name)[:_LONGEST_NAME]
