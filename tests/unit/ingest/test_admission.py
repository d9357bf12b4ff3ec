"""What is read from everything that a real API server was seen to send."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.identity import MANAGER, version_of
from bellhop.ingest.admission import AnyKind, Hint, Watched, admission, audit
from bellhop.state.ingest_policy import WatchedKind

PAYLOADS = Path(__file__).parents[2] / "payloads" / "kube"
CONFIG_MAP = GVK("", "v1", "ConfigMap")
SERVICE = GVK("", "v1", "Service")
NAMESPACE = GVK("", "v1", "Namespace")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
POD = GVK("", "v1", "Pod")
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
FOO = GVK("lab.example", "v1", "Foo")
WATCHED = Watched(
    [
        WatchedKind(CONFIG_MAP, "configmaps"),
        WatchedKind(SERVICE, "services"),
        WatchedKind(NAMESPACE, "namespaces"),
        WatchedKind(DEPLOYMENT, "deployments"),
        WatchedKind(POD, "pods"),
        WatchedKind(FOO, "foos"),
        WatchedKind(CRD, "customresourcedefinitions"),
        WatchedKind(GVK("networking.k8s.io", "v1", "Ingress"), "ingresses"),
        WatchedKind(GVK("", "v1", "Secret"), "secrets"),
    ]
)


def recorded(name: str) -> Any:
    return json.loads((PAYLOADS / f"{name}.json").read_text())


def request(action: str) -> dict[str, Any]:
    return dict(recorded(f"admission-{action}")["request"])


def brief(hints: Sequence[Hint]) -> tuple[str, str, int] | None:
    """Shorten at most one hint to its object, the beginning of its uid, and the version before."""
    assert len(hints) <= 1
    return (str(hints[0].key), hints[0].uid[:6], hints[0].before) if hints else None


def config_map(name: str) -> str:
    return str(ObjectKey(CONFIG_MAP, "default", name))


NAMED = "/v1/{}/default/{}"
ADMISSIONS: dict[str, tuple[str, str, int] | None] = {
    "create-configmap": (config_map("cm1"), "448c02", 0),
    "create-alreadyexists": (config_map("cm1"), "fe17e5", 0),
    "create-generateName": (config_map("gen-ls9gl"), "4369dc", 0),
    "create-with-finalizer": (config_map("fin"), "db6df4", 0),
    "create-namespace": ("/v1/Namespace//team-a", "b3a9fa", 0),
    "create-service": (NAMED.format("Service", "svc1"), "143530", 0),
    "create-deployment": ("apps/v1/Deployment/default/d1", "c341c4", 0),
    "create-pod": (NAMED.format("Pod", "p1"), "068b44", 0),
    "create-cr": ("lab.example/v1/Foo/default/f1", "a37181", 0),
    "create-crd-0": (str(ObjectKey(CRD, "", "foos.lab.example")), "eefc94", 0),
    "create-crd-2": (str(ObjectKey(CRD, "", "foos.lab.example")), "eefc94", 234),
    "create-crd-3": (str(ObjectKey(CRD, "", "foos.lab.example")), "eefc94", 236),
    "secret-create": (NAMED.format("Secret", "s1"), "1ad2de", 0),
    "ssa-create": (config_map("ssa1"), "b0b2f8", 0),
    "denied": (config_map("deny1"), "9f0619", 0),
    "update-put": (config_map("cm1"), "448c02", 196),
    "update-put-noop": (config_map("cm1"), "448c02", 197),
    "patch-merge": (config_map("cm1"), "448c02", 197),
    "patch-strategic": (config_map("cm1"), "448c02", 198),
    "patch-json": (config_map("cm1"), "448c02", 199),
    "ssa-update": (config_map("ssa1"), "b0b2f8", 202),
    "ssa-noop": (config_map("ssa1"), "b0b2f8", 202),
    "ssa-force": (config_map("ssa1"), "b0b2f8", 203),
    "remove-finalizer-0": (config_map("fin"), "db6df4", 221),
    "remove-finalizer-1": (config_map("fin"), "db6df4", 221),
    "status-put": (NAMED.format("Service", "svc1"), "143530", 207),
    "status-patch": (NAMED.format("Service", "svc1"), "143530", 208),
    "status-ssa": (NAMED.format("Service", "svc1"), "143530", 209),
    "cr-status-patch": ("lab.example/v1/Foo/default/f1", "a37181", 238),
    "namespace-finalize-0": ("/v1/Namespace//team-a", "b3a9fa", 231),
    "namespace-finalize-1": ("/v1/Namespace//team-a", "b3a9fa", 231),
    "delete": (config_map("cm1"), "448c02", 200),
    "delete-with-finalizer": (config_map("fin"), "db6df4", 220),
    "delete-namespace": ("/v1/Namespace//team-a", "b3a9fa", 230),
    "delete-pod-grace0-0": (NAMED.format("Pod", "p1"), "068b44", 216),
    "delete-pod-grace0-1": (NAMED.format("Pod", "p1"), "068b44", 217),
    "deletecollection-0": (config_map("coll0"), "410cf3", 224),
    "deletecollection-1": (config_map("coll1"), "b52213", 225),
    "deletecollection-2": (config_map("coll2"), "224521", 226),
    "matchpolicy-equivalent": ("networking.k8s.io/v1/Ingress/default/i1", "a0c0e6", 0),
    # Of other kinds than their resource's: hints at the parent, of an unknown state.
    "scale-put": ("apps/v1/Deployment/default/d1", "", 0),
    "pod-binding": (NAMED.format("Pod", "p1"), "", 0),
    "pod-eviction": (NAMED.format("Pod", "p1"), "", 0),
    # Without effect.
    "create-dryrun": None,
    "ssa-dryrun": None,
    "delete-dryrun": None,
    # Of kinds that do not count.
    "create-crd-1": None,
    "create-event": None,
    "create-sa": None,
    "create-sar": None,
    "token-request": None,
    "token-request-ok": None,
}


@pytest.mark.parametrize("action", ADMISSIONS)
def test_reads_an_admission_review(action: str) -> None:
    """Every recorded review gives the object, its uid and its version before the write."""
    assert brief(admission(request(action), WATCHED)) == ADMISSIONS[action]


def test_has_an_expectation_for_every_recording() -> None:
    """No recorded payload is left out of the two tables."""
    names = {path.stem for path in PAYLOADS.glob("*.json")}
    expected = {f"admission-{name}" for name in ADMISSIONS} | {f"audit-{name}" for name in AUDITS}

    assert names == expected


@pytest.mark.parametrize("version", ["1", "7", ""])
@pytest.mark.parametrize("action", ["ssa-create", "create-configmap"])
def test_a_create_has_no_version_whatever_its_client_sent(action: str, version: str) -> None:
    """A client may send one as a condition; nothing stored has had that uid or version."""
    review = request(action)
    metadata = {**review["object"]["metadata"], "resourceVersion": version}
    review["object"] = {**review["object"], "metadata": metadata}

    [hint] = admission(review, WATCHED)

    assert (hint.uid, hint.before, hint.creates) == (metadata["uid"], 0, True)


@pytest.mark.parametrize("action", ["update-put", "ssa-update", "delete", "status-put"])
def test_other_writes_create_nothing(action: str) -> None:
    """They have the uid and version of an object that is stored."""
    [hint] = admission(request(action), WATCHED)

    assert not hint.creates
    assert hint.before > 0


def test_passes_over_kinds_that_do_not_count() -> None:
    """A cluster in which nothing counts has no hints."""
    assert admission(request("update-put"), Watched([])) == []


@pytest.mark.parametrize("action", ["update-put", "create-event", "namespace-finalize-0"])
def test_lets_every_kind_count_where_asked(action: str) -> None:
    """A receiver that is called only for its kinds needs no list of them."""
    assert admission(request(action), AnyKind()) != []


@pytest.mark.parametrize("action", ["scale-put", "create-sar", "token-request", "create-dryrun"])
def test_lets_every_kind_count_but_nothing_without_an_object(action: str) -> None:
    """What names no object of its own resource is no hint, whatever counts."""
    assert admission(request(action), AnyKind()) == []


def test_hints_at_what_has_no_name_in_its_request() -> None:
    """Deletions of a collection are named only by the object."""
    given = request("deletecollection-0")

    [hint] = admission(given, WATCHED)

    assert "name" not in given
    assert hint.key.name == "coll0"


STORED = "stored"
HINT = "hint"
AUDITS: dict[str, list[tuple[str, str, int]]] = {
    "create-configmap": [(STORED, config_map("cm1"), 196)],
    "create-generateName": [(STORED, config_map("gen-ls9gl"), 195)],
    "create-with-finalizer": [(STORED, config_map("fin"), 220)],
    "create-namespace": [(STORED, "/v1/Namespace//team-a", 230)],
    "create-service": [(STORED, NAMED.format("Service", "svc1"), 207)],
    "create-deployment": [(STORED, "apps/v1/Deployment/default/d1", 212)],
    "create-pod": [(STORED, NAMED.format("Pod", "p1"), 214)],
    "create-crd": [(STORED, str(ObjectKey(CRD, "", "foos.lab.example")), 234)],
    "create-cr": [(STORED, "lab.example/v1/Foo/default/f1", 238)],
    "secret-create": [(STORED, NAMED.format("Secret", "s1"), 241)],
    "ssa-create": [(STORED, config_map("ssa1"), 202)],
    "update-put": [(STORED, config_map("cm1"), 197)],
    "update-put-noop": [(STORED, config_map("cm1"), 197)],
    "patch-merge": [(STORED, config_map("cm1"), 198)],
    "patch-strategic": [(STORED, config_map("cm1"), 199)],
    "patch-json": [(STORED, config_map("cm1"), 200)],
    "ssa-update": [(STORED, config_map("ssa1"), 203)],
    "ssa-noop": [(STORED, config_map("ssa1"), 202)],
    "ssa-force": [(STORED, config_map("ssa1"), 204)],
    "status-put": [(STORED, NAMED.format("Service", "svc1"), 208)],
    "status-patch": [(STORED, NAMED.format("Service", "svc1"), 209)],
    "status-ssa": [(STORED, NAMED.format("Service", "svc1"), 211)],
    "cr-status-patch": [(STORED, "lab.example/v1/Foo/default/f1", 240)],
    # The response is the object as it was before its end.
    "remove-finalizer": [(HINT, config_map("fin"), 0)],
    "namespace-finalize": [(HINT, "/v1/Namespace//team-a", 0)],
    "delete": [(HINT, config_map("cm1"), 0)],
    "delete-with-finalizer": [(HINT, config_map("fin"), 0)],
    "delete-namespace": [(HINT, "/v1/Namespace//team-a", 0)],
    "delete-pod-grace0": [(HINT, NAMED.format("Pod", "p1"), 0)],
    "deletecollection": [
        (HINT, config_map("coll0"), 224),
        (HINT, config_map("coll1"), 225),
        (HINT, config_map("coll2"), 226),
    ],
    "scale-put": [(HINT, "apps/v1/Deployment/default/d1", 0)],
    "pod-binding": [(HINT, NAMED.format("Pod", "p1"), 0)],
    "pod-eviction": [(HINT, NAMED.format("Pod", "p1"), 0)],
    # Without effect.
    "create-dryrun": [],
    "ssa-dryrun": [],
    "delete-dryrun": [],
    # Refused.
    "create-alreadyexists": [],
    "create-invalid": [],
    "delete-notfound": [],
    "denied": [],
    "impersonated-denied": [],
    "ssa-conflict": [],
    "token-request": [],
    "update-put-conflict": [],
    "update-put-notfound": [],
    # Of kinds that do not count.
    "create-event": [],
    "create-sa": [],
    "create-sar": [],
    "token-request-ok": [],
    "vwc-update-self": [],
}


@pytest.mark.parametrize("action", AUDITS)
def test_reads_audit_events(action: str) -> None:
    """Every recorded event gives the stored object, or a hint where it has none, or nothing."""
    read = [
        (HINT, str(found.key), found.before)
        if isinstance(found, Hint)
        else (STORED, str(ObjectKey.of(found)), version_of(found["metadata"]))
        for found in audit(recorded(f"audit-{action}")["items"], WATCHED)
    ]

    assert read == AUDITS[action]


def test_hints_at_the_uid_that_a_deletion_names() -> None:
    """A deletion's Status carries the uid of what was deleted."""
    [hint] = audit(recorded("audit-delete")["items"], WATCHED)

    assert isinstance(hint, Hint)
    assert hint.uid.startswith("448c02")


