"""A profile that is checked before and after deployment, and taken back, by real API servers."""

from __future__ import annotations

from typing import Any

from bellhop.core.gvk import GVK, ObjectKey
from tests.flow.conftest import EXAMPLES, Flow
from tests.waiting import eventually

EAST = "fleet/source"
SERVICE = GVK("", "v1", "Service")
INGRESS = GVK("networking.k8s.io", "v1", "Ingress")
GATEWAY = ObjectKey(SERVICE, "edge", "gateway")
SHOP = ObjectKey(INGRESS, "default", "shop")


def ingress() -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {
            "ingressClassName": "edge",
            "defaultBackend": {"service": {"name": "shop", "port": {"number": 80}}},
        },
    }


def shown(flow: Flow) -> str:
    """Return phase and message of the profile in the cluster; nothing where there is no outcome."""
    kept = flow.stand.records().outcomes.get(EAST, "gateway")
    return f"{kept.value.phase} {kept.value.message}" if kept else ""


def test_a_gateway_is_checked_from_its_ground_to_its_end(flow: Flow) -> None:
    """It waits for its namespace, for its address, for who uses it, and for what it leaves."""
    flow.stand.do("apply", "-f", str(EXAMPLES / "checked"))
    eventually("it waits for the ground", lambda: "'namespace-is-ready'" in shown(flow))
    assert shown(flow) == (
        "Provisioning waits for check 'namespace-is-ready': there is no Namespace with the labels"
        " 'network.example.com/policies=applied'"
    )
    assert flow.source.get(GATEWAY) is None

    labels = {"network.example.com/policies": "applied"}
    metadata = {"name": "edge", "labels": labels}
    flow.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    eventually("it waits for the address", lambda: "'has-address'" in shown(flow))
    assert flow.source.get(GATEWAY)
    assert "Service 'edge/gateway' is not healthy: no CEL rule holds" in shown(flow)
    assert "has-address" in flow.stand.do("describe", "clusterprofile", "gateway")

    flow.source.give_address(GATEWAY, "203.0.113.7")
    eventually("it is deployed", lambda: shown(flow) == "Provisioned ")

    flow.source.create(ingress())
    flow.stand.do("delete", "clusterprofile", "gateway")
    eventually("it waits for who uses it", lambda: "'unused'" in shown(flow))
    assert shown(flow).startswith(
        "Removing waits for check 'unused': Ingress 'default/shop' is not"
    )
    assert flow.source.get(GATEWAY)

    held = {"metadata": {"finalizers": ["example.com/address"]}}
    flow.source.patch(GATEWAY, held)
    flow.source.delete(SHOP)
    eventually("it waits for its end", lambda: "finalizer 'example.com/address'" in shown(flow))
    gateway = flow.source.get(GATEWAY)
    assert gateway
    assert gateway["metadata"]["deletionTimestamp"]
    assert flow.stand.records().profiles.head("", "", "gateway")

    flow.source.patch(GATEWAY, {"metadata": {"finalizers": None}})
    eventually("it is gone", lambda: shown(flow) == "")
    eventually("all is", lambda: flow.stand.records().profiles.head("", "", "gateway") is None)
    assert flow.source.get(GATEWAY) is None
