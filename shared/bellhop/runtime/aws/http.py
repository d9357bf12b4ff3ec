"""HTTP events for the ingest stage: of an HTTP API in payload format 2.0, of a private API in 1.0.

If EventBridge rules are configured, their queue feeds the same function. A client of HTTP cannot
imitate the queue: AWS makes the event that Lambda gets, and it has no `Records`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from bellhop.documents.json import read_json
from bellhop.errors import InvalidError
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Request
from bellhop.logs import Log
from bellhop.rendering.cloud_events import STRUCTURED
from bellhop.runtime.aws.resources import Resources, from_environment
from bellhop.runtime.cloud.http import Call, IngestHandler
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
"""Fields of an event, and the attributes of a CloudEvent that they become."""


class Bridge:
    """Works on batches of the queue that rules write into.

        rule ─► queue ─► ingest ─► some EventSource takes it, or none     deleted
                               └─► refused, or not now                    comes again; a dead letter
                                                                          of the queue's in the end

    Only the rules that Terraform created may write into that queue. A rule adds to the event the
    cluster for which it counts, and the path of its subject. Names of fields are
    EventBridge's: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html.
    """

    def __init__(self, ready: Ready[Resources, Ingest]) -> None:
        self._ready = ready

    def __call__(self, given: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Pass each message to the stage; return those that must come again."""
        try:
            here, stage = self._ready.get()
        except Exception as error:  # noqa: BLE001 - the messages come again, and one line reports it
            Log().error("Cannot open the installation", error)
            return _write_failures(each["messageId"] for each in given)
        failed = [each["messageId"] for each in given if not _accept(here, stage, each["body"])]
        here.end()
        return _write_failures(failed)


def _accept(here: Resources, stage: Ingest, body: str) -> bool:
    """Pass a message to the stage; a refusal is logged, and the queue delivers it again."""
    cluster = ""
    try:
        request = read_request(body)
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


def read_request(body: str) -> Request:
    """Read what a rule wrote: the event, its cluster, and the path of its subject."""
    written = read_json(body.encode())
    cluster, event = written.get("cluster"), written.get("event")
    if not isinstance(cluster, str) or not isinstance(event, Mapping):
        raise InvalidError("cannot read a message of the rules: no rule of Bellhop's wrote it")
    content = cloud_event(event, str(written.get("subject") or ""))
    return Request(cluster, "", json.dumps(content).encode(), STRUCTURED)


def cloud_event(event: Mapping[str, Any], subject: str = "") -> dict[str, Any]:
    """Write an event of AWS as a CloudEvent.

    The dotted path `subject` names the field that is its subject. Without one, or if that field
    is no text, the subject is the first of the event's resources.
    """
    found = {name: event[field] for field, name in _NAMES.items() if field in event}
    resources = event.get("resources")
    first = resources[0] if isinstance(resources, list) and resources else ""
    about = _get(event, subject) or first
    more = {"subject": about} if about else {}
    return {"specversion": "1.0", "datacontenttype": "application/json", **found, **more}


def _get(event: Mapping[str, Any], path: str) -> str:
    found: Any = event
    for name in path.split(".") if path else ():
        found = found.get(name) if isinstance(found, Mapping) else None
    return str(found) if isinstance(found, (str, int)) else ""


def _write_failures(numbers: Iterable[str]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": each} for each in numbers]}


Event = Mapping[str, Any]


class Front:
    """The handler of the ingest function: one request an event, or messages of the rules' queue."""

    def __init__(
        self,
        make: Callable[[Resources], Ingest],
        opening: Callable[[], Resources] = from_environment,
    ) -> None:
        ready = Ready(make, opening)
        self._handler = IngestHandler(ready)
        self._bridge = Bridge(ready)

    def __call__(self, event: Event, _context: object) -> dict[str, Any]:
        """Answer one request, or work on a batch."""
        if "Records" in event:
            return self._bridge(event["Records"])
        answer = self._handler.answer(_call(event))
        return {
            "statusCode": answer.status,
            "headers": dict(answer.headers),
            "body": answer.body,
            "isBase64Encoded": False,
        }


def _call(event: Event) -> Call:
    http = event["requestContext"].get("http")
    if http is None:
        return _private_call(event)
    return Call(
        method=http["method"],
        path=unquote(event.get("rawPath", "")),
        address=http["sourceIp"],
        body=lambda: _body(event),
        headers=event.get("headers", {}),
    )


def _private_call(event: Event) -> Call:
    """Read an event of a REST API, in which headers are written as the sender wrote them."""
    return Call(
        method=event["httpMethod"],
        path=unquote(event["path"]),
        address=event["requestContext"]["identity"]["sourceIp"],
        body=lambda: _body(event),
        headers={name.lower(): value for name, value in (event["headers"] or {}).items()},
    )


def _body(event: Event) -> bytes:
    body = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
