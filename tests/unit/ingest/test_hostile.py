"""A known sender that sends whatever JSON holds: it is taken, or refused and not kept."""

from __future__ import annotations

import copy
import json
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.core.gvk import ObjectKey
from bellhop.ingest.http import Request, Response
from tests.fakes.fleet import POLICY, SERVICE, Fleet, service
from tests.fakes.kept import value_of

WEB = ObjectKey(SERVICE, "default", "web")
PAYLOADS = Path(__file__).parents[2] / "payloads" / "kube"


def stored(name: str = "web", **metadata: Any) -> dict[str, Any]:
    manifest = service(name)
    manifest["metadata"] |= {"uid": f"u-{name}", "resourceVersion": "7", **metadata}
    return manifest


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of JSON with a value put in its place."""
    changed = copy.deepcopy(data)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def paths(data: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in JSON."""
    if not isinstance(data, (dict, list)):
        return []
    found = []
    for step, value in data.items() if isinstance(data, dict) else enumerate(data):
        found += [(*before, step), *paths(value, (*before, step))]
    return found


def kept(fleet: Fleet) -> list[Any]:
    return sorted(each[:4] for each in fleet.records.observations.heads("fleet/east"))


def statuses(reply: Response) -> dict[int, int]:
    """Return the status of each item that failed, by its place in the batch."""
    return {each["index"]: each["status"] for each in reply.body.get("failed", ())}


BATCH = {
    "apiVersion": "bellhop.dev/v1",
    "kind": "Observations",
    "items": [
        {"object": stored(), "rang": "2026-01-01T00:00:00+00:00"},
        {"gone": {"key": "/v1/Service/default/old", "uid": "u-old", "version": 3}},
        {"event": {"specversion": "1.0", "id": "1", "source": "ci", "type": "t", "data": {}}},
    ],
}
REVIEW = json.loads((PAYLOADS / "admission-create-service.json").read_text())
AUDIT = json.loads((PAYLOADS / "audit-create-service.json").read_text())
DELETED = json.loads((PAYLOADS / "audit-deletecollection.json").read_text())
UPDATE = json.loads((PAYLOADS / "admission-status-put.json").read_text())
ALIVE = {
    "apiVersion": "bellhop.dev/v1",
    "kind": "Alive",
    "version": "0.1.0",
    "owed": 1,
    "since": "2026-01-01T00:00:00+00:00",
    "messaging": "",
    "refused": {"v1/Service": "no right"},
}
BODIES = [BATCH, REVIEW, UPDATE, AUDIT, DELETED, ALIVE]

numbers = st.integers() | st.floats() | st.sampled_from([2**63, -(2**63), 10**400, 1e308])
texts = st.text(max_size=8) | st.sampled_from(
    ["../..", "\ud800", "\x1b[31m", "9" * 30, "\u00b2", "v1", "Service", "a" * 300, "%2e", "true"]
)
leaves = st.none() | st.booleans() | numbers | texts
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
deep = st.integers(1, 250).map(lambda depth: json.loads("[" * depth + "]" * depth))


@st.composite
def bent(draw: st.DrawFn) -> Any:
    """Return a body as it should be, with a few of its values changed into anything."""
    body = draw(st.sampled_from(BODIES))
    for _ in range(draw(st.integers(1, 3))):
        places = paths(body)
        body = put(body, draw(st.sampled_from(places)), draw(anything | deep))
    return body


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(body=bent() | anything)
def test_answers_whatever_json_holds(watching: Fleet, body: Any) -> None:
    """It is taken or refused, never a failure of ours; and a refused body leaves no trace."""
    before = kept(watching)
    reply = watching.ingest.respond(Request("fleet/east", "east", json.dumps(body).encode()))

    assert reply.status in {200, 400}, (reply, watching.output.getvalue())
    assert {*statuses(reply).values()} <= {400}, (reply, watching.output.getvalue())
    if reply.status != 200:
        assert kept(watching) == before
    for key, _, version, _ in kept(watching):
        assert ObjectKey.parse(str(key)) == key
        assert 0 <= version < 2**63
    watching.pump()
    assert '"severity": "ERROR"' not in watching.output.getvalue()


@pytest.mark.parametrize("body", BODIES, ids=lambda body: str(body["kind"]))
@pytest.mark.parametrize("odd", ["x", 5, [1], {"a": [1]}, [["a", "b"]]], ids=str)
def test_answers_each_body_with_any_one_value_odd(watching: Fleet, body: Any, odd: Any) -> None:
    """Whichever value is of another shape, the request is taken or refused, never failed on."""
    for path in paths(body):
        reply = watching.post("east", put(body, path, odd))

        assert reply.status in {200, 400}, (path, watching.output.getvalue())
        assert {*statuses(reply).values()} <= {400}, (path, watching.output.getvalue())