SCALERS = [GVK("autoscaling", version, "HorizontalPodAutoscaler") for version in ("v1", "v2")]
TWO_VERSIONS = Watched([WatchedKind(gvk, "horizontalpodautoscalers") for gvk in SCALERS])
WRITTEN = {
    "apiVersion": "autoscaling/v2beta2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h", "namespace": "default", "uid": "u-1", "resourceVersion": "7"},
}
REF = {
    "apiGroup": "autoscaling",
    "apiVersion": "v2beta2",
    "resource": "horizontalpodautoscalers",
    "namespace": "default",
    "name": "h",
}


def at(*versions: GVK) -> list[ObjectKey]:
    return [ObjectKey(gvk, "default", "h") for gvk in versions]


@pytest.mark.parametrize("sub", ["", "status", "scale"])
def test_hints_at_every_version_that_counts(sub: str) -> None:
    """A review in a version that no source names hints at each version that one does."""
    review = {
        "operation": "UPDATE",
        "kind": {"group": "autoscaling", "version": "v2beta2", "kind": "HorizontalPodAutoscaler"},
        "resource": {
            "group": "autoscaling",
            "version": "v2beta2",
            "resource": "horizontalpodautoscalers",
        },
        "subResource": sub,
        "namespace": "default",
        "name": "h",
        "object": WRITTEN,
        "oldObject": WRITTEN,
    }

    hints = admission(review, TWO_VERSIONS)

    assert [hint.key for hint in hints] == at(*SCALERS)
    assert {hint.before for hint in hints} == {0 if sub == "scale" else 7}


