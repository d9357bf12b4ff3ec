"""Every field that is rendered with an event, at once: from real cluster to real cluster."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.user import User
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.flow.conftest import SETTINGS, Flow, InProcessStand, await_calls
from tests.waiting import eventually

CONFIG = GVK("", "v1", "ConfigMap")
SECRET = GVK("", "v1", "Secret")

DECLARED = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: of-source}
spec:
  collectResources: true
  resourceSelectors:
  - {group: "", version: v1, kind: ConfigMap, namespace: default,
     selector: {matchLabels: {order: "yes"}}}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterSet
metadata: {name: shops}
spec: {clusterSelector: {matchLabels: {env: production}}, maxReplicas: 1}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: orders}
spec:
  clusterSetRefs: [shops]
  eventSourceName: "of-{{ .Cluster.metadata.name }}"
  oneForEvent: true
  profileNameFormat: "{{ .Cluster.metadata.name }}-{{ .Resource.metadata.name }}"
  destinationCluster:
    apiVersion: "{{ .Cluster.apiVersion }}"
    kind: "{{ .Cluster.kind }}"
    namespace: "{{ .Resource.data.to }}"
    name: "{{ .Resource.data.to }}"
  configMapGenerator:
  - namespace: "{{ .MatchingResource.Namespace }}"
    name: "about-{{ .Resource.data.kind }}"
    nameFormat: "about-{{ .Resource.metadata.name }}"
    instantiateForEachMatchingResource: true
  secretGenerator:
  - namespace: "{{ .MatchingResource.Namespace }}"
    name: "key-of-{{ .Resource.data.kind }}"
    nameFormat: "key-{{ .Resource.metadata.name }}"
  templateResourceRefs:
  - identifier: About
    resource:
      apiVersion: v1
      kind: ConfigMap
      namespace: projectsveltos
      name: "about-{{ .Resource.metadata.name }}"
  - identifier: Key
    resource:
      apiVersion: v1
      kind: Secret
      namespace: "{{ printf `projectsveltos` }}"
      name: "key-{{ .Resource.metadata.name }}"
  - identifier: Prices
    resource: {apiVersion: v1, kind: Namespace, name: "prices-of-{{ .Resource.data.kind }}"}
  - identifier: Nothing
    optional: true
    resource: {apiVersion: v1, kind: Namespace, name: nothing}
  policyRefs:
  - {kind: ConfigMap, namespace: "{{ .Resource.metadata.namespace }}",
     name: "for-{{ .Resource.data.kind }}"}
  - {kind: ConfigMap, namespace: default, name: not-there, optional: true}
  - {kind: Secret, namespace: default, name: sealed}
  extraLabels: {team: red}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: about-book, namespace: default}
data: {text: "{{ .Resource.metadata.name }} of {{ .Resource.data.kind }}"}
---
apiVersion: v1
kind: Secret
type: addons.projectsveltos.io/cluster-profile
metadata: {name: key-of-book, namespace: default}
stringData: {word: "word of {{ .Resource.metadata.name }}"}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: for-book
  namespace: default
  annotations: {projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok}
data:
  main.yaml: |
    apiVersion: v1
    kind: Secret
    metadata: {name: "made-of-{{ .Resource.metadata.name }}", namespace: default}
    stringData:
      kind: "{{ .Resource.data.kind }}"
      about: '{{`{{ (getResource "About").data.text }}`}}'
      key: '{{`{{ (getResource "Key").data.word | b64dec }}`}}'
      currency: '{{`{{ (getResource "Prices").metadata.labels.currency }}`}}'
      nothing: '{{`{{ with getResource "Nothing" }}there{{ else }}not there{{ end }}`}}'
      where: '{{`{{ .Cluster.metadata.name }}`}}'
---
apiVersion: v1
kind: Secret
type: addons.projectsveltos.io/cluster-profile
metadata:
  {name: sealed, namespace: default, annotations: {projectsveltos.io/instantiate: ok}}
stringData:
  main.yaml: |
    apiVersion: v1
    kind: Secret
    metadata: {name: "sealed-{{ .Resource.metadata.name }}", namespace: default}
    stringData: {of: "{{ .Resource.metadata.name }}"}
"""