@pytest.mark.parametrize("metadata", ["x", 5, [1], True])
def test_refuses_a_review_whose_metadata_is_no_mapping(watching: Fleet, metadata: Any) -> None:
    """An API server sends no such review; any other sender gets an error."""
    reply = watching.post("east", put(REVIEW, ("request", "object", "metadata"), metadata))

    assert reply.status == 400, reply


@pytest.mark.parametrize("depth", [250, 500, 850, 900, 950, 985, 1000, 5000])
@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_refuses_an_object_nested_too_deep(watching: Fleet, depth: int, pair: str) -> None:
    """No depth is a failure of ours: the sender would send it for ever, and nothing behind it."""
    begin = '{"a":' if pair == "{}" else "["
    nested = begin * depth + "1" + pair[1] * depth
    body = json.dumps(put(BATCH, ("items", 0, "object", "spec"), "HERE")).replace('"HERE"', nested)

    reply = watching.ingest.respond(Request("fleet/east", "east", body.encode()))

    assert reply.status == 400
    assert kept(watching) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("object", "metadata"), "text"),
        (("object", "metadata"), [["name", "web"]]),
        (("object", "metadata", "labels"), ["sveltos"]),
        (("object", "metadata", "labels"), {"a": 1}),
        (("object", "metadata", "annotations"), {"a": {}}),
        (("object", "metadata", "namespace"), "../.."),
        (("object", "metadata", "namespace"), 5),
        (("object", "metadata", "namespace"), "a\x1b[31m"),
        (("object", "metadata", "name"), "a/b"),
        (("object", "metadata", "name"), ".."),
        (("object", "metadata", "uid"), 7),
        (("object", "metadata", "resourceVersion"), {}),
        (("object", "metadata", "resourceVersion"), 7),
        (("object", "metadata", "resourceVersion"), "9" * 19 + "9"),
        (("object", "kind"), "../Secret"),
        (("object", "apiVersion"), "a/b/c"),
        (("object",), []),
        (("rang",), "2026-01-01T00:00:00"),
        (("rang",), 7),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refuses_an_item_that_cannot_be_stored(
    watching: Fleet, path: tuple[Any, ...], value: Any
) -> None:
    """The other items of its batch are stored."""
    odd = put({"object": stored("odd"), "rang": "2026-01-01T00:00:00+00:00"}, path, value)

    reply = watching.send("east", odd, {"object": stored()})

    assert statuses(reply) == {0: 400}
    assert [key for key, *_ in kept(watching)] == [WEB]


@pytest.mark.parametrize(
    "gone",
    [
        {},
        None,
        [],
        {"key": "/v1/Service/../..", "uid": "u", "version": 1},
        {"key": "/v1/Service/../../web", "uid": "u", "version": 1},
        {"key": "web", "uid": "u", "version": 1},
        {"key": str(WEB), "uid": 7, "version": 1},
        {"key": str(WEB), "uid": "u", "version": 2**63},
        {"key": str(WEB), "uid": "u", "version": -1},
        {"key": str(WEB), "uid": "u", "version": 1.5},
        {"key": str(WEB), "uid": "u"},
    ],
    ids=str,
)
def test_refuses_the_deletion_of_an_impossible_object(watching: Fleet, gone: Any) -> None:
    """A tombstone has a name, a uid and a version as objects have them."""
    reply = watching.send("east", {"gone": gone}, {"object": stored()})

    assert statuses(reply) == {0: 400}
    assert [key for key, *_ in kept(watching)] == [WEB]


def test_resyncs_continue_after_false_namespaces(watching: Fleet) -> None:
    """A namespace that is a path is refused, so that no later look asks for it."""
    liar = stored(namespace="../..")

    assert statuses(watching.send("east", {"object": liar})) == {0: 400}
    watching.resync()
    assert watching.records.health.get("fleet/east").value.state == "Healthy"


def test_a_forged_version_is_corrected_by_one_resync(watching: Fleet) -> None:
    """A forged newest version hides real changes until the cluster is listed."""
    kube = watching.access.clusters["fleet/east"]
    real = kube.put(service("web"))
    forged = copy.deepcopy(real)
    forged["metadata"]["resourceVersion"] = str(2**63 - 1)
    forged["spec"] = {"ports": []}
    assert watching.send("east", {"object": forged}).status == 200
    watching.clock.advance(timedelta(minutes=5))
    watching.resync()

    seen = value_of(watching.records.observations.get("fleet/east", WEB))
    assert seen
    assert seen.manifest
    assert seen.manifest["spec"] == real["spec"]
    later = kube.put(service("web", spec={"ports": [{"port": 81}]}))
    assert watching.send("east", {"object": later}).status == 200
    seen = value_of(watching.records.observations.get("fleet/east", WEB))
    assert seen
    assert seen.manifest
    assert seen.manifest["spec"] == later["spec"]


