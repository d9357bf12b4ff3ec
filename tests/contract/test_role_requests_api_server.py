"""What a RoleRequest gives is what a real API server's RBAC lets the account do, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.documents.document import read_documents
from bellhop.errors import DeniedError
from tests.contract.real_cluster import EAST, read_status
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, profile
from tests.unit.events.test_access_reviews import matched, rules
from tests.unit.extras.test_role_requests import request, role
from tests.waiting import eventually

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
    """Ask as the tenant, which the API server denies a while after its binding was deleted."""
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
    """Denied before; written as soon as the request is, by nobody's hand; denied after it."""
    fleet.apply(OWN, holder("own", config("a", namespace="team")))
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    fleet.pump()
    denied = read_status(fleet, "own")
    assert denied.reason == "Denied"
    assert "grant it this one" in denied.message
    assert kube.get(CONFIG, "team", "a") is None

    fleet.apply(request(), request("also"), holder("roles", role(), role("sees", "nodes", "")))
    go_on(fleet, lambda: provisioned(fleet, "own", "RoleRequest:anns"))
    assert kube.get(CONFIG, "team", "a") is not None

    fleet.declare.delete([("RoleRequest", "", "anns")])
    fleet.apply(holder("own", config("a", "v: '1'", namespace="team")))
    go_on(fleet, lambda: (kube.get(CONFIG, "team", "a") or {}).get("data") == {"v": "1"})
    assert read_status(fleet, "own").phase == "Provisioned"

    fleet.declare.delete([("RoleRequest", "", "also")])
    go_on(fleet, lambda: not may_read(kube))
    fleet.apply(holder("own", config("a", "v: '2'", namespace="team")))
    fleet.pump()
    assert read_status(fleet, "own").reason == "Denied"
    for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"):
        left = kube.list(GVK("rbac.authorization.k8s.io", "v1", kind))
        assert not [each for each in left if "writes" in str(each) or "sees" in str(each)]


def test_a_tenants_source_sees_by_a_request_within_seconds(fleet: Fleet, kube: KubeClient) -> None:
    """An object it may not see before matches by no due resync, nor by another's rights."""
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
    """Registration prints the verbs that its account needs, and gives the rights with them."""
    for each in grants("register-a-cluster.md", "ClusterRole"):
        kube.apply(each)
    limited = kube.acting_as(BELLHOP)
    fleet.access.clusters[EAST] = limited  # type: ignore[assignment]
    fleet.apply(request(), holder("roles", role()))
    attempt = "is attempting to grant RBAC permissions not currently held"
    go_on(fleet, lambda: attempt in read_status(fleet, "RoleRequest:anns").message)

    said = read_status(fleet, "RoleRequest:anns")
    assert said.reason == "Denied"
    assert "the verbs escalate and bind on roles and clusterroles" in said.message

    for each in grants("multi-tenancy.md", "ClusterRole"):
        kube.apply(each)
    fleet.apply(request().replace("{name: anns}", "{name: anns, labels: {again: once}}"))
    fleet.apply(holder("roles", role(), role("more")))
    go_on(fleet, lambda: provisioned(fleet, "RoleRequest:anns"))
