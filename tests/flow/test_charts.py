"""Charts through a whole installation: `serve`, a forwarder, a repository and Helm itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.adapters.programs.layer import download
from bellhop.core.gvk import GVK, ObjectKey
from tests.fakes.chart import packed
from tests.fakes.site import Site
from tests.flow.conftest import Flow
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]

CONFIG = ObjectKey(GVK("", "v1", "ConfigMap"), "kyverno", "kyverno-latest-config")
SERVICE = ObjectKey(GVK("", "v1", "Service"), "default", "front")

SOURCE = """
apiVersion: lib.projectsveltos.io/v1alpha1
kind: EventSource
metadata: {name: labelled}
spec:
  collectResources: true
  group: ""
  version: v1
  kind: Service
  labelFilters: [{key: sveltos, operation: Equal, value: fv}]
"""
ADD_ON = """
apiVersion: lib.projectsveltos.io/v1alpha1
kind: EventBasedAddOn
metadata: {{name: policies}}
spec:
  clusterSelector: env=production
  eventSourceName: labelled
  oneForEvent: false
  helmCharts:
  - repositoryURL: {repository}
    repositoryName: kyverno
    chartName: kyverno/kyverno
    chartVersion: v2.6.0
    releaseName: kyverno-latest
    releaseNamespace: kyverno
    helmChartAction: Install
    values: |
      greeting: for {{{{ len .Resources }}}}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Site]:
    """A chart repository with one chart."""
    folder = tmp_path / "repository"
    folder.mkdir()
    packed(folder, "kyverno", "v2.6.0")
    subprocess.run(
        [download() / "helm", "repo", "index", folder],
        env={"HOME": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    with Site({f"/{each.name}": each.read_bytes() for each in folder.iterdir()}) as site:
        yield site


def service(label: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front", "namespace": "default", "labels": {"sveltos": label}},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}]},
    }


def test_a_chart_is_there_as_long_as_a_service_is_labelled(
    flow: Flow, repository: Site, tmp_path: Path
) -> None:
    """Helm installs and uninstalls it, which takes a second each."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"{SOURCE}---{ADD_ON.format(repository=repository.address)}")
    flow.stand.do("apply", "-f", str(rules))
    flow.stand.settle("fleet/source")

    flow.source.create(service("fv"))
    eventually("the chart is there", lambda: flow.source.get(CONFIG))
    found = flow.source.get(CONFIG)
    assert found
    assert found["data"] == {"greeting": "for 1"}

    flow.source.patch(SERVICE, {"metadata": {"labels": {"sveltos": "other"}}})
    eventually("it is gone", lambda: flow.source.get(CONFIG) is None)
