"""A forwarder's batch: each item is taken or fails by itself, and the answer names those that fail.

    400, 413   the item is none that can be kept, and never will be
    503        other writers kept winning; the item can be sent again
    500        nobody foresaw it: a defect that this item meets; it can be sent again

A store or a queue that fails for now concerns no single item: the whole request fails. What was
kept before that is published, and comes again with the rest, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

from bellhop.errors import BellhopError, InvalidError, StaleError, TemporaryError, TooLargeError
from bellhop.ingest.cloud_event_arrivals import Arriving
from bellhop.ingest.http import Response
from bellhop.ingest.recorder import FEW, Change, Recorder
from bellhop.ingest.relevant_kinds import RelevantKinds
from bellhop.logs import Log
from bellhop.rendering.cloud_events import parse
from bellhop.rendering.observation import bury_told, observe_told
from bellhop.state.record import IngestPolicy
from bellhop.state.records import Records

BATCH = "Observations"
"""The kind of a batch, in apiVersion `bellhop.dev/v1`."""

_FORMS = ("object", "gone", "event")
_LONGEST_NAME = 300


class Origin(NamedTuple):
    """The cluster that a batch comes from, its gate, what counts in it, and the time by now."""

    cluster: str
    gate: IngestPolicy
    kinds: RelevantKinds
    now: datetime


class Batches:
    """Takes batches for one process of ingest; shared between threads."""

    def __init__(self, records: Records, recorder: Recorder, arriving: Arriving, log: Log) -> None:
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
                    except Exception as error:  # noqa: BLE001 - an item fails for itself alone
                        failed.append({"index": index, **self._failure(cluster, item, error)})
        counts = {"taken": taken, "dropped": len(items) - taken - len(failed)}
        return Response(HTTPStatus.OK, {**counts, "failed": failed} if failed else counts)

    def _take(self, origin: Origin, item: Any, changes: list[Change]) -> bool:
        """Keep one item and add what follows; return whether it counts for anybody."""
        if not isinstance(item, Mapping) or not any(form in item for form in _FORMS):
            raise InvalidError(
                f"cannot read an item of the {BATCH}: it is neither an 'object' nor 'gone', and no"
                " 'event'"
            )
        rang = _rang(item, origin.now)
        if item.get("event") is not None:
            return self._take_event(origin, item["event"], rang, changes)
        return self._take_object(origin, item, rang, changes)

    def _take_event(self, origin: Origin, event: Any, rang: str, changes: list[Change]) -> bool:
        taken = self._arriving.taken(origin.gate.listeners, [parse(event)])
        for seen in self._arriving.observe(origin.cluster, taken, origin.now):
            changes.extend(self._recorder.put(seen, rang))
        return bool(taken)

    def _take_object(
        self, origin: Origin, item: Mapping[str, Any], rang: str, changes: list[Change]
    ) -> bool:
        cluster, _, kinds, now = origin
        if item.get("object") is not None:
            seen = observe_told(cluster, item["object"], now)
        else:
            seen = bury_told(cluster, item.get("gone"), now)
        # That an object is gone counts whoever wrote it.
        own = item.get("own") is True and not seen.gone
        asked = seen.key.gvk in kinds.asked.by(own=own)
        if asked:
            changes.extend(self._recorder.put(seen, rang))
        if own:
            return asked
        changes.extend(self._recorder.concern(cluster, seen.key, rang, kinds))
        return asked or kinds.held(seen.key) or kinds.followed(seen.key)

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


def _rang(item: Mapping[str, Any], now: datetime) -> str:
    """Read when the cluster noticed; now if it does not say, or names a time that is to come.

    Only people read it, so that no event is refused for a clock that is wrong, be it ours.
    """
    text = item.get("rang") or ""
    try:
        rang = datetime.fromisoformat(text) if text else now
        ahead = rang - now
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError(
            f"cannot read an item of the {BATCH}: 'rang' is not a time with a zone in ISO 8601"
        ) from error
    return str(text) if text and ahead <= timedelta(0) else now.isoformat()


def _name(item: Mapping[str, Any]) -> str:
    """Name an item as far as it says what it is."""
    told: Mapping[str, Any]
    told = next((item[form] for form in _FORMS if isinstance(item.get(form), Mapping)), {})
    metadata = told.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else told
    names = (told.get("kind"), *map(named.get, ("namespace", "name", "key", "source", "id")))
    return "/".join(str(name) for name in names if name)[:_LONGEST_NAME]
