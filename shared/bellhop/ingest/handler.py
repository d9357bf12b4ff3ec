"""Ingest: one HTTP request from one cluster, authenticated, read, and kept.

It answers an API server within milliseconds and never says no to one: whatever happens here,
a user's write goes on. It talks to no cluster and loads neither Lua, templates nor the client.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from bellhop import __version__
from bellhop.documents.json import read_json
from bellhop.errors import (
    DeniedError,
    InvalidError,
    MissingError,
    TemporaryError,
    TooLargeError,
)
from bellhop.ingest.account_tokens import may_be_one
from bellhop.ingest.admission import (
    INGEST,
    Hint,
    RelevantKinds,
    admission,
    audit,
    changes_nothing,
    is_test_call,
)
from bellhop.ingest.batch import BATCH, Batches, CloudEventArrivals
from bellhop.ingest.heartbeat import HeartbeatRecorder, read_alive, read_refused
from bellhop.ingest.http import Caller, Request, Response, body_of, refusal, too_large
from bellhop.ingest.recorder import Recorder, trace
from bellhop.ingest.refusals import Refused, Throttle
from bellhop.ingest.senders import OutsideSenders, UnverifiedError, Visitor, refuse_unsigned
from bellhop.ingest.service_accounts import Accounts
from bellhop.logs import Log
from bellhop.rendering.cloud_events import BATCH as BATCH_OF_EVENTS
from bellhop.rendering.cloud_events import STRUCTURED, has_cloud_events
from bellhop.rendering.cloud_events import read as read_events
from bellhop.rendering.observation import read_observation
from bellhop.settings import Settings
from bellhop.state.cluster import Heartbeat
from bellhop.state.ingest_policy import IngestPolicy
from bellhop.state.match import Observation
from bellhop.state.messages import Publisher, ReadBack, Resync
from bellhop.state.records import Records

MISSED = "Missed"
ALIVE = "Alive"
"""Kinds of what the forwarder sends beside batches, in apiVersion `bellhop.dev/v1`."""

SKEW = timedelta(minutes=1)
"""From which difference on a sender's clock is spoken of."""

_SAY_SKEW = timedelta(hours=1)

_NOBODY = hashlib.sha256(b"nobody").hexdigest()


