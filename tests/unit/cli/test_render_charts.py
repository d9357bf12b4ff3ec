"""`bellhop render` of triggers with Helm charts, with a program in place of Helm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from tests.fakes.chart import packed

Bellhop = Callable[..., Result]
Render = Callable[..., Result]

TRIGGER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: s}
spec:
  collectResources: true
  resourceSelectors: [{group: "", version: v1, kind: Service}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: t}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  eventSourceName: s
  oneForEvent: true
  helmCharts:
  - repositoryURL: https://charts.example.com
    chartName: demo
    chartVersion: ^1
    releaseName: '{{ .Resource.metadata.name }}'
    releaseNamespace: apps
    values: |
      greeting: "hi {{`{{ .Cluster.metadata.name }}`}}"
"""
OBJECT = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a}}"
HELM = """#!/bin/sh
if [ "$1" = version ]; then echo v4.3.1; exit; fi
while [ "$1" != --values ]; do shift; done
echo 'apiVersion: v1'
echo 'kind: ConfigMap'
echo 'metadata: {name: made}'
echo 'data:'
sed 's/^/  /' "$2"
"""


@pytest.fixture
def render(bellhop: Bellhop, tmp_path: Path) -> Render:
    """Render the trigger for one Service by a program that writes the values as an object."""
    (tmp_path / "t.yaml").write_text(TRIGGER)
    (tmp_path / "o.yaml").write_text(OBJECT)
    helm = tmp_path / "helm"
    helm.write_text(HELM)
    helm.chmod(0o755)
    files = ("-f", str(tmp_path / "t.yaml"), "--object", str(tmp_path / "o.yaml"))

    def run(*arguments: str) -> Result:
        cluster = ("--cluster", "prod/eu,env=production")
        return bellhop("render", *files, *cluster, *arguments, BELLHOP_HELM=str(helm))

    return run


def test_what_helm_renders_is_what_a_cluster_gets(render: Render, tmp_path: Path) -> None:
    """With the values of that cluster, in the namespace of the release."""
    chart = str(packed(tmp_path))
    told = render("--chart", chart, "--show", "manifests")
    (made,) = yaml.safe_load_all(told.stdout)

    assert told.exit_code == 0, told.stderr
    assert "# for prod/eu, from release apps/web, chart demo 1.0.0" in told.stdout
    assert made["metadata"] == {"name": "made", "namespace": "apps"}
    assert made["data"] == {"greeting": "hi eu"}


def test_a_profile_is_shown_with_its_charts(render: Render) -> None:
    """Neither an archive nor Helm is needed for that."""
    told = render("--show", "profiles")
    (profile,) = yaml.safe_load_all(told.stdout)

    assert told.exit_code == 0, told.stderr
    assert profile["spec"]["policyRefs"] == []
    assert [each["releaseName"] for each in profile["spec"]["helmCharts"]] == ["web"]


def test_programs_get_the_same_objects(render: Render, tmp_path: Path) -> None:
    """Each with the release that it is of."""
    told = render("--chart", str(packed(tmp_path)), "-o", "json")
    (profile,) = json.loads(told.stdout)["profiles"]
    (made,) = profile["destinations"][0]["manifests"]

    assert (made["from"], made["entry"]) == ("release apps/web", "chart demo 1.0.0")


def test_without_its_archive_a_chart_is_not_rendered(render: Render) -> None:
    """No network is used that nobody asked for."""
    told = render()

    assert told.exit_code == 1
    assert "cannot render chart 'demo': it is in no archive; name one with --chart" in told.stderr


def test_an_object_of_a_chart_that_is_not_allowed_is_refused(
    render: Render, tmp_path: Path
) -> None:
    """As in the cluster, which would not get the release."""
    allow = '{name: t, annotations: {bellhop.dev/allow: "Release.helm.sh in *; Secret in apps"}}'
    (tmp_path / "t.yaml").write_text(TRIGGER.replace("{name: t}", allow))
    told = render("--chart", str(packed(tmp_path)))

    assert told.exit_code == 1
    assert "'apps/web': trigger 't' may not deploy a ConfigMap, which the chart has" in told.stderr
