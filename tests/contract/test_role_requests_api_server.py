"""What a RoleRequest gives is what a real API server's RBAC lets the account do, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.documents.document import read_documents
from bellhop.errors import DeniedError
from bellhop.state.messages import Apply, Resolve
from bellhop.state.record import DeploymentStatus
from infra.lab.cluster import Cluster
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.manifests import config, holder, profile
from tests.unit.stages.test_permits import matched, rules
from tests.unit.stages.test_role_requests import request, role
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]

EAST = "fleet/east"
CONFIG = GVK("", "v1", "ConfigMap")
BELLHOP = "bellhop-account/bellhop"
HOW_TO = Path(__file__).parents[2] / "docs/how-to"
LABELS = f"labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, "
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {"ports": [{"port": 80, "protocol": "TCP"}]},
}
OWN = profile().replace("metadata: {", f"metadata: {{{LABELS}")


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    """The administrator of a cluster."""
    opened = KubeClient(EAST, sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    yield opened
    opened.close()


@pytest.fixture
def fleet(tmp_path: Path, kube: KubeClient) -> Iterator[Fleet]:
    """An installation that knows the cluster."""
    one = Fleet(tmp_path)
    one.access.clusters[EAST] = kube  # type: ignore[assignment]
    one.register("east", env="production")
    yield one
    one.close()


def outcome(fleet: Fleet, name: str) -> DeploymentStatus:
    found = value_of(fleet.records.outcomes.get(EAST, name))
    assert found
    return found


def go_on(fleet: Fleet, until: Callable[[], object]) -> None:
    """Let pauses go by until something is so: an API server follows a binding after a while."""

    def done() -> object:
        fleet.pump()
        found = until()
        fleet.clock.advance(timedelta(seconds=0 if found else 5))
        return found

    eventually("the API server follows the bindings", done, pause=0.3)


def provisioned(fleet: Fleet, *names: str) -> bool:
    phases = {each.profile: each.phase for each in fleet.records.outcomes.of(EAST)}
    return {phases.get(each) for each in names} == {"Provisioned"}


def may_read(kube: KubeClient) -> bool:
    """Ask as the tenant, whom the API server denies a while after its binding has gone."""
    try:
        kube.acting_as("team/ann").get(CONFIG, "team", "a")
    except DeniedError:
        return False
    return True


def grants(page: str, kind: str) -> Iterator[dict[str, Any]]:
    """Yield what a page gives Bellhop's account by the blocks that hold a kind."""
    for block in (HOW_TO / page).read_text().split("```yaml")[1:]:
        text = block.partition("\n")[2].partition("```")[0]
        if f"kind: {kind}" in text and "bellhop" in text:
            yield from (each.data for each in read_documents(text, source=page))


def test_a_tenant_may_what_a_request_gives_as_long_as_it_is_there(
    fleet: Fleet, kube: KubeClient
) -> None:
    """Denied before; written as soon as the request is, by nobody's hand; denied after it.

    It takes seconds: an API server follows a new binding only after a while, each time.
    """
    fleet.apply(OWN, holder("own", config("a", namespace="team")))
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    fleet.pump()
    denied = outcome(fleet, "own")
    assert denied.reason == "Denied"
    assert "grant it this one" in denied.message
    assert kube.get(CONFIG, "team", "a") is None

    fleet.apply(request(), request("also"), holder("roles", role(), role("sees", "nodes", "")))
    go_on(fleet, lambda: provisioned(fleet, "own", "RoleRequest:anns"))
    assert kube.get(CONFIG, "team", "a") is not None

    fleet.declare.delete([("RoleRequest", "", "anns")])
    fleet.apply(holder("own", config("a", "v: '1'", namespace="team")))
    go_on(fleet, lambda: (kube.get(CONFIG, "team", "a") or {}).get("data") == {"v": "1"})
    assert outcome(fleet, "own").phase == "Provisioned"

    fleet.declare.delete([("RoleRequest", "", "also")])
    go_on(fleet, lambda: not may_read(kube))
    fleet.apply(holder("own", config("a", "v: '2'", namespace="team")))
    fleet.pump()
    assert outcome(fleet, "own").reason == "Denied"
    for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"):
        left = kube.list(GVK("rbac.authorization.k8s.io", "v1", kind))
        assert not [each for each in left if "writes" in str(each) or "sees" in str(each)]