def test_a_forged_tombstone_is_corrected_by_one_resync(watching: Fleet) -> None:
    """A false deletion, newer than all, ends with the next list as well."""
    real = watching.write("east", service("web"))
    gone = {"key": str(WEB), "uid": real["metadata"]["uid"], "version": 2**63 - 1}
    assert watching.send("east", {"gone": gone}).status == 200
    watching.clock.advance(timedelta(minutes=5))
    watching.resync()

    seen = value_of(watching.records.observations.get("fleet/east", WEB))
    assert seen
    assert not seen.gone


def test_an_odd_audit_event_costs_no_other(watching: Fleet) -> None:
    """API servers send a list of events once: only an event that cannot be read is dropped."""
    [event] = AUDIT["items"]
    odd = put(event, ("responseObject", "metadata", "namespace"), "../..")
    worse = put(event, ("objectRef",), "text")

    reply = watching.post("east", {**AUDIT, "items": [odd, worse, 7, event]})

    assert reply.status == 200
    assert reply.body == {"taken": 1, "dropped": 3}


@pytest.mark.parametrize(
    ("ahead", "lag"),
    [
        pytest.param(timedelta(minutes=-60), timedelta(hours=1), id="an hour ago"),
        pytest.param(timedelta(minutes=14), timedelta(0), id="a clock that is ahead"),
        pytest.param(timedelta(days=400), timedelta(0), id="a clock that is far ahead"),
    ],
)
def test_takes_the_future_for_now(watching: Fleet, ahead: timedelta, lag: timedelta) -> None:
    """A clock that is wrong loses no events, be it the sender's or ours."""
    now = watching.clock.now()

    reply = watching.send("east", {"object": stored(), "rang": (now + ahead).isoformat()})

    assert reply.status == 200
    [delivery] = watching.queues["evaluate"].receive(1, wait=timedelta(0))
    assert delivery.message.body["rang"] == (now - lag).isoformat()


def test_reports_a_clock_that_differs(watching: Fleet) -> None:
    """The sender gets the difference, and the log has it once an hour for each cluster."""
    sent = format_datetime(watching.clock.now() + timedelta(minutes=20))
    body = json.dumps(BATCH).encode()
    replies = [
        watching.ingest.respond(Request("fleet/east", "east", body, "application/json", sent))
        for _ in range(3)
    ]

    assert {reply.body["ahead"] for reply in replies} == {1200.0}
    assert watching.output.getvalue().count("A sender's clock differs from ours") == 1


@pytest.mark.parametrize(
    ("media", "status"),
    [
        ("", 200),
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/vnd.example+json", 200),
        ("application/cloudevents+json", 400),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/jsonx", 415),
    ],
)
def test_accepts_only_json(watching: Fleet, media: str, status: int) -> None:
    """Another Content-Type is not read."""
    request = Request("fleet/east", "east", json.dumps(BATCH).encode(), media)

    assert watching.ingest.respond(request).status == status


def test_resyncs_a_cluster_that_may_have_missed_events(watching: Fleet) -> None:
    """A forwarder requests a resync when it starts: missed events are found."""
    kube = watching.access.clusters["fleet/east"]
    kube.put(service("web"))
    watching.clock.advance(timedelta(minutes=5))

    reply = watching.post("east", {"apiVersion": "bellhop.dev/v1", "kind": "Missed"})
    watching.pump()

    assert (reply.status, reply.body) == (200, {"sweep": True})
    assert kube.names(POLICY) == ["front-web"]


def test_accepts_one_resync_request_a_minute(watching: Fleet) -> None:
    """A sender can have its cluster resynced so often and no more, and learns when to repeat it."""
    missed = {"apiVersion": "bellhop.dev/v1", "kind": "Missed"}
    watching.register("west", env="production")
    watching.pump()
    first = watching.post("east", missed)
    watching.clock.advance(timedelta(seconds=20))
    again = [watching.post("east", missed) for _ in range(50)]

    assert first.status == 200
    assert {(reply.status, reply.headers["Retry-After"]) for reply in again} == {(429, "40")}
    # A process that starts again, as a function does for each few requests, knows it, too.
    watching.reread()
    watching.store.counts.clear()
    assert watching.post("east", missed).status == 429
    # Its ingest policy, its heartbeat, and when it was resynced.
    assert dict(watching.store.counts) == {"get": 3}
    assert watching.post("west", missed).status == 200
    assert len(watching.queues["sweep"].receive(10, wait=timedelta(0))) == 2
    watching.clock.advance(timedelta(seconds=40))
    assert watching.post("east", missed).status == 200