def audited(version: str, verb: str = "update") -> dict[str, Any]:
    written = {**WRITTEN, "apiVersion": f"autoscaling/{version}"}
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "responseStatus": {"code": 200},
        "objectRef": {**REF, "apiVersion": version},
        "responseObject": {} if verb == "delete" else written,
    }


def test_an_audited_write_hints_at_the_other_versions() -> None:
    """The version that was written is there, for others that count it takes a look."""
    stored, hint = audit([audited("v1")], TWO_VERSIONS)

    assert isinstance(stored, dict)
    assert ObjectKey.of(stored) == at(SCALERS[0])[0]
    assert hint == Hint(at(SCALERS[1])[0], "u-1", 0)


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_an_audited_write_in_a_version_that_does_not_count_hints_at_those_that_do(
    verb: str,
) -> None:
    """A write or deletion in another version is not missed."""
    hints = list(audit([audited("v2beta2", verb)], TWO_VERSIONS))

    assert [hint.key for hint in hints if isinstance(hint, Hint)] == at(*SCALERS)


def test_counts_each_version_for_itself() -> None:
    """A version that no source names does not count, though its kind does."""
    assert SCALERS[0] in TWO_VERSIONS
    assert GVK("autoscaling", "v2beta2", "HorizontalPodAutoscaler") not in TWO_VERSIONS


