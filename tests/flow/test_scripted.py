"""Manifests that a script writes reach a real cluster, and follow what the script reads."""

from __future__ import annotations

from pathlib import Path

from bellhop.model.gvk import GVK, ObjectKey
from tests.flow.conftest import Flow, until

MADE = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "made-of-colours")

PROFILE = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: scripted}
spec:
  clusterSelector: {matchLabels: {env: production}}
  templateResourceRefs:
  - identifier: Colours
    resource: {apiVersion: v1, kind: ConfigMap, namespace: default, name: colours}
  policyRefs: [{kind: ConfigMap, namespace: default, name: scripted}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: colours, namespace: default}
data: {sky: blue}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: scripted, namespace: default, annotations: {projectsveltos.io/lua: ok}}
data:
  main.lua: |
    local json = require("json")
    function evaluate()
      local metadata = {name = "made-of-colours", namespace = "default"}
      local data = {sky = resources["Colours"].data.sky}
      local made = {apiVersion = "v1", kind = "ConfigMap", metadata = metadata, data = data}
      return {resources = json.encode(made)}
    end
"""


def data(flow: Flow) -> object:
    return (flow.source.get(MADE) or {}).get("data")


def test_a_script_writes_what_a_cluster_gets(flow: Flow, tmp_path: Path) -> None:
    """And is run anew when what it reads has changed."""
    file = tmp_path / "scripted.yaml"
    file.write_text(PROFILE)
    flow.stand.do("apply", "-f", str(file))
    until("it is there", lambda: data(flow) == {"sky": "blue"})
    file.write_text(PROFILE.replace("blue", "grey"))
    flow.stand.do("apply", "-f", str(file))

    until("it has followed", lambda: data(flow) == {"sky": "grey"})
