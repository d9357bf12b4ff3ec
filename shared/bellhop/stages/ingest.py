"""Ingest: one HTTP request from one cluster, authenticated, read, and kept.

It answers an API server within milliseconds and never says no to one: whatever happens here,
a user's write goes on. It talks to no cluster and loads neither Lua, templates nor the client.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bellhop.engine.hints import Hint, Watched, admission, audit
from bellhop.engine.observe import bury, observe
from bellhop.errors import BellhopError, InvalidError, TemporaryError, TooLargeError
from bellhop.logs import Log
from bellhop.messages import Confirm, Evaluate, Publisher
from bellhop.model.gvk import ObjectKey
from bellhop.model.record import Observation
from bellhop.records import Records
from bellhop.settings import Settings
from bellhop.stages.ledger import Note, write

BATCH = "Observations"
"""Kind of what the forwarder sends, in apiVersion `bellhop.dev/v1`."""

_PARTS = (3, 4)
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


@dataclass(frozen=True, slots=True)
class Request:
    """What an HTTP front hands over; `token` is the sender's proof."""

    cluster: str
    token: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """What an HTTP front sends back as JSON."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def address(path: str, authorization: str) -> tuple[str, str] | None:
    """Read cluster and token from `/clusters/NAMESPACE/NAME[/TOKEN]` and a Bearer header.

    API servers can send no header to a webhook, nor a query: for them the token is in the path
    (the check of a ValidatingWebhookConfiguration's URL). None if the path is another one.
    """
    parts = path.strip("/").split("/")
    if len(parts) not in _PARTS or parts[0] != "clusters":
        return None
    scheme, _, given = authorization.partition(" ")
    bearer = given.strip() if scheme.lower() == "bearer" else ""
    return f"{parts[1]}/{parts[2]}", bearer or (parts[3] if len(parts) > _PARTS[0] else "")


def too_large(length: int, limit: int) -> Reply:
    """Refuse a request by its length; a front may do so before it has read it."""
    text = f"cannot take a request of {length} bytes: the limit is {limit}; send less at once"
    return Reply(413, _body(TooLargeError.code, text))


class Ingest:
    """Takes AdmissionReview v1, audit EventList v1 and the forwarder's batches."""

    def __init__(
        self, records: Records, publisher: Publisher, settings: Settings, log: Log
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._settings = settings
        self._log = log

    def respond(self, request: Request) -> Reply:
        """Answer one request; never raises."""
        try:
            return self._take(request)
        except TooLargeError as error:
            return _refusal(413, error)
        except InvalidError as error:
            return _refusal(400, error)
        except TemporaryError as error:
            self._log.warning("Sent a sender away for now", error=str(error))
            return Reply(503, _body(error.code, str(error)), {"Retry-After": "1"})
        except Exception as error:  # noqa: BLE001 - an HTTP front answers whatever happens
            self._log.error("Failed on a request", error)
            text = "the request could not be taken; it can be sent again"
            return Reply(500, _body("Internal", text))

    def _take(self, request: Request) -> Reply:
        kept = self._records.gates.get(request.cluster)
        gate = kept.value if kept else None
        # Comparing with somebody's digest takes as long for a cluster that is not there.
        expected = gate.token_digest if gate else _NOBODY
        given = hashlib.sha256(request.token.encode()).hexdigest()
        if not hmac.compare_digest(expected, given) or gate is None:
            text = (
                f"the token is not the one of cluster '{request.cluster}';"
                " register the cluster, or give the sender its present token"
            )
            return Reply(401, _body("Denied", text))
        if len(request.body) > self._settings.body_limit:
            return too_large(len(request.body), self._settings.body_limit)
        return self._read(request.cluster, _json(request.body), Watched(gate.kinds))

    def _read(self, cluster: str, data: Mapping[str, Any], watched: Watched) -> Reply:
        match (data.get("apiVersion"), data.get("kind")):
            case ("admission.k8s.io/v1", "AdmissionReview"):
                return self._admission(cluster, data, watched)
            case ("audit.k8s.io/v1", "EventList"):
                return self._audit(cluster, data, watched)
            case ("bellhop.dev/v1", kind) if kind == BATCH:
                return self._batch(cluster, data, watched)
        raise InvalidError(
            f"cannot take a '{str(data.get('kind'))[:64]}' of '{str(data.get('apiVersion'))[:64]}';"
            " send an AdmissionReview of admission.k8s.io/v1, an EventList of audit.k8s.io/v1 or"
            f" {BATCH} of bellhop.dev/v1"
        )

    def _admission(self, cluster: str, data: Mapping[str, Any], watched: Watched) -> Reply:
        request = data.get("request")
        if not isinstance(request, Mapping) or not isinstance(request.get("uid"), str):
            raise InvalidError("cannot read the AdmissionReview: it has no request with a uid")
        hint = admission(request, watched)
        if hint:
            self._publisher.publish([self._confirm(cluster, hint)])
        response = {"uid": request["uid"], "allowed": True}
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }
        return Reply(200, review)

    def _audit(self, cluster: str, data: Mapping[str, Any], watched: Watched) -> Reply:
        events = _items(data)
        taken = 0
        hints: list[Confirm] = []
        for found in audit(events, watched):
            if isinstance(found, Hint):
                hints.append(self._confirm(cluster, found))
            else:
                self._keep(observe(cluster, found, self._records.clock.now()), "")
            taken += 1
        if hints:
            self._publisher.publish(hints)
        return Reply(200, {"taken": taken, "dropped": len(events) - taken})

    def _batch(self, cluster: str, data: Mapping[str, Any], watched: Watched) -> Reply:
        items = _items(data)
        # All are read before one is kept: a batch is taken or refused as a whole.
        found = [(self._observation(cluster, item), _rang(item)) for item in items]
        counting = [
            (observation, rang) for observation, rang in found if observation.key.gvk in watched
        ]
        for observation, rang in counting:
            self._keep(observation, rang)
        return Reply(200, {"taken": len(counting), "dropped": len(items) - len(counting)})

    def _observation(self, cluster: str, item: Any) -> Observation:
        now = self._records.clock.now()
        try:
            if item.get("object") is not None:
                observation = observe(cluster, item["object"], now)
            else:
                gone = item["gone"]
                key = ObjectKey.parse(gone["key"])
                observation = bury(cluster, key, str(gone["uid"]), int(gone["version"]), now)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidError(
                f"cannot read an item of the {BATCH}: it is neither an 'object' nor 'gone'"
            ) from error
        if not observation.key.name or not observation.key.gvk.kind:
            raise InvalidError(f"cannot read an object of the {BATCH}: it has no kind or name")
        return observation

    def _keep(self, observation: Observation, rang: str) -> None:
        if not self._records.observations.put(observation):
            return
        trace = uuid.uuid4().hex[:12]
        message = Evaluate(observation.cluster, str(observation.key), trace, rang)
        self._publisher.publish([message])
        note = Note("gone" if observation.gone else "rang")
        write(self._records, message, observation.cluster, str(observation.key), note)

    def _confirm(self, cluster: str, hint: Hint) -> Confirm:
        return Confirm(
            cluster,
            str(hint.key),
            uid=hint.uid,
            before=hint.before,
            trace=uuid.uuid4().hex[:12],
            rang=self._records.clock.now().isoformat(),
        )


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidError("cannot read the request: the body is not JSON") from error
    if not isinstance(data, Mapping):
        raise InvalidError("cannot read the request: the body is not a JSON object")
    return data


def _items(data: Mapping[str, Any]) -> list[Any]:
    items = data.get("items")
    if not isinstance(items, list):
        raise InvalidError(f"cannot read the {data.get('kind')}: it has no list of items")
    return items


def _rang(item: Mapping[str, Any]) -> str:
    """Read when the cluster noticed; the ledger will reckon with it."""
    text = str(item.get("rang") or "")
    try:
        known = not text or datetime.fromisoformat(text).utcoffset() is not None
    except ValueError:
        known = False
    if not known:
        raise InvalidError(
            f"cannot read an item of the {BATCH}: 'rang' is no time with a zone in ISO 8601"
        )
    return text


def _refusal(status: int, error: BellhopError) -> Reply:
    return Reply(status, _body(error.code, str(error)))


def _body(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
