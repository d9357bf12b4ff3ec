"""Requests of senders, and the answers to invalid ones."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.errors import StaleError, UnreachableError
from bellhop.ingest.http import Request, Response, address, caller
from bellhop.settings import Settings
from bellhop.state.match import Observation
from tests.fakes.fleet import POLICY, SERVICE, Fleet, service
from tests.fakes.hooks import failing
from tests.fakes.kept import value_of

_NOW = timedelta(0)
_SOON = timedelta(seconds=10)
WEB = ObjectKey(SERVICE, "default", "web")


def error(body: Any) -> str:
    return str(body["error"]["message"])


@pytest.mark.parametrize(
    ("path", "header", "expected"),
    [
        pytest.param("/clusters/a/b", "Bearer t", ("a/b", "t"), id="token in the header"),
        pytest.param("/clusters/a/b/t", "", ("a/b", "t"), id="token in the path"),
        pytest.param("/clusters/a/b/x", "bearer t", ("a/b", "t"), id="the header wins"),
        pytest.param("/clusters/a/b", "Basic t", ("a/b", ""), id="another scheme is no token"),
        pytest.param("/clusters/a", "Bearer t", None, id="too short"),
        pytest.param("/clusters/a/b/c/d", "", None, id="too long"),
        pytest.param("/clusters/a/b/senders/ci/t", "", None, id="a sender's with a token"),
        pytest.param("/other/a/b", "", None, id="another path"),
    ],
)
def test_reads_cluster_and_token(path: str, header: str, expected: object) -> None:
    """The token comes in a header or, for API servers, as the path's last part."""
    found = address(path, header)

    assert (found and found[:2]) == expected


@pytest.mark.parametrize(
    ("cluster", "token"),
    [
        pytest.param("east", "wrong", id="a stranger's token"),
        pytest.param("east", "", id="no token"),
        pytest.param("nowhere", "nowhere", id="an unknown cluster"),
    ],
)
def test_refuses_an_unauthenticated_sender(watching: Fleet, cluster: str, token: str) -> None:
    """A token that is not this cluster's is refused, whatever else is wrong, and nothing kept."""
    request = Request(f"fleet/{cluster}", token, b"not even JSON")

    reply = watching.ingest.respond(request)

    assert reply.status == 401
    assert error(reply.body).startswith(f"the token is not the one of cluster 'fleet/{cluster}'")
    assert watching.records.observations.get("fleet/east", WEB) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"", "the body is not JSON", id="empty"),
        pytest.param(b"{", "the body is not JSON", id="cut off"),
        pytest.param(b"[" * 100_000, "the body is not JSON", id="deeply nested"),
        pytest.param(b"[]", "the body is not a JSON object", id="a list"),
        pytest.param(b"{}", "cannot take a 'None' of 'None'", id="no kind"),
        pytest.param(
            b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
            "it has no request with a uid",
            id="a review without a request",
        ),
        pytest.param(
            b'{"apiVersion": "audit.k8s.io/v1", "kind": "EventList"}',
            "it has no list of items",
            id="a list without items",
        ),
    ],
)
def test_describes_an_invalid_request(watching: Fleet, body: bytes, expected: str) -> None:
    """Bad input gets status 400 and one sentence."""
    reply = watching.ingest.respond(Request("fleet/east", "east", body))

    assert reply.status == 400
    assert expected in error(reply.body)


def test_refuses_too_large_a_request(watching: Fleet) -> None:
    """A request above the limit gets status 413."""
    reply = watching.ingest.respond(Request("fleet/east", "east", b" " * 5_000_000))

    assert reply.status == 413
    assert error(reply.body) == (
        f"cannot take a request of 5000000 bytes: the limit is {Settings().body_limit};"
        " send less at once"
    )


def fail_on(watching: Fleet, name: str, error: Exception) -> None:
    """Have the store fail on an object."""
    put = watching.records.observations.put

    def fail(observation: Observation) -> bool:
        if observation.key.name == name:
            raise error
        return put(observation)

    watching.records.observations.put = fail  # type: ignore[method-assign, assignment]


def evaluated(fleet: Fleet) -> list[str]:
    """Return the objects that are to be evaluated."""
    queue = fleet.queues["evaluate"]
    came = [each for _ in range(50) for each in queue.receive(50, wait=_NOW)]
    return [ObjectKey.parse(each.message.body["object"]).name for each in came]


