"""What profiles ask for beside their objects, as a real API server has it: done, or refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.core.gvk import GVK, ObjectKey
from tests.contract.real_cluster import EAST, read_status, retry
from tests.contract.test_preview_api_server import CRD, GADGET
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import (
    config,
    holder,
    join,
    profile,
)
from tests.unit.deploy.features.test_resources import SUBRESOURCES, balanced, with_refs
from tests.waiting import eventually

CONFIG = GVK("", "v1", "ConfigMap")
SERVICE = GVK("", "v1", "Service")
RIGHTS = GVK("rbac.authorization.k8s.io", "v1", "RoleBinding")
FORCE = "projectsveltos.io/forceRecreate: 'true'"


def data(kube: KubeClient, namespace: str = "default") -> dict[str, str]:
    """Return what our ConfigMaps say, by name."""
    found = kube.list(CONFIG, namespace=namespace, labels="projectsveltos.io/reason=Resources")
    return {each["metadata"]["name"]: each["data"]["v"] for each in found}


def fixed(value: int, annotation: str = "") -> str:
    text = config("a", f"v: '{value}'") + "immutable: true\n"
    return text.replace("}", f", annotations: {{{annotation}}}}}", 1) if annotation else text


@pytest.mark.parametrize(
    ("force", "annotation", "value"),
    [
        pytest.param("true", "", "2", id="by force on its ref"),
        pytest.param("false", FORCE, "2", id="by its annotation"),
        pytest.param("false", "", "1", id="not at all"),
    ],
)
def test_an_immutable_object_is_re_created_where_the_profile_says_so(
    fleet: Fleet, kube: KubeClient, force: str, annotation: str, value: str
) -> None:
    """Else it stays, and the outcome has the API server's words."""
    fleet.apply(with_refs(profile(), f"force: {force}"))
    for number in (1, 2):
        fleet.apply(holder("own", fixed(number, annotation)))
        fleet.pump()

    assert data(kube) == {"a": value}
    assert read_status(fleet).phase == ("Provisioned" if value == "2" else "Failed")
    assert ("immutable" in read_status(fleet).message) is (value == "1")


def test_a_status_is_written_or_refused(fleet: Fleet, kube: KubeClient) -> None:
    """A Service has the address that its manifest says; a ConfigMap has no status to write."""
    asking = f"{SUBRESOURCES}: status"
    service = balanced().replace("spec: {", "spec: {type: LoadBalancer, ")
    fleet.apply(profile(), holder("own", service, annotations=asking))
    fleet.pump()
    found = kube.get(SERVICE, "default", "a")
    assert found
    assert found["status"]["loadBalancer"]["ingress"][0]["ip"] == "203.0.113.7"

    text = config("a", "v: '1'") + "status: {phase: x}\n"
    fleet.apply(holder("own", text, annotations=asking))
    fleet.pump()
    assert "it is refused" in read_status(fleet).message
    assert ".status: field not declared in schema" in read_status(fleet).message


SPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
_RBAC = "apiVersion: rbac.authorization.k8s.io/v1\n"
ROLE = f"""{_RBAC}kind: Role
metadata: {{name: reads, namespace: shop}}
rules: [{{apiGroups: [""], resources: [configmaps], verbs: [get]}}]
"""
BINDING = f"""{_RBAC}kind: RoleBinding
metadata: {{name: reads, namespace: shop}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads}}
subjects: [{{kind: ServiceAccount, name: ann, namespace: shop}}]
"""
GADGET_KEY = ObjectKey(GVK("lab.example", "v1", "Gadget"), "shop", "g")


def write_theirs(fleet: Fleet, kube: KubeClient) -> None:
    """Write a field of ours as an operator does, and have the cluster call the webhook."""
    body, media = {"data": {"v": "theirs"}}, "application/merge-patch+json"
    query, path = {"fieldManager": "keen-operator"}, "/api/v1/namespaces/default/configmaps/a"
    kube._transport.send(Request("PATCH", path, query, body, media), Call(EAST, "edit it"))
    assert fleet.send("east", {"object": kube.get(CONFIG, "default", "a")}).status == 200
    fleet.pump()


def test_who_writes_it_back_each_time_is_named_and_waits(fleet: Fleet, kube: KubeClient) -> None:
    """By its API server's notes of who wrote; four times it is put back at once."""
    watched = profile(more="syncMode: ContinuousWithDriftDetection")
    fleet.apply(watched, holder("own", config("a", "v: '1'")))
    fleet.pump()
    for _ in range(4):
        write_theirs(fleet, kube)
        assert data(kube) == {"a": "1"}

    write_theirs(fleet, kube)
    assert data(kube) == {"a": "theirs"}
    said = read_status(fleet)
    assert (said.phase, said.reason) == ("Failed", "Drift")
    assert said.message.startswith(
        "cannot keep ConfigMap 'default/a': field manager 'keen-operator' changes it as often as it"
        " is put back, 4 times in a row; it waits 10 s now"
    )

    fleet.clock.advance(timedelta(seconds=10))
    fleet.pump()
    assert data(kube) == {"a": "1"}
    assert read_status(fleet).phase == "Provisioned"


def test_what_others_need_comes_first_and_goes_last(fleet: Fleet, kube: KubeClient) -> None:
    """An object before its namespace and its kind in a file; rights go when nobody uses them."""
    fleet.apply(join(profile(), holder("own", GADGET, BINDING, ROLE, CRD, SPACE)))
    fleet.pump()

    def provisioned() -> bool:
        if read_status(fleet).phase != "Provisioned":
            retry(fleet)
        return read_status(fleet).phase == "Provisioned"

    # An API server serves a kind within a second of its definition.
    eventually("all is provisioned", provisioned, pause=0.1)
    assert kube.get(*GADGET_KEY)
    assert kube.get(RIGHTS, "shop", "reads")

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    def left() -> list[str]:
        retry(fleet)
        (inventory,) = fleet.records.inventories.of(EAST)
        return [key.kind for key in inventory.held]

    # Here no controller ends a namespace.
    eventually("all else is gone", lambda: left() == ["Namespace"], pause=0.1)
    (removed,) = [entry.detail for entry in fleet.ledger() if entry.what == "removed"]
    assert removed == (
        "Gadget g, RoleBinding reads, Role reads, CustomResourceDefinition gadgets.lab.example,"
        " Namespace shop"
    )


PATCHED = """patches:
  - target: {kind: Service}
    patch: |
      spec:
        ports:
        - {port: 443, protocol: TCP, targetPort: 8443, name: https}
        - {port: 80, $patch: delete}
  - target: {kind: Service}
    patch: |
      - {op: add, path: /metadata/labels/cluster, value: "{{ .Cluster.metadata.name }}"}
"""
WEB = """apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  selector: {app: web}
  ports: [{port: 80, protocol: TCP, name: http}, {port: 53, protocol: UDP, name: dns}]
"""


def test_patched_objects_are_taken_and_are_not_applied_again(
    fleet: Fleet, kube: KubeClient
) -> None:
    """What an API server adds to a patched object is no difference."""
    fleet.apply(join(profile(more=PATCHED), holder("own", WEB)))
    fleet.pump()
    assert read_status(fleet).message == ""
    found = kube.get(SERVICE, "default", "web")
    assert found
    assert [each["name"] for each in found["spec"]["ports"]] == ["https", "dns"]
    assert found["metadata"]["labels"]["cluster"] == "east"

    retry(fleet)
    assert read_status(fleet).phase == "Provisioned"
    assert kube.get(SERVICE, "default", "web") == found
