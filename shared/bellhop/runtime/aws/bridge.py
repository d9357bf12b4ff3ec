"""Events of AWS that EventBridge puts into a queue, as CloudEvents for the ingest stage.

    rule ─► queue ─► ingest ─► some EventSource takes it, or none     deleted
                           └─► refused, or not now                    comes again; a dead letter
                                                                      of the queue's in the end

Nobody but the rules that Terraform made may write into that queue. What a rule writes says, beside
the event, for which cluster it counts, and where in it the subject stands. Names of fields are
EventBridge's: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bellhop.documents.json import read_json
from bellhop.errors import InvalidError
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Request
from bellhop.logs import Log
from bellhop.rendering.cloud_events import STRUCTURED
from bellhop.runtime.aws.resources import Resources
from bellhop.runtime.cloud.ready import Ready

_TAKEN = 200
_NAMES = {
    "id": "id",
    "source": "source",
    "detail-type": "type",
    "time": "time",
    "account": "account",
    "region": "region",
    "detail": "data",
}
"""Each field of an event that is told, and the attribute of a CloudEvent that it becomes."""


class Bridge:
    """Works on batches of the queue that rules write into."""

    def __init__(self, ready: Ready[Resources, Ingest]) -> None:
        self._ready = ready

    def __call__(self, given: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Have each message taken; return which of them are to come again."""
        try:
            here, stage = self._ready.get()
        except Exception as error:  # noqa: BLE001 - the messages come again, and are told of once
            Log().error("Cannot open the installation", error)
            return _failed(each["messageId"] for each in given)
        failed = [each["messageId"] for each in given if not _taken(here, stage, each["body"])]
        here.end()
        return _failed(failed)


def _taken(here: Resources, stage: Ingest, body: str) -> bool:
    """Hand one message to the stage; what it refuses is said, and is left to the queue."""
    cluster = ""
    try:
        request = request_of(body)
        cluster = request.cluster
        reply = stage.hear(request)
    except InvalidError as error:
        why = str(error)
    else:
        if reply.status == _TAKEN:
            return True
        why = reply.body["error"]["message"]
    here.log.warning("Refused an event of AWS", cluster=cluster, why=why)
    return False


def request_of(body: str) -> Request:
    """Read what a rule wrote: an event, for which cluster, and where its subject is.

    Raises:
        InvalidError: no rule of ours writes so.
    """
    told = read_json(body.encode())
    cluster, event = told.get("cluster"), told.get("event")
    if not isinstance(cluster, str) or not isinstance(event, Mapping):
        raise InvalidError("cannot read a message of the rules: no rule of Bellhop's wrote it")
    content = cloud_event(event, str(told.get("subject") or ""))
    return Request(cluster, "", json.dumps(content).encode(), STRUCTURED)


def cloud_event(event: Mapping[str, Any], subject: str = "") -> dict[str, Any]:
    """Write an event of AWS as a CloudEvent.

    Its subject stands where the dotted path `subject` leads; where that leads to no text, and where
    none is given, it is the first of the event's resources.
    """
    told = {name: event[field] for field, name in _NAMES.items() if field in event}
    resources = event.get("resources")
    first = resources[0] if isinstance(resources, list) and resources else ""
    about = _at(event, subject) or first
    more = {"subject": about} if about else {}
    return {"specversion": "1.0", "datacontenttype": "application/json", **told, **more}


def _at(event: Mapping[str, Any], path: str) -> str:
    found: Any = event
    for name in path.split(".") if path else ():
        found = found.get(name) if isinstance(found, Mapping) else None
    return str(found) if isinstance(found, (str, int)) else ""


def _failed(numbers: Iterable[str]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": each} for each in numbers]}