def batch(*names: str) -> list[dict[str, Any]]:
    return [{"object": service(name)} for name in names]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param({}, "neither an 'object' nor 'gone', and no 'event'", id="an empty item"),
        pytest.param(7, "neither an 'object' nor 'gone', and no 'event'", id="a number"),
        pytest.param({"object": {"metadata": {}}}, "it has no kind or name", id="without a name"),
        pytest.param({"object": 7}, "it must be a map", id="no object"),
        pytest.param({"gone": 7}, "it has no key, uid and version", id="no end"),
        pytest.param({"event": {"id": "1"}}, "it has no specversion", id="no event"),
        pytest.param(
            {"object": service("a"), "rang": "now"},
            "'rang' is not a time with a zone",
            id="a time that is none",
        ),
        pytest.param(
            {"object": service("a"), "rang": "2026-01-01T12:00:00"},
            "'rang' is not a time with a zone",
            id="a time without a zone",
        ),
    ],
)
def test_refuses_one_item_of_a_batch(watching: Fleet, item: Any, expected: str) -> None:
    """All others are taken, and the answer says which one is not, and why."""
    reply = watching.send("east", *batch("a", "b"), item, *batch("c"))

    assert reply.status == 200
    [failed] = reply.body["failed"]
    assert (failed["index"], failed["status"]) == (2, 400)
    assert expected in failed["reason"]
    assert (reply.body["taken"], reply.body["dropped"]) == (3, 0)
    assert evaluated(watching) == ["a", "b", "c"]


def test_refuses_what_cannot_be_stored_now(watching: Fleet) -> None:
    """A store that is away is status 503 for all, so that the sender keeps what it has."""
    fail_on(watching, "web", UnreachableError("the store does not answer"))

    reply = watching.send("east", {"object": service("web")})

    assert (reply.status, reply.headers["Retry-After"]) == (503, "1")


def test_stored_items_of_a_batch_are_evaluated(watching: Fleet) -> None:
    """Though the store goes away behind it; a few at a time are published as one."""
    names = [f"web-{n}" for n in range(25)]
    fail_on(watching, "web-20", UnreachableError("the store does not answer"))
    assert watching.send("east", *batch(*names)).status == 503

    assert evaluated(watching) == names[:20]


def test_a_lost_write_concerns_one_item(watching: Fleet) -> None:
    """It can be sent again for itself; all others are kept and evaluated."""
    names = [f"web-{n}" for n in range(40)]
    fail_on(watching, "web-20", StaleError("cannot write: others keep winning"))
    reply = watching.send("east", *batch(*names))

    reason = "cannot write: others keep winning"
    assert reply.status == 200
    assert reply.body["failed"] == [{"index": 20, "status": 503, "reason": reason}]
    assert evaluated(watching) == [name for name in names if name != "web-20"]


def test_a_defect_for_one_item_concerns_only_it(watching: Fleet) -> None:
    """An unforeseen error is status 500; its key and traceback are logged, and not answered."""
    fail_on(watching, "web", ZeroDivisionError("secret detail"))
    reply = watching.send("east", *batch("a", "web", "b"))

    [failed] = reply.body["failed"]
    assert (reply.status, failed["index"], failed["status"]) == (200, 1, 500)
    assert "secret detail" not in json.dumps(reply.body)
    [line] = [json.loads(each) for each in watching.output.getvalue().splitlines()]
    assert line["object"] == "Service/default/web"
    assert "ZeroDivisionError" in line["stack_trace"]
    assert evaluated(watching) == ["a", "b"]


def test_a_batch_that_comes_again_changes_nothing(watching: Fleet) -> None:
    """A sender that died before it settled an answer sends all of it once more."""
    items = batch("a", "b", "c")
    watching.send("east", *items)
    watching.pump()
    kept = sorted(watching.records.observations.heads("fleet/east"))
    policies = watching.access.clusters["fleet/east"].objects(POLICY)

    assert watching.send("east", *items).body == {"taken": 3, "dropped": 0}
    watching.pump()
    again = sorted(watching.records.observations.heads("fleet/east"))
    assert [each[:4] for each in again] == [each[:4] for each in kept]
    assert watching.access.clusters["fleet/east"].objects(POLICY) == policies


def test_answers_even_when_it_fails(watching: Fleet) -> None:
    """An unforeseen error is status 500, logged with its traceback, and answered without it."""
    with failing(watching.records.looks, "ask", ZeroDivisionError("secret detail")):
        reply = watching.post("east", {"apiVersion": "bellhop.dev/v1", "kind": "Missed"})

    assert reply.status == 500
    assert "secret detail" not in json.dumps(reply.body)
    assert "ZeroDivisionError" in watching.output.getvalue()


