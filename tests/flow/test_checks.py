"""A profile that is checked before and after it is brought, and taken back, by real API servers."""

from __future__ import annotations

from typing import Any

from bellhop.core.gvk import GVK, ObjectKey
from tests.flow.conftest import EXAMPLES, Flow
from tests.waiting import eventually

EAST = "fleet/source"
NAMESPACE = GVK("", "v1", "Namespace")
SERVICE = GVK("", "v1", "Service")
INGRESS = GVK("networking.k8s.io", "v1", "Ingress")
EDGE = ObjectKey(NAMESPACE, "", "edge")
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


def told(flow: Flow) -> str:
    """Return phase and message of the profile in the cluster; nothing where there is no outcome."""
    kept = flow.stand.records().outcomes.get(EAST, "gateway")
    return f"{kept.value.phase} {kept.value.message}" if kept else ""


def test_a_gateway_is_checked_from_its_ground_to_its_end(flow: Flow) -> None:
    """It waits for its namespace, for its address, for who uses it, and for what it leaves.

    It takes seconds: each of four checks is tried again until it passes.
    """
    flow.stand.do("apply", "-f", str(EXAMPLES / "checked"))
    eventually("it waits for the ground", lambda: "'namespace-is-ready'" in told(flow))
    assert told(flow) == (
        "Provisioning waits for check 'namespace-is-ready': there is no Namespace with the labels"
        " 'network.example.com/policies=applied'"
    )
    assert flow.source.get(GATEWAY) is None

    labels = {"network.example.com/policies": "applied"}
    metadata = {"name": "edge", "labels": labels}
    flow.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    eventually("it waits for the address", lambda: "'has-address'" in told(flow))
    assert flow.source.get(GATEWAY)
    assert "Service 'edge/gateway' is not healthy: no CEL rule holds" in told(flow)
    assert "has-address" in flow.stand.do("describe", "clusterprofile", "gateway")

    flow.source.give_address(GATEWAY, "203.0.113.7")
    eventually("it is deployed", lambda: told(flow) == "Provisioned ")

    flow.source.create(ingress())
    flow.stand.do("delete", "clusterprofile", "gateway")
    eventually("it waits for who uses it", lambda: "'unused'" in told(flow))
    assert told(flow).startswith("Removing waits for check 'unused': Ingress 'default/shop' is not")
    assert flow.source.get(GATEWAY)

    held = {"metadata": {"finalizers": ["example.com/address"]}}
    flow.source.patch(GATEWAY, held)
    flow.source.delete(SHOP)
    eventually("it waits for its end", lambda: "finalizer 'example.com/address'" in told(flow))
    gateway = flow.source.get(GATEWAY)
    assert gateway
    assert gateway["metadata"]["deletionTimestamp"]
    assert flow.stand.records().profiles.head("", "", "gateway")

    flow.source.patch(GATEWAY, {"metadata": {"finalizers": None}})
    eventually("it is gone", lambda: told(flow) == "")
    eventually("all is", lambda: flow.stand.records().profiles.head("", "", "gateway") is None)
    assert flow.source.get(GATEWAY) is None


def test_a_removal_whose_check_never_passes_is_ended_by_a_command(flow: Flow) -> None:
    """Whoever knows better has it go unchecked; of a profile that is wanted this is refused.

    It takes seconds: checks are tried again until they pass, between five commands.
    """
    flow.source.create(ingress())
    labels = {"network.example.com/policies": "applied"}
    metadata = {"name": "edge", "labels": labels}
    flow.source.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    flow.stand.do("apply", "-f", str(EXAMPLES / "checked"))
    eventually("it is there", lambda: flow.source.get(GATEWAY))
    flow.source.give_address(GATEWAY, "203.0.113.7")
    eventually("it is deployed", lambda: told(flow) == "Provisioned ")
    flow.stand.do("delete", "clusterprofile", "gateway")
    eventually("it waits for who uses it", lambda: "'unused'" in told(flow))

    flow.stand.do("redeploy", "gateway", "--unchecked")
    eventually("it is gone", lambda: flow.source.get(GATEWAY) is None)
    eventually("all is", lambda: flow.stand.records().profiles.head("", "", "gateway") is None)
