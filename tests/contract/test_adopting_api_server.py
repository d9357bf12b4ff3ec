"""Objects that others made in a real cluster: refused, adopted, and left, as its server has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import LAST_APPLIED
from bellhop.operations.previews import now
from bellhop.settings import Settings
from tests.contract.test_preview_api_server import (  # noqa: F401 - fixtures
    EAST,
    adopted,
    fleet,
    kube,
)
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile

pytest_plugins = ["tests.kube_fixtures"]

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


def there(kube: KubeClient) -> dict[str, Any]:  # noqa: F811 - the fixture
    found = kube.get(CONFIG, "default", "web")
    assert found
    return found


def marks(found: dict[str, Any]) -> set[str]:
    metadata = found["metadata"]
    return {*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})}


@pytest.mark.parametrize(("request_of", "maker"), MAKERS)
def test_what_others_made_is_refused_then_adopted_then_left(
    fleet: Fleet,  # noqa: F811 - the fixture
    kube: KubeClient,  # noqa: F811 - the fixture
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


@pytest.fixture
def always(tmp_path: Path, kube: KubeClient) -> Iterator[Fleet]:  # noqa: F811 - the fixture
    """An installation that does as Sveltos does, and knows the cluster."""
    one = Fleet(tmp_path / "always", Settings(adopt="always"))
    one.access.clusters[EAST] = kube  # type: ignore[assignment]
    one.register("east", env="production")
    yield one
    one.close()


@pytest.mark.parametrize(("request_of", "maker"), MAKERS)
def test_the_setting_adopts_what_others_made_and_no_profile(
    always: Fleet,
    kube: KubeClient,  # noqa: F811 - the fixture
    request_of: Any,
    maker: str,
) -> None:
    """Nobody asks for it by the object; what another profile has is its own all the same."""
    kube._transport.send(request_of(), Call(EAST, "make it", "default"))
    before = there(kube)

    always.apply(join(profile(), holder("own", config("web", "by: own"))))
    always.pump()
    taken = there(kube)
    assert taken["metadata"]["uid"] == before["metadata"]["uid"]
    assert taken["data"] == {"by": "own", "kept": "yes"}
    assert taken["metadata"]["annotations"]["bellhop.dev/adopted"] == maker

    always.apply(join(profile(name="second"), holder("second", config("web", "by: second"))))
    always.pump()
    second = always.records.outcomes.get(EAST, "second")
    assert second
    assert "profile 'own' of tier 100 has it" in second.value.message
    assert there(kube)["data"]["by"] == "own"

    always.declare.delete([("ClusterProfile", "", name) for name in ("own", "second")])
    always.pump()
    assert marks(there(kube)) == marks(before)


def test_what_others_make_anew_is_not_written_over(
    fleet: Fleet,  # noqa: F811 - the fixture
    kube: KubeClient,  # noqa: F811 - the fixture
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


def test_what_a_profile_left_it_may_have_again(
    fleet: Fleet,  # noqa: F811 - the fixture
    kube: KubeClient,  # noqa: F811 - the fixture
) -> None:
    """Though others have written to it: it still says that a profile made it."""
    lasting = profile(more="stopMatchingBehavior: LeavePolicies")
    fleet.apply(join(lasting, holder("own", config("web", "by: own"))))
    fleet.pump()
    made = there(kube)
    body = {"data": {"kept": "yes"}}
    query = {"fieldManager": "kubectl-edit"}
    media = "application/merge-patch+json"
    edit = Request("PATCH", f"{PLACE}/web", query, body, media)
    kube._transport.send(edit, Call(EAST, "edit it", "default"))
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    assert marks(there(kube)) == {"bellhop.dev/made-by"}

    fleet.apply(lasting)
    fleet.pump()

    again = there(kube)
    assert again["metadata"]["uid"] == made["metadata"]["uid"]
    assert again["metadata"]["annotations"]["projectsveltos.io/owner-name"] == "own"
    assert again["data"] == {"by": "own", "kept": "yes"}


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


def release(kube: KubeClient) -> None:  # noqa: F811 - the fixture
    """Release it as Sveltos' controller does by `LeavePolicies`."""
    body = there(kube)
    for mark in ("owner-kind", "owner-name"):
        del body["metadata"]["annotations"][f"projectsveltos.io/{mark}"]
    put = Request("PUT", f"{PLACE}/web", {"fieldManager": "manager"}, body)
    kube._transport.send(put, Call(EAST, "release it", "default"))


def test_what_sveltos_deploys_is_left_to_it_until_it_is_released(
    fleet: Fleet,  # noqa: F811 - the fixture
    kube: KubeClient,  # noqa: F811 - the fixture
) -> None:
    """A profile of the same name writes nothing before; then the object is its own, and goes."""
    kube._transport.send(by_sveltos(), Call(EAST, "make it", "default"))
    before = there(kube)
    fleet.apply(join(profile(), holder("own", config("web", "by: own"))))
    fleet.pump()
    outcome = fleet.records.outcomes.get(EAST, "own")
    assert outcome
    assert "Sveltos deploys it for its ClusterProfile 'own'" in outcome.value.message
    [compared] = now(fleet.installation(), "own")
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
