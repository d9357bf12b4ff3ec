"""What somebody changed by hand is put back where an API server merges lists by a key."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request, Transport
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.errors import InvalidError
from bellhop.ports.kube import Manifest
from infra.lab.cluster import Cluster

SERVICE = GVK("", "v1", "Service")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
SERVICES = "/api/v1/namespaces/default/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CONTAINER = "/spec/template/spec/containers/0"
PROBE = {"httpGet": {"path": "/", "port": 80}}


@pytest.fixture
def kubeconfig(source_cluster: Cluster) -> Kubeconfig:
    return sanitise(source_cluster.kubeconfig(), reach=LOCAL)


@pytest.fixture
def kube(kubeconfig: Kubeconfig) -> Iterator[KubeClient]:
    client = KubeClient("prod/eu-1", kubeconfig, reach=LOCAL)
    yield client
    client.close()


def service(*ports: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "desk", "namespace": "default"},
        "spec": {"selector": {"app": "desk"}, "ports": list(ports)},
    }


def deployment() -> Manifest:
    container = {
        "name": "a",
        "image": "a",
        "ports": [{"name": "web", "containerPort": 80, "protocol": "TCP"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "livenessProbe": PROBE,
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}
    labels = {"app": "a"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "desk", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def write(kubeconfig: Kubeconfig, method: str, path: str, body: Any) -> None:
    """Write as kubectl would."""
    kind = "application/json-patch+json" if method == "PATCH" else "application/json"
    request = Request(method, path, {"fieldManager": "kubectl-edit"}, body, kind)
    transport = Transport("prod/eu-1", kubeconfig, reach=LOCAL)
    transport.send(request, Call("prod/eu-1", "change"))
    transport.close()


def op(path: str, value: Any, kind: str = "replace") -> dict[str, Any]:
    return {"op": kind, "path": path, "value": value}


def uid(kube: KubeClient, gvk: GVK) -> str:
    found = kube.get(gvk, "default", "desk")
    assert found
    return str(found["metadata"]["uid"])


def ports(kube: KubeClient) -> dict[str, int]:
    found = kube.get(SERVICE, "default", "desk")
    assert found
    return {each["name"]: each["port"] for each in found["spec"]["ports"]}


WEB = {"name": "web", "port": 80, "protocol": "TCP"}
EXTRA = {"name": "extra", "port": 90, "protocol": "TCP"}


@pytest.mark.parametrize("with_version", [False, True], ids=["any version", "the version seen"])
def test_a_port_that_somebody_changed_is_put_back(
    kube: KubeClient, kubeconfig: Kubeconfig, *, with_version: bool
) -> None:
    """Another port with another name contradicts nothing, and stays."""
    kube.apply(service(WEB))
    changes = [op("/spec/ports/0/port", 83), op("/spec/ports/-", EXTRA, "add")]
    write(kubeconfig, "PATCH", f"{SERVICES}/desk", changes)
    assert ports(kube) == {"web": 83, "extra": 90}

    there = kube.get(SERVICE, "default", "desk")
    assert there
    about = there["metadata"]
    version = str(about["resourceVersion"]) if with_version else ""
    kube.apply(service(WEB), uid=about["uid"], version=version)
    assert ports(kube) == {"web": 80, "extra": 90}

    kube.apply(service(WEB), uid=about["uid"])
    assert ports(kube) == {"web": 80, "extra": 90}


def test_a_port_without_a_protocol_is_applied(kube: KubeClient) -> None:
    """The protocol is TCP, though it is a part of the key and 1.20 has no default of it."""
    applied = kube.apply(service({"name": "web", "port": 80}))
    assert [each["protocol"] for each in applied["spec"]["ports"]] == ["TCP"]


def test_a_port_of_an_object_that_is_adopted_is_replaced(
    kube: KubeClient, kubeconfig: Kubeconfig
) -> None:
    """Somebody created the object with another port of that name."""
    write(kubeconfig, "POST", SERVICES, service({**WEB, "port": 83}))
    kube.apply(service(WEB), uid=uid(kube, SERVICE))
    assert ports(kube) == {"web": 80}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param([op(f"{CONTAINER}/ports/0/containerPort", 83)], id="a port of a container"),
        pytest.param(
            [op("/spec/template/spec/volumes/0", {"name": "v", "hostPath": {"path": "/"}})],
            id="the type of a volume that is named first",
        ),
        pytest.param(
            [
                op(
                    "/spec/template/spec/volumes/0",
                    {"name": "v", "configMap": {"name": "a", "defaultMode": 420}},
                )
            ],
            id="the type of a volume that is named second",
        ),
        pytest.param(
            [op(f"{CONTAINER}/livenessProbe", {"exec": {"command": ["a"]}})],
            id="the handler of a probe",
        ),
        pytest.param(
            [op(f"{CONTAINER}/livenessProbe", {"tcpSocket": {"port": 80}})],
            id="another handler of a probe",
        ),
    ],
)
def test_a_field_that_contradicts_ours_is_taken_away(
    kube: KubeClient, kubeconfig: Kubeconfig, change: list[Any]
) -> None:
    """The object is as it was applied, after one more generation and no other."""
    before = kube.apply(deployment())
    write(kubeconfig, "PATCH", f"{DEPLOYMENTS}/desk", change)
    changed = kube.get(DEPLOYMENT, "default", "desk")
    assert changed
    assert changed["spec"] != before["spec"]

    after = kube.apply(deployment(), uid=uid(kube, DEPLOYMENT))
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == changed["metadata"]["generation"] + 1


def test_a_variable_whose_source_somebody_changed_is_put_back(
    kube: KubeClient, kubeconfig: Kubeconfig
) -> None:
    """Up to 1.20 an apply leaves an empty `valueFrom`, and stays refused."""
    before = kube.apply(deployment())
    source = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    change = [
        op(f"{CONTAINER}/env/1/value", None, "remove"),
        op(f"{CONTAINER}/env/1/valueFrom", source, "add"),
    ]
    write(kubeconfig, "PATCH", f"{DEPLOYMENTS}/desk", change)

    if kube.version().startswith("v1.20."):
        with pytest.raises(InvalidError, match="must specify one of"):
            kube.apply(deployment(), uid=uid(kube, DEPLOYMENT))
    else:
        assert kube.apply(deployment(), uid=uid(kube, DEPLOYMENT))["spec"] == before["spec"]


def test_what_is_wrong_by_itself_stays_refused_and_changes_nothing(
    kube: KubeClient, kubeconfig: Kubeconfig
) -> None:
    """Two ports of one name in the manifest contradict each other, and no port of others."""
    kube.apply(service(WEB))
    write(kubeconfig, "PATCH", f"{SERVICES}/desk", [op("/spec/ports/-", EXTRA, "add")])
    before = kube.get(SERVICE, "default", "desk")

    with pytest.raises(InvalidError, match="Duplicate value"):
        kube.apply(service(WEB, {**WEB, "port": 81}), uid=uid(kube, SERVICE))
    assert kube.get(SERVICE, "default", "desk") == before


def test_a_life_that_is_another_is_not_touched(kube: KubeClient, kubeconfig: Kubeconfig) -> None:
    """Its owners are changed by nobody who means an object that was there before."""
    write(kubeconfig, "POST", SERVICES, service({**WEB, "port": 83}))
    before = copy.deepcopy(kube.get(SERVICE, "default", "desk"))
    with pytest.raises(Exception, match="cannot apply"):
        kube.apply(service(WEB), uid="00000000-0000-0000-0000-000000000000")
    assert kube.get(SERVICE, "default", "desk") == before
