"""The charts: rendered over all values, equal to what the library writes, and nothing to spare."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from bellhop import __version__
from bellhop.cli.main import cli
from bellhop.configuration.definitions import make_definitions
from bellhop.configuration.rights import list_checks
from bellhop.registration.forwarder_pods import IMAGE, forwarder_manifests
from infra.charts.build import BELLHOP, CHARTS, FORWARDER, pack_chart
from infra.charts_page import PAGE, read_meanings, written
from tests.infra.chart import Charts, of_kind, read_values

pytestmark = pytest.mark.rest

ROOT = Path(__file__).parents[2]
BOTH = (BELLHOP, FORWARDER)
DIGEST = f"sha256:{'0' * 64}"
POD: dict[str, Any] = {
    "image.repository": "registry.example.com/images/some",
    "image.tag": "1.2.3",
    "image.digest": DIGEST,
    "image.pullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "resources": {"limits": {"memory": "2Gi"}},
    "podAnnotations": {"example.com/team": "platform"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "infra", "operator": "Exists"}],
    "priorityClassName": "system-cluster-critical",
}
"""Another value for each of those that both charts have."""

OTHERS: dict[str, dict[str, Any]] = {
    FORWARDER: {
        **POD,
        "replicas": 1,
        "ingestUrl": "https://ingest.example.com:9443/",
        "ports": [8080],
        "podDisruptionBudget.enabled": False,
    },
    BELLHOP: {
        **POD,
        "url": "https://bellhop.example.com:8443",
        "ownCluster": "",
        "serve.enabled": False,
        "settings": {"BELLHOP_WORKERS": "64"},
        "persistence.enabled": False,
        "persistence.existingClaim": "state",
        "persistence.storageClassName": "fast",
        "persistence.size": "1Gi",
        "persistence.accessMode": "ReadWriteOncePod",
        "persistence.keep": False,
        "service.type": "LoadBalancer",
        "service.annotations": {"example.com/scheme": "internal"},
        "certificate.secretName": "bellhop-certificate",
        "certificate.issuerRef": {"kind": "ClusterIssuer", "name": "internal"},
        "rbac.clusterAdmin": True,
        "rbac.rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        "serviceAccount.annotations": {"example.com/role": "bellhop"},
        "networkPolicy.enabled": False,
        "networkPolicy.ports": [16443],
        "podDisruptionBudget.enabled": True,
        "metrics.enabled": False,
        "metrics.serviceMonitor.enabled": True,
        "metrics.serviceMonitor.interval": "15s",
        "metrics.serviceMonitor.labels": {"release": "prometheus"},
        "metrics.prometheusRule.enabled": True,
        "metrics.prometheusRule.labels": {"release": "prometheus"},
        "forwarder.enabled": False,
        "forwarder.ingestUrl": "https://bellhop.example.com:8443",
    },
}
"""Another value for each; a test compares the names with those of values.yaml."""

WITH: dict[str, dict[str, Any]] = {
    "url": {"forwarder.ingestUrl": "https://bellhop.example.com:8443"},
    "forwarder.ingestUrl": {"url": "https://bellhop.example.com:8443"},
    "metrics.serviceMonitor.interval": {"metrics.serviceMonitor.enabled": True},
    "metrics.serviceMonitor.labels": {"metrics.serviceMonitor.enabled": True},
    "metrics.prometheusRule.labels": {"metrics.prometheusRule.enabled": True},
}
"""Values without which another one has no effect, or is refused."""


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Charts:
    """Both charts, packed."""
    return Charts(tmp_path_factory.mktemp("charts"))


@pytest.mark.parametrize("name", BOTH)
def test_helm_finds_no_fault(charts: Charts, name: str) -> None:
    """Warnings are faults, too."""
    charts.do("lint", "--strict", charts.archive(name))


@pytest.mark.parametrize("name", BOTH)
def test_every_value_has_another_one_here(name: str) -> None:
    """So no value is without a test."""
    assert OTHERS[name].keys() == read_values(name).keys()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, others in OTHERS.items() for value in others]
)
def test_each_value_has_an_effect(charts: Charts, name: str, value: str) -> None:
    """The result is YAML with no object twice, and differs from the one without the value."""
    before = charts.render(name, WITH.get(value) if "metrics" in value else None)
    after = charts.render(name, {**WITH.get(value, {}), value: OTHERS[name][value]})
    keys = [
        (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
        for each in after
    ]

    assert after != before
    assert len(set(keys)) == len(keys)


def test_all_values_at_once(charts: Charts) -> None:
    """With those that leave out the others as they are."""
    left = {"serve.enabled", "ownCluster", "persistence.enabled", "metrics.enabled"}
    values = {name: value for name, value in OTHERS[BELLHOP].items() if name not in left}

    kinds = {each["kind"] for each in charts.render(BELLHOP, values)}

    assert {"Certificate", "ServiceMonitor", "PrometheusRule", "PodDisruptionBudget"} <= kinds


def _schema_leaves(schema: dict[str, Any], place: str = "") -> Iterator[str]:
    if not schema.get("properties") or place in {"resources", "certificate.issuerRef"}:
        yield place
        return
    assert schema["additionalProperties"] is False, place
    for key, each in schema["properties"].items():
        yield from _schema_leaves(each, f"{place}.{key}" if place else key)


@pytest.mark.parametrize("name", BOTH)
def test_the_schema_has_each_value_and_no_other(name: str) -> None:
    """A value that is mistyped is refused at every level."""
    schema = json.loads((CHARTS / name / "values.schema.json").read_text())
    leaves = {each for each in _schema_leaves(schema) if each not in {"global", "enabled"}}
    values = {each for each in read_values(name) if not each.startswith("forwarder.")}

    assert leaves - {"forwarder"} == values


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"persistence.accessMode": "ReadWriteMany"}, "accessMode"),
        ({"replicas": 2}, "replicas"),
        ({"persistance": {"size": "1Gi"}}, "persistance"),
        ({"url": "http://bellhop.example.com"}, "url"),
        ({"settings": {"HOME": "/"}}, "HOME"),
        ({"forwarder.replicas": 0}, "replicas"),
        ({"forwarder.image.tag": "a b"}, "tag"),
        ({"url": "https://bellhop.example.com"}, "set both to one address"),
        ({"certificate.issuerRef": {"kind": "Issuer"}}, "has no name"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_refuses_values(charts: Charts, values: dict[str, Any], refusal: str) -> None:
    """Before anything is written."""
    done = charts.template(BELLHOP, values)

    assert done.returncode != 0
    assert refusal in done.stderr


FORWARDERS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({}, forwarder_manifests(IMAGE)),
    (
        {
            "image.repository": "registry.example.com:5000/bellhop-forwarder",
            "image.digest": DIGEST,
            "ingestUrl": "https://10.0.0.5:8443",
            "ports": [16443, 443],
        },
        forwarder_manifests(
            f"registry.example.com:5000/bellhop-forwarder@{DIGEST}",
            [8443, 16443],
            "https://10.0.0.5:8443",
        ),
    ),
]


@pytest.mark.parametrize(("values", "expected"), FORWARDERS, ids=["defaults", "others"])
def test_the_forwarder_is_that_of_register(
    charts: Charts, values: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    """The chart cannot drift from what the library writes; a budget is all that it adds."""
    found = charts.render(FORWARDER, values)
    objects = {each["kind"]: each for each in found if each["kind"] != "PodDisruptionBudget"}

    assert objects == {each["kind"]: each for each in expected}


def test_a_namespace_that_helm_made_is_not_made_again(charts: Charts) -> None:
    """Installed by itself, the forwarder's chart is installed into its namespace."""
    done = charts.do("template", "x", charts.archive(FORWARDER), "--namespace", "bellhop-system")

    assert "kind: Namespace" not in done


