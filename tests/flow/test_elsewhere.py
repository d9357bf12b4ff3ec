"""Changes of template reads in a real `mgmt/mgmt` reach another real cluster by events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.state.cluster import MANAGEMENT
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.flow.conftest import HOOKS, SETTINGS, InProcessStand, await_calls, list_watched
from tests.waiting import eventually

DEFINITION = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
WIDGET = ObjectKey(GVK("shop.io", "v1", "Widget"), "default", "price")
SHOP = ObjectKey(GVK("", "v1", "Service"), "default", "shop")
LATER = ObjectKey(GVK("", "v1", "Service"), "default", "later")
MADE = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "made")
PROFILE = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: reads}
spec:
  clusterSelector: {matchLabels: {env: production}}
  templateResourceRefs:
  - identifier: Price
    resource: {apiVersion: shop.io/v1, kind: Widget, namespace: default, name: price}
  - identifier: Shop
    resource: {apiVersion: v1, kind: Service, namespace: default, name: shop}
  - identifier: Later
    optional: true
    resource: {apiVersion: v1, kind: Service, namespace: default, name: later}
  policyRefs: [{kind: ConfigMap, namespace: default, name: reads}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: reads
  namespace: default
  annotations: {projectsveltos.io/template: ok}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: made, namespace: default}
    data:
      price: '{{ (getResource "Price").spec.euros }}'
      shop: '{{ (getResource "Shop").metadata.labels.open }}'
      later: '{{ with getResource "Later" }}{{ .metadata.labels.open }}{{ end }}'
"""


def definition() -> dict[str, Any]:
    """Return the definition of a kind of the cluster's own."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": "shop.io", "names": names, "scope": "Namespaced", "versions": [version]}
    metadata = {"name": "widgets.shop.io"}
    kind = {"apiVersion": DEFINITION.api_version, "kind": DEFINITION.kind}
    return {**kind, "metadata": metadata, "spec": spec}


def widget(euros: str) -> dict[str, Any]:
    metadata = {"name": WIDGET.name, "namespace": WIDGET.namespace}
    kind = {"apiVersion": WIDGET.gvk.api_version, "kind": WIDGET.gvk.kind}
    return {**kind, "metadata": metadata, "spec": {"euros": euros}}


def service(name: str, open_: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"open": open_}}
    spec = {"ports": [{"port": 80, "protocol": "TCP"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


class Read:
    """The stand, `mgmt/mgmt` and who works in it, and the cluster that is rendered for."""

    def __init__(self, stand: Stand, host: Cluster, destination: Cluster) -> None:
        self.stand = stand
        self.host = User(host.kubeconfig())
        self.destination = User(destination.kubeconfig())

    def said(self) -> dict[str, str]:
        return dict((self.destination.get(MADE) or {}).get("data") or {})

    def serves(self) -> bool:
        """Say whether `mgmt/mgmt` serves the kind of its own."""
        with suppress(LookupError):
            return self.host.names(WIDGET.gvk, WIDGET.namespace) == []
        return False

    def rings(self) -> list[str]:
        """Name the resources of which every object is sent."""
        return list_watched(self.host.get(HOOKS))

    def follows(self, key: str, value: str) -> None:
        """Wait until a change has been rendered, sooner than any resync: they are minutes apart."""
        begun = time.monotonic()
        eventually(f"{key} is {value!r}", lambda: self.said().get(key) == value)
        print(f"{key} was {value!r} after {time.monotonic() - begun:.2f} s")


@pytest.fixture
def read(tmp_path: Path, source_cluster: Cluster, destination_cluster: Cluster) -> Iterator[Read]:
    """Serve, and register `mgmt/mgmt` with its forwarder, and the other without any."""
    with Nursery() as nursery:
        stand = InProcessStand(tmp_path / "stand", nursery, settings=SETTINGS)
        stand.serve()
        stand.register(
            destination_cluster, namespace="fleet", labels="env=production", forward=False
        )
        stand.register(source_cluster, "--cluster", "mgmt", namespace="mgmt", labels="role=host")
        one = Read(stand, source_cluster, destination_cluster)
        one.host.create(definition())
        eventually("the kind is served", one.serves)
        yield one
        one.host.close()
        one.destination.close()
        stand.close()


def test_changes_of_read_objects_are_followed_by_events(
    read: Read, tmp_path: Path, source_cluster: Cluster
) -> None:
    """What was missing comes, each kind changes, what is optional comes and goes: in seconds.

    Once nobody reads them any more, the kinds are no longer sent, and no record is left.
    """
    (tmp_path / "reads.yaml").write_text(PROFILE)
    read.stand.do("apply", "-f", str(tmp_path / "reads.yaml"))
    eventually("both kinds ring", lambda: read.rings() == ["services", "widgets"])
    read.stand.settle(MANAGEMENT)
    await_calls(source_cluster)
    assert read.said() == {}
    read.host.create(service("shop", "yes"))
    read.host.create(widget("5"))
    read.follows("price", "5")
    assert read.said() == {"price": "5", "shop": "yes", "later": ""}

    read.host.patch(WIDGET, {"spec": {"euros": "6"}})
    read.follows("price", "6")
    read.host.patch(SHOP, {"metadata": {"labels": {"open": "no"}}})
    read.follows("shop", "no")
    read.host.create(service("later", "soon"))
    read.follows("later", "soon")
    read.host.delete(LATER)
    read.follows("later", "")

    read.stand.do("delete", "-f", str(tmp_path / "reads.yaml"))
    eventually("it is withdrawn", lambda: read.destination.get(MADE) is None)
    eventually("nothing is noted", lambda: not [*read.stand.records().readers.kinds()])
    read.stand.settle(MANAGEMENT)
    assert read.rings() == []
