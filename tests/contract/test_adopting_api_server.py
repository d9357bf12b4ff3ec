"""Objects that others made in a real cluster: refused, adopted, and left, as its server has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import LAST_APPLIED
from bellhop.operations.previews import preview_now
from tests.contract.real_cluster import EAST
from tests.contract.test_preview_api_server import adopted
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile

CONFIG = GVK("", "v1", "ConfigMap")
PLACE = "/api/v1/namespaces/default/configmaps"
DATA = {"by": "them", "kept": "yes"}
HELM = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}


def _body(**metadata: Any) -> dict[str, Any]:
    head = {"name": "web", "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head, "data": DATA}


def by_hand() -> Request:
    """Ask for it as `kubectl apply` does, which remembers what it applied."""
    annotations = {LAST_APPLIED: json.dumps(_body())}
    query = {"fieldManager": "kubectl-client-side-apply"}
    return Request("POST", PLACE, query, _body(annotations=annotations))


def by_the_server() -> Request:
    """Ask for it as `kubectl apply --server-side` does."""
    media = "application/apply-patch+yaml"
    return Request("PATCH", f"{PLACE}/web", {"fieldManager": "kubectl"}, _body(), media)


def by_helm() -> Request:
    """Ask for it as a release of Helm does."""
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    body = _body(annotations=dict(HELM), labels=labels)
    return Request("POST", PLACE, {"fieldManager": "helm"}, body)


MAKERS = [
    pytest.param(by_hand, "field manager 'kubectl-client-side-apply'", id="kubectl apply"),
    pytest.param(by_the_server, "field manager 'kubectl'", id="kubectl apply --server-side"),
    pytest.param(by_helm, "Helm release 'shop/web' (field manager 'helm')", id="Helm"),
]


def there(kube: KubeClient) -> dict[str, Any]:
    found = kube.get(CONFIG, "default", "web")
    assert found
    return found


def marks(found: dict[str, Any]) -> set[str]:
    metadata = found["metadata"]
    return {*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})}


@pytest.mark.parametrize(("request_of", "maker"), MAKERS)
def test_what_others_made_is_refused_then_adopted_then_left(
    fleet: Fleet,
    kube: KubeClient,
    request_of: Any,
    maker: str,
) -> None:
    """Untouched until it is asked for; its own fields stay, and in the end it bears no mark."""
    kube._transport.send(request_of(), Call(EAST, "make it", "default"))
    before = there(kube)

    fleet.apply(join(profile(), holder("own", config("web", "by: own"))))
    fleet.pump()
    outcome = fleet.records.outcomes.get(EAST, "own")
    assert outcome
    assert f"it already exists, created by {maker} and not by" in outcome.value.message
    assert there(kube) == before

    fleet.apply(holder("own", adopted("web", "by: own")))
    fleet.pump()
    taken = there(kube)
    assert taken["metadata"]["uid"] == before["metadata"]["uid"]
    assert taken["data"] == {"by": "own", "kept": "yes"}
    assert taken["metadata"]["annotations"]["bellhop.dev/adopted"] == maker
    assert "bellhop.dev/adopt" not in marks(taken)

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    left = there(kube)
    assert left["metadata"]["uid"] == before["metadata"]["uid"]
    assert left["data"] == {"by": "own", "kept": "yes"}
    assert marks(left) == marks(before)
    managers = {each["manager"] for each in left["metadata"]["managedFields"]}
    assert managers == {each["manager"] for each in before["metadata"]["managedFields"]}
    assert list(fleet.records.inventories.of(EAST)) == []


def test_an_object_that_others_re_create_is_not_overwritten(
    fleet: Fleet,
    kube: KubeClient,
) -> None:
    """Nor is it removed with the profile: it lives another life than the one that was applied."""
    fleet.apply(join(profile(), holder("own", config("web", "by: own"))))
    fleet.pump()
    kube.remove(CONFIG, "default", "web")
    kube._transport.send(by_helm(), Call(EAST, "make it", "default"))
    before = there(kube)

    fleet.apply(holder("own", config("web", "by: another")))
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert there(kube) == before


def by_sveltos() -> Request:
    """Ask for it as Sveltos' controller does."""
    owner = {
        "projectsveltos.io/owner-kind": "ClusterProfile",
        "projectsveltos.io/owner-name": "own",
        "projectsveltos.io/hash": "sha256:0",
    }
    body = _body(annotations=owner, labels={"projectsveltos.io/reason": "Resources"})
    query = {"fieldManager": "application/apply-patch", "force": "true"}
    return Request("PATCH", f"{PLACE}/web", query, body, "application/apply-patch+yaml")


def release(kube: KubeClient) -> None:
    """Release it as Sveltos' controller does by `LeavePolicies`."""
    body = there(kube)
    for mark in ("owner-kind", "owner-name"):
        del body["metadata"]["annotations"][f"projectsveltos.io/{mark}"]
    put = Request("PUT", f"{PLACE}/web", {"fieldManager": "manager"}, body)
    kube._transport.send(put, Call(EAST, "release it", "default"))


def test_what_sveltos_deploys_is_left_to_it_until_it_is_released(
    fleet: Fleet,
    kube: KubeClient,
) -> None:
    """A profile of the same name writes nothing before; then the object is its own, and goes."""
    kube._transport.send(by_sveltos(), Call(EAST, "make it", "default"))
    before = there(kube)
    fleet.apply(join(profile(), holder("own", config("web", "by: own"))))
    fleet.pump()
    outcome = fleet.records.outcomes.get(EAST, "own")
    assert outcome
    assert "Sveltos deploys it for its ClusterProfile 'own'" in outcome.value.message
    [compared] = preview_now(fleet.installation(), "own")
    assert compared.change.action == "Conflict"
    assert compared.change.message.endswith("to take it over; what changes then: 2 lines")
    assert "+  by: own" in compared.change.diff
    assert there(kube) == before

    release(kube)
    fleet.apply(holder("own", config("web", "by: bellhop")))
    fleet.pump()
    taken = there(kube)
    assert taken["metadata"]["uid"] == before["metadata"]["uid"]
    assert taken["data"] == {"by": "bellhop", "kept": "yes"}
    assert "bellhop.dev/adopted" not in marks(taken)

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    assert kube.get(CONFIG, "default", "web") is None