def test_the_forwarder_beside_sends_to_serve(charts: Charts) -> None:
    """Its token is for the address that is advertised, and its pods may call the port."""
    objects = charts.render(BELLHOP)
    [container] = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    advertised = next(
        each.partition("=")[2] for each in container["args"] if each.startswith("--advertise=")
    )
    beside = forwarder_manifests(IMAGE, [8443], advertised)
    deployment = next(each for each in beside if each["kind"] == "Deployment")

    assert of_kind(objects, "Deployment", "bellhop-forwarder") == deployment


def test_serve_takes_the_options_of_its_pod(charts: Charts) -> None:
    """All of them, as the command reads them."""
    values = {"certificate.secretName": "tls"}
    [container] = of_kind(charts.render(BELLHOP, values), "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    program, name = container["command"]
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command
    read = command.make_context(name, list(container["args"]), parent=context).params

    assert program == "bellhop"
    assert all(read[each] for each in ("listen", "advertise", "own_cluster", "metrics"))
    assert read["certificate"]


def test_serve_runs_with_nothing_to_spare(charts: Charts) -> None:
    """No root, no capability, no writable root file system; one pod at a time; probes of serve."""
    deployment = of_kind(charts.render(BELLHOP), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]

    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (
        1,
        {"type": "Recreate"},
    )
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"requests", "limits"} <= container["resources"].keys()
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    assert {container[each]["httpGet"]["path"] for each in probes} == {"/healthz"}


