"""Workloads of a real cluster restart when what their pods read has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.engine.mounting import RELOADED
from bellhop.model.gvk import GVK, ObjectKey
from tests.flow.conftest import Flow, until

SETTINGS = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "settings")
PASSWORD = ObjectKey(GVK("", "v1", "Secret"), "default", "password")
WEB = ObjectKey(GVK("apps", "v1", "Deployment"), "default", "web")

PROFILE = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: reloads}
spec:
  reloader: true
  clusterSelector: {matchLabels: {env: production}}
  policyRefs: [{kind: ConfigMap, namespace: default, name: reloads}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: reloads, namespace: default}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings, namespace: default}
    data: {sky: blue}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: default}
    spec:
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers:
          - name: web
            image: "web:1"
            envFrom: [{configMapRef: {name: settings}}]
          volumes:
          - name: password
            secret: {secretName: password}
"""
SECRET = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: secret}
spec:
  clusterSelector: {matchLabels: {env: production}}
  policyRefs: [{kind: ConfigMap, namespace: default, name: secret}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: secret, namespace: default}
data:
  main.yaml: |
    apiVersion: v1
    kind: Secret
    metadata: {name: password, namespace: default}
    stringData: {password: VALUE}
"""


def mark(flow: Flow) -> str:
    """Return what the pods of the workload are annotated with."""
    template = (flow.source.get(WEB) or {})["spec"]["template"]
    return str((template["metadata"].get("annotations") or {}).get(RELOADED, ""))


def generation(flow: Flow) -> int:
    return int((flow.source.get(WEB) or {})["metadata"]["generation"])


def apply(flow: Flow, folder: Path, text: str) -> None:
    (folder / "file.yaml").write_text(text)
    flow.stand.do("apply", "-f", str(folder / "file.yaml"))


@pytest.fixture
def reloads(flow: Flow, tmp_path: Path) -> Flow:
    """Have a cluster hold a workload that reads a ConfigMap and a Secret of two profiles."""
    apply(flow, tmp_path, SECRET.replace("VALUE", "first"))
    until("the Secret is there", lambda: flow.source.get(PASSWORD))
    apply(flow, tmp_path, PROFILE)
    until("the workload is there", lambda: flow.source.get(WEB))
    assert mark(flow) == ""
    return flow


def test_it_restarts_whoever_changes_what_it_reads(reloads: Flow, tmp_path: Path) -> None:
    """Another profile, its own, a colleague: each change is one restart, and no other is."""
    before = generation(reloads)
    apply(reloads, tmp_path, SECRET.replace("VALUE", "second"))
    until("the Secret's change restarts it", lambda: mark(reloads))
    first = mark(reloads)
    assert generation(reloads) == before + 1

    apply(reloads, tmp_path, PROFILE.replace("blue", "green"))
    until("its own ConfigMap's restarts it", lambda: mark(reloads) != first)
    second = mark(reloads)
    assert generation(reloads) == before + 2

    reloads.source.patch(SETTINGS, {"data": {"sky": "red"}})
    reloads.stand.do("sweep")
    until("a colleague's restarts it", lambda: mark(reloads) != second, patience=60)
    assert generation(reloads) == before + 3
    third = mark(reloads)
    reloads.source.patch(SETTINGS, {"metadata": {"labels": {"tint": "dark"}}})
    reloads.stand.do("sweep")
    apply(reloads, tmp_path, PROFILE.replace("blue", "green") + "    # said anew\n")

    until("all is provisioned", lambda: "1/1" in reloads.stand.do("get", "clusterprofiles"))
    assert (mark(reloads), generation(reloads)) == (third, before + 3)
