"""Profiles with charts, and the state of their releases, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from bellhop.core.gvk import GVK
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import trigger
from tests.fakes.mortal import Fate

CONFIG = GVK("", "v1", "ConfigMap")
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def chart(more: str = "", *, name: str = "web", version: str = "1.0.0", values: str = "") -> str:
    """Return the field of one chart."""
    return f"""helmCharts:
    - repositoryURL: https://charts.example.com
      repositoryName: example
      chartName: example/web
      chartVersion: "{version}"
      releaseName: {name}
      releaseNamespace: apps
      values: |
        {values or "replicas: one"}
      {more}
  """


TWO = chart().rstrip() + "\n    " + chart(name="second").partition("helmCharts:")[2].lstrip()


def charts(name: str = "p", *, of: str = "", more: str = "") -> str:
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  {more}
  {of or chart()}
"""


def charted(of: str) -> str:
    """Return a trigger that has only charts."""
    refs = "policyRefs: [{kind: ConfigMap, name: made, namespace: default}]"
    return trigger(more=of).replace(refs, "")


def data(kube: FakeKube) -> dict[str, Mapping[str, str]]:
    return {each["metadata"]["name"]: each["data"] for each in kube.objects(CONFIG)}


def outcome(fleet: Fleet, name: str = "p") -> tuple[str, str]:
    kept = fleet.records.outcomes.get("fleet/east", name)
    return (kept.value.phase, kept.value.message) if kept else ("", "")


def held(fleet: Fleet, name: str = "p") -> set[str]:
    kept = fleet.records.inventories.get("fleet/east", name)
    return {str(key) for key in kept.value.held} if kept else set()


def die(fleet: Fleet, fate: Fate, steps: int, declared: str) -> None:
    """Declare something, die at a step of what follows, and let another process end it."""
    fleet.apply(declared)
    rig.kill(fleet, fate, steps)
    fleet.wait(timedelta(minutes=5), times=2)