class Ingest:
    """Takes AdmissionReview v1, audit EventList v1, the forwarder's batches and CloudEvents."""

    def __init__(
        self, records: Records, publisher: Publisher, settings: Settings, log: Log
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._accounts = Accounts(records, publisher)
        self._refused = Refused(records)
        self._outside = OutsideSenders(records, self._refused)
        self._hearing = HeartbeatRecorder(records)
        self._arriving = CloudEventArrivals(records)
        self._recorder = Recorder(records, publisher)
        self._batches = Batches(records, self._recorder, self._arriving, log)
        self._skewed = Throttle(_SAY_SKEW)

    @property
    def body_limit(self) -> int:
        """Return how many bytes a request may have."""
        return self._settings.body_limit

    def admit(self, caller: Caller) -> IngestPolicy | Visitor | Response:
        """Authenticate a sender, or return a refusal, before anything of its body is read.

        A sender that signs is authenticated with its body: until then it has proved nothing.
        """
        return self._guarded(lambda: self._admit(caller))

    def respond(self, request: Request, gate: IngestPolicy | Visitor | None = None) -> Response:
        """Answer one request; never raises. An authenticated sender's `gate` is its policy."""
        found = gate or self.admit(
            Caller(request.cluster, request.token, request.sender, request.signed)
        )
        if isinstance(found, Response):
            return found
        reply = self._guarded(lambda: self._take(request, found))
        assert isinstance(reply, Response)
        return reply

    def hear(self, request: Request) -> Response:
        """Answer a request that the cloud authenticated: CloudEvents for a cluster; never raises.

        The caller ensures that no other sender reaches this.
        """
        reply = self._guarded(lambda: self._receive(request))
        assert isinstance(reply, Response)
        return reply

    def _guarded(
        self, answer: Callable[[], IngestPolicy | Visitor | Response]
    ) -> IngestPolicy | Visitor | Response:
        try:
            return answer()
        except TooLargeError as error:
            return refusal(413, error)
        except InvalidError as error:
            return refusal(400, error)
        except UnverifiedError as error:
            return refusal(401, error)
        except TemporaryError as error:
            self._log.warning("Sent a sender away for now", error=str(error))
            return Response(503, body_of(error.code, str(error)), {"Retry-After": "1"})
        except Exception as error:  # noqa: BLE001 - an HTTP front answers whatever happens
            self._log.error("Failed on a request", error)
            text = "the request could not be taken; it can be sent again"
            return Response(500, body_of("Internal", text))

    def _admit(self, caller: Caller) -> IngestPolicy | Visitor | Response:
        if caller.sender:
            return self._outside.admit(caller)
        cluster, token = caller.cluster, caller.token
        kept = self._records.gates.get(cluster)
        gate = kept.value if kept else None
        try:
            self._authenticate(cluster, token, gate)
        except DeniedError as error:
            # A forwarder whose account is refused comes again with the token of its Secret.
            if gate and token and not may_be_one(token):
                self._refused.note(cluster)
            return refusal(401, error)
        assert gate
        return gate

    def _authenticate(self, cluster: str, token: str, gate: IngestPolicy | None) -> None:
        """See that a token is one of a cluster's sender: one that it was given, or its account's.

        Raises:
            DeniedError: it is not.
        """
        # Comparing with a dummy digest takes as long for a cluster that does not exist.
        expected = gate.digests(self._records.clock.now()) if gate else (_NOBODY, _NOBODY)
        given = _digest(token)
        why = ""
        if any([hmac.compare_digest(each, given) for each in expected]) and gate:  # noqa: C419 - both are compared, however the first ends
            return
        if may_be_one(token):
            try:
                self._accounts.verify(cluster, token)
            except DeniedError as error:
                why = f": {error}"
            else:
                if gate:
                    return
        raise DeniedError(
            f"the token is not the one of cluster '{cluster}'{why};"
            " register the cluster, or give the sender its present token"
        )

    def _take(self, request: Request, gate: IngestPolicy | Visitor) -> Response:
        if len(request.body) > self._settings.body_limit:
            return too_large(len(request.body), self._settings.body_limit)
        if isinstance(gate, Visitor):
            return self._visit(request, gate)
        if has_cloud_events(request.media, request.attributes):
            is_webhook = _is_webhook_token(request.token, gate)
            return _ONLY_REVIEWS if is_webhook else self._handle_cloud_events(request, gate)
        if request.media and not _is_json(request.media):
            text = "cannot take what is not JSON; send it as application/json"
            return Response(415, body_of(InvalidError.code, text))
        skew = self._measure_skew(request)
        data = read_json(request.body)
        if data.get("kind") != "AdmissionReview" and _is_webhook_token(request.token, gate):
            return _ONLY_REVIEWS
        heartbeat = Heartbeat(self._records.clock.now(), skew.total_seconds())
        kinds = RelevantKinds(gate)
        if data.get("kind") == ALIVE and data.get("apiVersion") == "bellhop.dev/v1":
            heartbeat = read_alive(data, heartbeat, kinds.list_unwatched(read_refused(data)))
        self._hearing.note(request.cluster, heartbeat)
        reply = self._read(request.cluster, data, gate, kinds)
        if abs(skew) < SKEW or "response" in reply.body:
            return reply
        return Response(reply.status, {**reply.body, "ahead": skew.total_seconds()}, reply.headers)

    def _receive(self, request: Request) -> Response:
        kept = self._records.gates.get(request.cluster)
        if kept is None:
            text = (
                f"cannot take an event for cluster '{request.cluster}': it is not registered;"
                " register it, or have the rule name another one"
            )
            return Response(404, body_of(MissingError.code, text))
        if len(request.body) > self._settings.body_limit:
            return too_large(len(request.body), self._settings.body_limit)
        if not has_cloud_events(request.media, request.attributes):
            return _ONLY_CLOUD_EVENTS
        return self._handle_cloud_events(request, kept.value)

    def _visit(self, request: Request, visitor: Visitor) -> Response:
        """Accept the CloudEvents of a sender outside the cluster, and nothing else."""
        with self._outside.once(request, visitor) as taking:
            if not has_cloud_events(request.media, request.attributes):
                return _ONLY_CLOUD_EVENTS
            refuse_unsigned(request)
            reply = self._handle_cloud_events(request, taking.gate)
            taking.done = True
            return reply

    def _measure_skew(self, request: Request) -> timedelta:
        """Return how far a sender's clock is ahead; a large skew is logged now and then."""
        now = self._records.clock.now()
        skew = _date(request.sent, now) - now
        if abs(skew) >= SKEW and self._skewed.try_begin(request.cluster, now):
            self._log.warning(
                "A sender's clock differs from ours",
                cluster=request.cluster,
                ahead_seconds=skew.total_seconds(),
            )
        return skew

    def _read(
        self, cluster: str, data: Mapping[str, Any], gate: IngestPolicy, kinds: RelevantKinds
    ) -> Response:
        match (data.get("apiVersion"), data.get("kind")):
            case ("admission.k8s.io/v1", "AdmissionReview"):
                return self._handle_admission(cluster, data, kinds)
            case ("audit.k8s.io/v1", "EventList"):
                return self._handle_audit(cluster, data, kinds)
            case ("bellhop.dev/v1", kind) if kind == BATCH:
                return self._batches.take(cluster, _items(data), gate, kinds)
            case ("bellhop.dev/v1", kind) if kind == MISSED:
                return self._request_resync(cluster)
            case ("bellhop.dev/v1", kind) if kind == ALIVE:
                unasked = kinds.list_unwatched(read_refused(data))
                return Response(200, {"heard": True, **({"unasked": unasked} if unasked else {})})
        raise InvalidError(
            f"cannot take a {str(data.get('kind'))[:64]!a} of {str(data.get('apiVersion'))[:64]!a};"
            " send an AdmissionReview of admission.k8s.io/v1, an EventList of audit.k8s.io/v1, or"
            f" {BATCH}, {MISSED} or {ALIVE} of bellhop.dev/v1"
        )

    def _request_resync(self, cluster: str) -> Response:
        """Request a resync of a cluster whose forwarder may have missed events.

        If the request comes too soon, the forwarder repeats it: otherwise events missed since would
        not be found.
        """
        wait = self._records.looks.ask(cluster, self._records.clock.now())
        if wait:
            text = "the cluster was looked at just now; ask again later"
            seconds = math.ceil(wait.total_seconds())
            return Response(429, body_of("Throttled", text), {"Retry-After": str(seconds)})
        self._publisher.publish([Resync(cluster)])
        return Response(200, {"sweep": True})

    def _handle_admission(
        self, cluster: str, data: Mapping[str, Any], kinds: RelevantKinds
    ) -> Response:
        request = data.get("request")
        if not isinstance(request, Mapping) or not isinstance(request.get("uid"), str):
            raise InvalidError("cannot read the AdmissionReview: it has no request with a uid")
        found = () if changes_nothing(request) else admission(request, kinds.all)
        hints = [self._make_read_back(cluster, hint, kinds) for hint in found]
        if hints:
            self._publisher.publish(hints)
        response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
        if is_test_call(request):
            response["warnings"] = [f"{INGEST} {__version__} was called"]
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }
        return Response(200, review)

    def _handle_audit(
        self, cluster: str, data: Mapping[str, Any], kinds: RelevantKinds
    ) -> Response:
        events = _items(data)
        now = self._records.clock.now()
        hints: list[ReadBack] = []
        observations: list[Observation] = []
        for found in audit(events, kinds.all):
            with suppress(InvalidError):
                if isinstance(found, Hint):
                    hints.append(self._make_read_back(cluster, found, kinds))
                else:
                    observations.append(read_observation(cluster, found, now))
        noticed_at = now.isoformat()
        self._recorder.store(
            (each, noticed_at) for each in observations if each.key.gvk in kinds.asked
        )
        with self._recorder.publishing() as changes:
            for each in observations:
                changes.extend(self._recorder.concern(cluster, each.key, noticed_at, kinds))
        hints += [
            ReadBack(cluster, str(each.key), "", 0, trace=trace(), event_at="")
            for each in observations
            if kinds.are_configured(each.key)
        ]
        if hints:
            self._publisher.publish(hints)
        taken = len(hints) + len(observations)
        return Response(200, {"taken": taken, "dropped": max(0, len(events) - taken)})

    def _handle_cloud_events(self, request: Request, gate: IngestPolicy) -> Response:
        """Store the CloudEvents of a request by any sender; it is no heartbeat of the cluster."""
        now = self._records.clock.now()
        events = read_events(request.media, request.attributes, request.body)
        taken = self._arriving.select_accepted(gate.listeners, events)
        kept = self._arriving.observe(request.cluster, taken, now)
        self._recorder.store((each, now.isoformat()) for each in kept)
        return Response(200, {"taken": len(taken), "dropped": len(events) - len(taken)})

    def _make_read_back(self, cluster: str, hint: Hint, kinds: RelevantKinds) -> ReadBack:
        return ReadBack(
            cluster,
            str(hint.key),
            uid=hint.uid,
            before=hint.before,
            drift=not hint.own and (kinds.are_owned(hint.key) or kinds.are_read(hint.key)),
            trace=trace(),
            event_at=self._records.clock.now().isoformat(),
            creates=hint.creates,
        )


_ONLY_REVIEWS = Response(
    403,
    body_of(DeniedError.code, "this token is only valid for AdmissionReviews"),
)
_ONLY_CLOUD_EVENTS = Response(
    403,
    body_of(
        DeniedError.code,
        f"this sender sends CloudEvents, and nothing else; send them as {STRUCTURED}, as"
        f" {BATCH_OF_EVENTS}, or by headers that begin with ce-",
    ),
)


def _is_webhook_token(token: str, gate: IngestPolicy) -> bool:
    """Return whether a token is in a webhook configuration, which many may read."""
    return gate.direct and hmac.compare_digest(_digest(token), gate.token_digest)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _is_json(media: str) -> bool:
    essence = media.partition(";")[0].strip().lower()
    return essence == "application/json" or (
        essence.startswith("application/") and essence.endswith("+json")
    )


def _date(text: str, otherwise: datetime) -> datetime:
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _items(data: Mapping[str, Any]) -> list[Any]:
    items = data.get("items")
    if not isinstance(items, list):
        raise InvalidError(f"cannot read the {data.get('kind')}: it has no list of items")
    return items