def test_drops_kinds_that_do_not_count(watching: Fleet) -> None:
    """Only kinds that a source in force names are kept."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}

    reply = watching.send("east", {"object": config})

    assert reply.body == {"taken": 0, "dropped": 1}
    assert watching.queues["evaluate"].receive(1, wait=_NOW) == []


def test_keeps_the_newer_of_two_that_come_out_of_order(watching: Fleet) -> None:
    """A late older message changes nothing, and a deletion is not undone by one."""
    kube = watching.access.clusters["fleet/east"]
    old = kube.put(service("web"))
    new = kube.put(service("web", spec={"ports": []}))
    watching.send("east", {"object": new})
    watching.pump()
    watching.send("east", {"object": old})
    assert watching.queues["evaluate"].receive(1, wait=_NOW) == []
    observation = value_of(watching.records.observations.get("fleet/east", WEB))
    assert observation
    assert observation.manifest
    assert observation.manifest["spec"] == {"ports": []}

    watching.drop("east", new)
    watching.send("east", {"object": new})
    buried = value_of(watching.records.observations.get("fleet/east", WEB))
    assert buried
    assert buried.gone

    again = kube.put(service("web"))
    watching.send("east", {"object": again})
    alive = value_of(watching.records.observations.get("fleet/east", WEB))
    assert alive
    assert not alive.gone


def test_lets_a_late_tombstone_not_bury_the_next_object(watching: Fleet) -> None:
    """A deletion concerns one uid; the object that took the name since stays."""
    kube = watching.access.clusters["fleet/east"]
    first = kube.put(service("web"))
    kube.drop(*WEB)
    second = kube.put(service("web"))
    watching.send("east", {"object": second})
    meta = first["metadata"]
    gone = {"key": str(WEB), "uid": meta["uid"], "version": int(meta["resourceVersion"])}

    watching.send("east", {"gone": gone})

    observation = value_of(watching.records.observations.get("fleet/east", WEB))
    assert observation
    assert not observation.gone


def test_strips_managed_fields_and_seals_the_rest(watching: Fleet) -> None:
    """A stored object has no managedFields, and the store's file shows nothing of it."""
    manifest = service("web")
    manifest["metadata"] |= {
        "managedFields": [{"manager": "x"}],
        "uid": "u",
        "resourceVersion": "7",
    }
    manifest["metadata"]["annotations"] = {"note": "very-private"}

    watching.send("east", {"object": manifest})

    observation = value_of(watching.records.observations.get("fleet/east", WEB))
    assert observation
    assert observation.manifest
    assert "managedFields" not in observation.manifest["metadata"]
    item = watching.store.get("observation/fleet/east", str(WEB))
    assert item
    assert "very-private" not in json.dumps(dict(item.value))


def test_takes_an_object_of_a_megabyte_and_a_half(watching: Fleet) -> None:
    """The largest object that etcd holds goes to the blob store and comes back whole."""
    noise = random.Random(7).randbytes(750_000).hex()
    manifest = service("web")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "7", "annotations": {"noise": noise}}

    assert watching.send("east", {"object": manifest}).status == 200

    observation = value_of(watching.records.observations.get("fleet/east", WEB))
    assert observation
    assert observation.manifest
    assert observation.manifest["metadata"]["annotations"]["noise"] == noise