TAKEN = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: source-book-2}
spec: {clusterSelector: {matchLabels: {env: nowhere}}}
"""


@pytest.fixture
def flow(tmp_path: Path, source_cluster: Cluster, destination_cluster: Cluster) -> Iterator[Flow]:
    """Serve, and register the destination as the management cluster."""
    with Nursery() as nursery:
        stand = InProcessStand(tmp_path / "stand", nursery, settings=SETTINGS)
        stand.serve()
        stand.register(source_cluster, namespace="fleet", labels="env=production")
        path = tmp_path / "host.kubeconfig"
        destination_cluster.kubeconfig(path)
        named = ("--namespace", "mgmt", "--cluster", "mgmt", "--kubeconfig", str(path))
        stand.do("register", "cluster", *named, "--no-forwarder")
        one = Flow(stand, source_cluster, destination_cluster)
        yield one
        one.source.close()
        one.destination.close()
        stand.close()


def order(name: str, to: str = "mgmt") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"order": "yes"}}
    data = {"kind": "book", "to": to}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def read(user: User, name: str) -> dict[str, str]:
    """Return the values of a Secret in the namespace default; none if it is not there."""
    found = user.get(ObjectKey(SECRET, "default", name))
    return {key: _decoded(value) for key, value in found["data"].items()} if found else {}


def _decoded(value: str) -> str:
    return base64.b64decode(value).decode()


def generated(flow: Flow) -> list[str]:
    """Name what was generated."""
    shown = [flow.stand.do("get", kind, "--no-headers") for kind in ("configmaps", "secrets")]
    rows = [line.split() for text in shown for line in text.splitlines()]
    return sorted(row[1] for row in rows if row[0] == "projectsveltos")


def test_each_field_is_rendered_or_says_why_not(flow: Flow, tmp_path: Path) -> None:
    """One order deploys all that its fields name; one whose name is taken deploys nothing yet.

    One that names a cluster that is not there says so; all goes with its order.
    """
    for name, text in (("orders", DECLARED), ("taken", TAKEN)):
        (tmp_path / f"{name}.yaml").write_text(text)
    metadata = {"name": "prices-of-book", "labels": {"currency": "eur"}}
    flow.destination.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    flow.stand.do("apply", "-f", str(tmp_path / "orders.yaml"))
    flow.stand.settle("fleet/source")
    await_calls(flow.source_cluster)
    flow.source.create(order("book-1"))
    eventually("it is there", lambda: read(flow.destination, "made-of-book-1"))
    assert read(flow.destination, "made-of-book-1") == {
        "kind": "book",
        "about": "book-1 of book",
        "key": "word of book-1",
        "currency": "eur",
        "nothing": "not there",
        "where": "mgmt",
    }
    sealed = {"of": "book-1"}
    eventually("so is the other", lambda: read(flow.destination, "sealed-book-1") == sealed)
    made = flow.destination.get(ObjectKey(SECRET, "default", "made-of-book-1"))
    assert made
    assert made["metadata"]["labels"]["team"] == "red"
    assert "source-book-1" in flow.stand.do("get", "clusterprofiles")
    assert generated(flow) == ["about-book-1", "key-book-1"]

    flow.stand.do("apply", "-f", str(tmp_path / "taken.yaml"))
    flow.source.create(order("book-2"))
    flow.source.create(order("book-3", to="elsewhere"))
    taken = "cannot name the ClusterProfile 'source-book-2': one of that name was applied"
    eventually("its name is taken", lambda: taken in flow.failures())
    away = "cannot deploy anything to cluster 'elsewhere/elsewhere', which destinationCluster names"
    eventually("its cluster is away", lambda: away in flow.failures())
    assert read(flow.destination, "made-of-book-2") == {}
    assert read(flow.destination, "made-of-book-3") == {}

    flow.stand.do("delete", "clusterprofile", "source-book-2")
    eventually("its name is free", lambda: read(flow.destination, "made-of-book-2"))
    for number in "123":
        flow.source.delete(ObjectKey(CONFIG, "default", f"book-{number}"))
    for name in ("made-of-book-1", "made-of-book-2", "sealed-book-1", "sealed-book-2"):
        eventually("it is gone", lambda name=name: not read(flow.destination, name))
    eventually("nothing is generated", lambda: generated(flow) == [])