def test_no_rule_is_a_wildcard(charts: Charts) -> None:
    """And no verb gives more than it says."""
    for rule in of_kind(charts.render(BELLHOP), "ClusterRole")["rules"]:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])


def test_the_account_has_each_right_that_doctor_checks(charts: Charts) -> None:
    """And so can write status, mirrors and Events."""
    granted = {
        (verb, group, resource)
        for rule in of_kind(charts.render(BELLHOP), "ClusterRole")["rules"]
        if "resourceNames" not in rule
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    for verb, group, resource, subresource, _ in list_checks():
        assert (verb, group, "/".join(filter(None, (resource, subresource)))) in granted


def test_without_an_own_cluster_there_are_no_rights(charts: Charts) -> None:
    """Nor a token in the pod."""
    objects = charts.render(BELLHOP, {"ownCluster": "", "forwarder.enabled": False})
    pod = of_kind(objects, "Deployment")["spec"]["template"]["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert not [each for each in objects if "Role" in each["kind"]]


def test_the_definitions_are_those_of_the_models(charts: Charts) -> None:
    """They are made when the chart is packed, as the oldest version takes them; none is a copy."""
    shown = charts.do("show", "crds", charts.archive(BELLHOP))
    found = {each["metadata"]["name"]: each for each in yaml.safe_load_all(shown) if each}

    assert found == {each["metadata"]["name"]: each for each in make_definitions(rules=False)}
    assert not list(CHARTS.rglob("crds"))


def test_the_alert_rules_are_those_of_the_documentation(charts: Charts) -> None:
    """Their templates are of Prometheus, and Helm leaves them unchanged."""
    rule = of_kind(
        charts.render(BELLHOP, {"metrics.prometheusRule.enabled": True}), "PrometheusRule"
    )

    assert rule["spec"] == yaml.safe_load(
        (ROOT / "docs/examples/monitoring/alerts.yaml").read_text()
    )


def test_the_page_has_the_tables_of_the_values() -> None:
    """`make reference` writes them, and every value has its meaning."""
    assert PAGE.read_text() == written(), "the page is stale: run `make reference`"
    for name in BOTH:
        meanings = dict(read_meanings((CHARTS / name / "values.yaml").read_text()))
        assert read_values(name).keys() <= meanings.keys()


@pytest.mark.parametrize("name", BOTH)
def test_packs_the_same_bytes_each_time(name: str) -> None:
    """In one folder of the chart's name, with the version of Bellhop."""
    packed = pack_chart(name)
    with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
        names = opened.getnames()
        member = opened.extractfile(f"{name}/Chart.yaml")
        assert member
        chart = yaml.safe_load(member.read())

    assert pack_chart(name) == packed
    assert {each.partition("/")[0] for each in names} == {name}
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize(
    ("version", "group"), [("1.20.2", "policy/v1beta1"), ("1.36.0", "policy/v1")]
)
def test_the_budget_has_the_version_that_the_cluster_serves(
    charts: Charts, version: str, group: str
) -> None:
    """No version is in both 1.20 and 1.25."""
    values = {"podDisruptionBudget.enabled": True}
    objects = charts.render(BELLHOP, values, "--kube-version", version)

    assert of_kind(objects, "PodDisruptionBudget")["apiVersion"] == group
