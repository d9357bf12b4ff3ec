"""Releases of Helm charts and their objects, as people see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.api.kinds import ClusterProfile, parse_all, read_documents
from bellhop.cli.deployed import AddOnFilter, list_addons
from bellhop.diagnosis import profile_manifests
from bellhop.diagnosis.explain.object import explain_object
from bellhop.diagnosis.releases import describe_origin, redact_url
from bellhop.registration import permissions
from bellhop.state.chart import Chart
from bellhop.state.cluster_text import HeldText
from tests.fakes.fleet import Fleet, service
from tests.fakes.manifests import join, source, trigger

CHART = """
helmCharts:
- repositoryURL: https://charts.example.com
  chartName: web
  chartVersion: 1.0.0
  releaseName: web
  releaseNamespace: apps
  values: "replicas: '1'"
"""
ALL = """
helmCharts:
- repositoryURL: oci://ann:hush@registry.example.com/charts
  chartName: web
  chartVersion: ^1
  releaseName: web-{{ .Cluster.metadata.name }}
  releaseNamespace: apps
  values: "a: b"
  helmChartAction: Uninstall
  options:
    skipCRDs: true
    disableOpenAPIValidation: true
    waitForJobs: true
    timeout: 90s
    labels: {team: red}
    passCredentialsAll: true
    installOptions: {createNamespace: false, takeOwnership: true}
    upgradeOptions: {force: true, upgradeCRDs: true, maxHistory: 5}
    uninstallOptions: {keepHistory: true, deletionPropagation: orphan, disableHooks: true}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """An installation over fakes, with one cluster in production, and a repository."""
    one = Fleet(tmp_path)
    one.repositories.put("web", "1.0.0", "1.0.1", "1.1.0")
    one.register("east", env="production")
    yield one
    one.close()


def profile(charts: str, name: str = "p") -> str:
    """Write a ClusterProfile of charts."""
    spec = {"clusterSelector": {"matchLabels": {"env": "production"}}, **yaml.safe_load(charts)}
    kind = {"apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterProfile"}
    return yaml.safe_dump({**kind, "metadata": {"name": name}, "spec": spec})


def charted(text: str) -> Chart:
    """Return the chart of a ClusterProfile."""
    (declared,) = parse_all(read_documents(text, source="test"))
    assert isinstance(declared, ClusterProfile)
    return declared.charts[0].chart


def test_an_object_of_a_release_is_explained_by_it(fleet: Fleet) -> None:
    """An object of a cluster leads to its chart and profile."""
    fleet.apply(profile(CHART))
    fleet.pump()
    here = fleet.installation()
    explanation = explain_object(
        here, "fleet/east", "configmap", "apps", "web-config", lambda: True
    )

    assert [each.message for each in explanation.links if each.type == "object"][-1] == (
        "it is part of release apps/web, chart web 1.0.0 of https://charts.example.com, which"
        " ClusterProfile/p deploys"
    )


def test_the_rights_of_a_release_are_those_of_its_parts_and_its_record(fleet: Fleet) -> None:
    """Helm keeps its record in Secrets beside the release; what it consists of is known once."""
    fleet.apply(profile(CHART))
    here = fleet.installation()
    fleet.pump()
    kinds = permissions.list_deployed_kinds(here, "fleet/east")

    kube = fleet.access.open("fleet/east", account="team/bot")
    fleet.access.clusters["fleet/east"].rbac.grant("team/bot", "Secret", "apps", "get", "list")

    assert [each.kind for each in kinds] == ["ConfigMap"]
    assert permissions.list_release_namespaces(here, "fleet/east") == ["apps"]
    assert permissions.check_releases(kube, ["apps"]) == [
        "may not create, update or delete secrets in namespace 'apps'"
    ]


def test_a_generated_profile_has_its_charts(fleet: Fleet) -> None:
    """As they are rendered with the event, and no ref to a ConfigMap that is none."""
    refs = "policyRefs: [{kind: ConfigMap, name: made, namespace: default}]"
    written = CHART.replace("web\n  releaseN", '"{{ .Resource.metadata.name }}"\n  releaseN')
    indented = written.strip().replace("\n", "\n  ")
    fleet.apply(join(source(), trigger().replace(refs, indented)))
    fleet.write("east", service("shop"))
    fleet.pump()
    (kept,) = fleet.records.profiles.of("made")
    spec: dict[str, Any] = profile_manifests.manifest(kept, "s")["spec"]

    assert spec["policyRefs"] == []
    assert spec["helmCharts"] == [
        {**yaml.safe_load(CHART)["helmCharts"][0], "releaseName": "shop"},
    ]


def test_a_chart_is_shown_as_it_may_be_written() -> None:
    """All options survive, and no password in a URL is shown."""
    chart = charted(profile(ALL))
    shown = profile_manifests.chart_manifest(chart)
    again = charted(profile(yaml.safe_dump({"helmCharts": [shown]})))

    assert shown["repositoryURL"] == "oci://registry.example.com/charts"
    assert again == Chart(
        chart.field,
        "oci://registry.example.com/charts",
        *(chart.chart, chart.version, chart.release, chart.namespace),
        values=chart.values,
        login=chart.login,
        unwanted=True,
        install=chart.install,
        upgrade=chart.upgrade,
        removal=chart.removal,
    )


def test_what_secrets_hold_of_values_is_not_shown() -> None:
    """The origin of values is named once, however many entries it has."""
    chart = Chart(
        *("helmCharts[0]", "https://charts.example.com", "web", "1.0.0", "web", "apps"),
        values=(
            HeldText("password: hush", "helmCharts[0].values", secret=True),
            HeldText("a: b", "default/plain/one"),
            HeldText("c: d", "default/plain/two"),
            HeldText("e: hush", "default/sealed/one", secret=True),
            HeldText("", "helmCharts[0].valuesFrom", missing="it is not there"),
        ),
    )
    shown = profile_manifests.chart_manifest(chart)

    assert shown["values"] == "<hidden>"
    assert shown["valuesFrom"] == [
        {"kind": "ConfigMap", "namespace": "default", "name": "plain"},
        {"kind": "Secret", "namespace": "default", "name": "sealed"},
    ]


def test_a_release_that_is_to_be_deleted_is_no_add_on(fleet: Fleet) -> None:
    """It is not among deployed add-ons, and is among held releases."""
    fleet.apply(profile(CHART.replace("values:", "helmChartAction: Uninstall\n  values:")))
    fleet.pump()
    (held,) = fleet.records.inventories.of("fleet/east")
    (release,) = held.held.values()

    assert describe_origin(release) == "removed, as asked"
    assert list(list_addons(fleet.installation(), AddOnFilter())) == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example.com/x", "https://a.example.com/x"),
        ("https://ann:hush@a.example.com:8443/x?token=hush", "https://a.example.com:8443/x"),
        ("https://ann:hush@{{ .Cluster.spec.data.[x }}", "https://{{ .Cluster.spec.data.[x }}"),
        ("oci://registry.example.com/charts", "oci://registry.example.com/charts"),
    ],
)
def test_what_may_be_secret_in_a_url_is_not_shown(url: str, shown: str) -> None:
    assert redact_url(url) == shown
