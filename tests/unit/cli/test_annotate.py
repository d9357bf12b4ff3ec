"""Annotations and data of a cluster, which templates read."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.installation import Installation
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop


def test_sets_and_removes_what_templates_read(bellhop: Bellhop, here: Installation) -> None:
    """Any text may be a value; `get` shows what is there."""
    here.declare.register(fleet.cluster())
    first = bellhop("annotate", "cluster", "default/workload", "owner=Team Red", "old=x")
    second = bellhop("annotate", "cluster", "default/workload", "old-")
    third = bellhop("annotate", "cluster", "default/workload", "--data", "registry=eu")

    assert [each.exit_code for each in (first, second, third)] == [0, 0, 0]
    assert second.stdout == "cluster/default/workload annotated owner=Team Red\n"
    assert third.stdout == "cluster/default/workload annotated registry=eu\n"
    shown = bellhop("get", "clusters", "-o", "yaml").stdout
    assert "annotations:\n      owner: Team Red\n" in shown
    assert "data:\n      registry: eu\n" in shown


@pytest.mark.usefixtures("here")
def test_says_what_is_wrong(bellhop: Bellhop) -> None:
    """A key that is none."""
    wrong = bellhop("annotate", "cluster", "default/workload", "a b=c")
    assert "cannot read the annotation 'a b=c': " in wrong.stderr


def test_render_reads_all_of_a_clusters_manifest(bellhop: Bellhop, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(
        "apiVersion: lib.projectsveltos.io/v1beta1\nkind: SveltosCluster\n"
        "metadata: {name: eu, namespace: prod, labels: {env: fv}, annotations: {owner: red}}\n"
        "spec: {data: {registry: eu.example.com}}\nstatus: {version: v1.34.2}\n"
    )
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: pods}
spec: {resourceSelectors: [{group: "", version: v1, kind: Pod}]}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: t}
spec:
  sourceClusterSelector: {matchLabels: {env: fv}}
  destinationClusterSelector: {}
  eventSourceName: pods
  policyRefs: [{kind: ConfigMap, name: c, namespace: default}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: default, annotations: {projectsveltos.io/instantiate: ok}}
data:
  a.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: told}
    data:
      cluster: "{{ .Cluster.metadata.annotations.owner }} {{ .Cluster.spec.data.registry }}"
      version: "{{ .Cluster.status.version }}"
"""
    )
    pod = tmp_path / "pod.yaml"
    pod.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n")
    result = bellhop(
        "render",
        "-f",
        str(rules),
        "--object",
        str(pod),
        "--cluster",
        str(cluster),
        "--show=manifests",
    )

    assert result.exit_code == 0, result.stderr
    assert "cluster: red eu.example.com\n  version: v1.34.2\n" in result.stdout