def test_a_tenants_source_sees_by_a_request_within_seconds(fleet: Fleet, kube: KubeClient) -> None:
    """What it may not see before matches by no sweep that was due, nor by another's rights."""
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    kube.apply(SERVICE)
    roles = holder("roles", role("reads", "services"))
    fleet.apply(rules(), request("bobs", account="bob"), roles)
    go_on(fleet, lambda: provisioned(fleet, "RoleRequest:bobs"))
    seconds_later(fleet)
    assert matched(fleet) == []

    fleet.apply(request())
    eventually("the source sees it", lambda: seconds_later(fleet) or matched(fleet), pause=0.5)
    assert matched(fleet) == ["team/web"]


def seconds_later(fleet: Fleet) -> None:
    """Work on all, and do what is due a few seconds later."""
    fleet.pump()
    fleet.clock.advance(timedelta(seconds=3))
    fleet.schedule.tick()
    fleet.pump()


def test_nobody_grants_what_he_may_not_do(fleet: Fleet, kube: KubeClient) -> None:
    """Registration's account is told which verbs it needs, and gives the rights with them."""
    for each in grants("register-a-cluster.md", "ClusterRole"):
        kube.apply(each)
    limited = kube.acting_as(BELLHOP)
    fleet.access.clusters[EAST] = limited  # type: ignore[assignment]
    fleet.apply(request(), holder("roles", role()))
    fleet.pump()

    said = outcome(fleet, "RoleRequest:anns")
    assert said.reason == "Denied"
    assert "is attempting to grant RBAC permissions not currently held" in said.message
    assert "the verbs escalate and bind on roles and clusterroles" in said.message

    for each in grants("multi-tenancy.md", "ClusterRole"):
        kube.apply(each)
    fleet.apply(request().replace("{name: anns}", "{name: anns, labels: {again: once}}"))
    fleet.apply(holder("roles", role(), role("more")))
    go_on(fleet, lambda: provisioned(fleet, "RoleRequest:anns"))


def there(fleet: Fleet, kube: KubeClient) -> None:
    """Have a tenant's profile brought by the rights of a RoleRequest."""
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    fleet.apply(request(), holder("roles", role()), OWN)
    fleet.apply(holder("own", config("a", namespace="team"), config("b", namespace="team")))
    go_on(fleet, lambda: provisioned(fleet, "own"))


def left(kube: KubeClient) -> list[str]:
    """Name what is still there of roles, bindings and what was written by them."""
    kinds = [GVK("rbac.authorization.k8s.io", "v1", each) for each in ("Role", "RoleBinding")]
    found = [each for kind in (CONFIG, *kinds) for each in kube.list(kind, namespace="team")]
    names = (each["metadata"]["name"] for each in found)
    return [each for each in names if each != "kube-root-ca.crt"]


@pytest.mark.parametrize("first", ["own", "RoleRequest:anns"])
@pytest.mark.parametrize("how", ["deleted", "unlabelled"])
def test_rights_leave_after_what_was_written_by_them(
    fleet: Fleet, kube: KubeClient, first: str, how: str
) -> None:
    """Whichever of the two is worked on first, and without any pause in between."""
    there(fleet, kube)

    if how == "deleted":
        fleet.declare.delete([("RoleRequest", "", "anns"), ("ClusterProfile", "", "own")])
    else:
        fleet.declare.label(EAST, {"env": "test"})
        # They are all that the cluster has.
        fleet.release()
    fleet.stages["deploy"].handle(Resolve(first))
    fleet.stages["deploy"].handle(Apply("", "", first, EAST))
    fleet.pump()

    assert left(kube) == []
    assert list(fleet.records.outcomes.of(EAST)) == []


def test_what_was_left_behind_goes_once_its_rights_come_again(
    fleet: Fleet, kube: KubeClient
) -> None:
    """It was deleted after its rights; by nobody's hand, as soon as the request is there again.

    It takes seconds: an API server follows a new binding only after a while, each time.
    """
    there(fleet, kube)
    fleet.declare.delete([("RoleRequest", "", "anns")])
    go_on(fleet, lambda: not may_read(kube))
    fleet.declare.delete([("ClusterProfile", "", "own")])
    for _ in range(3):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=20))
    assert outcome(fleet, "own").reason == "Denied"
    assert left(kube) == ["a", "b"]

    fleet.apply(request())
    go_on(fleet, lambda: fleet.records.outcomes.get(EAST, "own") is None)
    assert "a" not in left(kube)

    fleet.declare.delete([("RoleRequest", "", "anns")])
    go_on(fleet, lambda: not left(kube))