ASKING = Watched([WatchedKind(CONFIG_MAP, "configmaps", own=True)])


def applied(action: str = "ssa-update", **options: Any) -> dict[str, Any]:
    """Return a recorded server-side apply, done by Bellhop."""
    found = request(action)
    return {**found, "options": {**found["options"], "fieldManager": "bellhop", **options}}


@pytest.mark.parametrize("action", ["ssa-create", "ssa-update", "ssa-force", "patch-merge"])
def test_what_we_apply_sends_no_hint_unless_a_source_asks_for_it(action: str) -> None:
    """A forwarder, which knows no source, says of it whose it is."""
    assert admission(applied(action), WATCHED) == []
    assert [each.own for each in admission(applied(action), ASKING)] == [True]
    assert [each.own for each in admission(applied(action), AnyKind())] == [True]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(request("ssa-update"), id="another manager"),
        pytest.param(applied(fieldManager="bellhop-doctor"), id="a like manager"),
        pytest.param(applied(fieldManager=["bellhop"]), id="no manager"),
        pytest.param({**request("ssa-update"), "options": None}, id="nothing said"),
        pytest.param({**request("delete"), "options": {"fieldManager": "bellhop"}}, id="an end"),
    ],
)
def test_all_other_writes_send_a_hint(found: dict[str, Any]) -> None:
    """To an object of ours too; a deletion does not say who made it."""
    assert [each.own for each in admission(found, WATCHED)] == [False]


@pytest.mark.parametrize("name", ["audit-ssa-create", "audit-ssa-update"])
def test_what_we_apply_is_passed_over_in_audit_events_too(name: str) -> None:
    """They have the field manager in the request's URI."""
    text = (PAYLOADS / f"{name}.json").read_text()
    events = json.loads(text.replace("fieldManager=addon", "fieldManager=bellhop"))["items"]

    assert list(audit(events, WATCHED)) == []
    assert len(list(audit(events, ASKING))) == len(events) == 1


def test_we_apply_as_the_manager_that_marks_own_writes() -> None:
    """Otherwise all of them would send hints."""
    assert MANAGER == "bellhop"


@pytest.mark.parametrize(
    "events", [pytest.param([None, 7, "x", []], id="no objects"), pytest.param([{}], id="empty")]
)
def test_passes_over_events_that_are_none(events: list[Any]) -> None:
    """What is not an event says nothing."""
    assert list(audit(events, WATCHED)) == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [("7", 7), (None, 0), ("", 0), ("abc", 0), ("-1", 0), (12, 12)],
)
def test_reads_a_resource_version(version: Any, expected: int) -> None:
    """What is no number counts as none."""
    assert version_of({"resourceVersion": version}) == expected