def creation(hinted: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    """Return the review of a Service that is created."""
    request = {
        "uid": "r-1",
        "kind": {"group": "", "version": version, "kind": "Service"},
        "resource": {"group": "", "version": version, "resource": "services"},
        "operation": "CREATE",
        "namespace": "default",
        "name": "web",
        "object": hinted,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def test_answers_an_admission_review_and_reads_the_object_back(watching: Fleet) -> None:
    """An event straight from an API server is a hint: the stored object counts."""
    stored = watching.access.clusters["fleet/east"].put(service("web"))
    hinted = {**stored, "metadata": {"name": "web", "uid": stored["metadata"]["uid"]}}

    reply = watching.post("east", creation(hinted))
    watching.wait(_SOON)

    assert reply.body["response"] == {"uid": "r-1", "allowed": True}
    policies = watching.access.clusters["fleet/east"].objects(POLICY)
    assert [each["metadata"]["name"] for each in policies] == ["front-web"]


def test_a_create_that_is_not_stored_yet_leaves_no_tombstone(watching: Fleet) -> None:
    """Its review may show a version that its client sent; it is read until it is stored."""
    kube = watching.access.clusters["fleet/east"]
    old = watching.write("east", service("web"))
    watching.drop("east", old)
    metadata = {"name": "web", "namespace": "default", "uid": "new", "resourceVersion": "1"}

    assert watching.post("east", creation({**service("web"), "metadata": metadata})).status == 200
    watching.pump()
    head = watching.records.observations.head("fleet/east", WEB)
    assert head
    assert (head.uid, head.gone) == (old["metadata"]["uid"], True)
    kube.put(service("web"))
    watching.wait(_SOON)

    assert kube.names(POLICY) == ["front-web"]


def test_an_event_in_one_version_is_read_back_in_those_of_sources(watching: Fleet) -> None:
    """An API server sends events in one version of a kind; the source names another."""
    kube = watching.access.clusters["fleet/east"]
    stored = kube.put(service("web"))
    metadata = {"name": "web", "uid": stored["metadata"]["uid"]}

    watching.post("east", creation({"metadata": metadata}, version="v2"))
    watching.wait(_SOON)

    assert kube.names(POLICY) == ["front-web"]


def test_takes_stored_objects_from_audit_events(watching: Fleet) -> None:
    """An audit event of a finished write carries the object; a deletion is confirmed first."""
    kube = watching.access.clusters["fleet/east"]
    stored = kube.put(service("web"))
    ref = {"resource": "services", "namespace": "default", "name": "web", "apiVersion": "v1"}
    event = {
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/default/services",
        "verb": "create",
        "objectRef": ref,
        "responseStatus": {"code": 201},
        "responseObject": stored,
    }

    def post(*events: object) -> Any:
        items = {"apiVersion": "audit.k8s.io/v1", "kind": "EventList", "items": events}
        return watching.post("east", items).body

    dry = {**event, "requestURI": event["requestURI"] + "?dryRun=All"}  # type: ignore[operator]
    denied = {**event, "responseStatus": {"code": 403}}
    assert post(dry, denied, "nonsense") == {"taken": 0, "dropped": 3}
    assert post(event) == {"taken": 1, "dropped": 0}
    watching.pump()
    assert len(kube.objects(POLICY)) == 1

    status = {"kind": "Status", "details": {"uid": stored["metadata"]["uid"]}}
    kube.drop(*WEB)
    post({**event, "verb": "delete", "responseStatus": {"code": 200}, "responseObject": status})
    watching.wait(_SOON)
    assert kube.objects(POLICY) == []


def test_accepts_the_former_token_until_it_ends(fleet: Fleet) -> None:
    """While a registration is renewed both tokens count; then only the new one does."""
    fleet.register("east")
    cluster = value_of(fleet.records.clusters.get("fleet/east"))
    assert cluster is not None
    until = fleet.clock.now() + timedelta(minutes=5)
    fleet.declare.register(
        replace(
            cluster,
            token_digest=hashlib.sha256(b"new").hexdigest(),
            former_digest=cluster.token_digest,
            former_until=until,
        )
    )
    during = [fleet.send("east", token=token).status for token in ("east", "new", "other")]
    fleet.pump()
    fleet.clock.advance(timedelta(minutes=5))
    after = [fleet.send("east", token=token).status for token in ("east", "new", "other")]

    assert during == [200, 200, 401]
    assert after == [401, 200, 401]


def test_a_former_token_without_an_end_counts(fleet: Fleet) -> None:
    """The cluster does not have the new one yet."""
    fleet.register("east")
    cluster = value_of(fleet.records.clusters.get("fleet/east"))
    assert cluster is not None
    fleet.declare.register(
        replace(
            cluster,
            token_digest=hashlib.sha256(b"new").hexdigest(),
            former_digest=cluster.token_digest,
        )
    )
    fleet.clock.advance(timedelta(days=30))

    assert fleet.send("east").status == 200


# Before anything is sent ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/clusters/a/b", "/clusters/a/b/senders/ci"], ids=["the cluster's own", "outside"]
)
def test_allows_a_handshake_of_cloud_events(path: str) -> None:
    """From anywhere and at any rate, by nothing that the asker says; what counts is the secret."""
    origin = {"webhook-request-origin": "evil\r\nx: y", "webhook-request-rate": "1"}
    found = caller("OPTIONS", path, origin)

    assert isinstance(found, Response)
    assert found.status == 200
    assert found.headers == {
        "Allow": "POST, OPTIONS",
        "WebHook-Allowed-Origin": "*",
        "WebHook-Allowed-Rate": "*",
    }


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        pytest.param("OPTIONS", "/", {"webhook-request-origin": "a"}, 404, id="nowhere"),
        pytest.param("OPTIONS", "/clusters/a/b", {}, 405, id="another question"),
        pytest.param(
            "GET", "/clusters/a/b", {"webhook-request-origin": "a"}, 405, id="no question"
        ),
    ],
)
def test_allows_nothing_else(
    method: str, path: str, headers: Mapping[str, str], status: int
) -> None:
    """A browser's question, or one for another place, is answered as ever."""
    found = caller(method, path, headers)

    assert isinstance(found, Response)
    assert found.status == status
    assert "WebHook-Allowed-Origin" not in found.headers
