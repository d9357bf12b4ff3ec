"""get, describe and apply of HealthChecks: which resources are not well, and where."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.installation.installation import Installation
from bellhop.state.record import Cluster, Selected, Selection
from tests.fakes.clock import START
from tests.fakes.health import cluster_check, health_check
from tests.unit.cli import fleet

Bellhop = Callable[..., Result]
SOURCE = "healthcheck:services"


@pytest.fixture
def three(bellhop: Bellhop, here: Installation, tmp_path: Path) -> Installation:
    """A cluster that is not well, one whose script fails, and one of which nobody knows yet."""
    for name in ("east", "north", "west"):
        labels = {"env": "production"}
        here.declare.register(Cluster("fleet", name, labels, "v1.34.2", name, START))
    file = tmp_path / "check.yaml"
    file.write_text(f"{health_check()}---{cluster_check()}")
    assert bellhop("apply", "-f", str(file)).exit_code == 0
    key = ObjectKey(GVK("", "v1", "Service"), "default", "web")
    kept = {"healthStatus": "Degraded", "message": "no endpoints"}
    unwell = (Selected(key, "digest", START, kept),)
    said = "1 not healthy of 4 resources"
    put = here.records.selections.put
    put(Selection("fleet/east", SOURCE, START, unwell, made=True, message=said))
    put(Selection("fleet/north", SOURCE, START, error="line 2: it fails"))
    return here


def test_get_counts_clusters(bellhop: Bellhop, three: Installation) -> None:
    """As a table, and with what is not well as status."""
    assert three.catalogs.current().health_checks
    assert [each.split() for each in bellhop("get", "healthchecks").stdout.splitlines()] == [
        ["NAME", "KINDS", "CLUSTERS", "HEALTHY", "UNHEALTHY", "FAILING"],
        ["services", "Service", "3", "0", "1", "1"],
    ]

    shown = yaml.safe_load(bellhop("get", "hc", "services", "-o", "yaml").stdout)
    unwell, fails = shown["status"]["healthCheckReports"]
    assert unwell["resourceStatuses"] == [
        {
            "objectRef": {
                "apiVersion": "v1",
                "kind": "Service",
                "namespace": "default",
                "name": "web",
            },
            "healthStatus": "Degraded",
            "message": "no endpoints",
        }
    ]
    assert fails["failureMessage"] == "line 2: it fails"


def test_resources_that_are_not_well_are_shown(bellhop: Bellhop, three: Installation) -> None:
    """Beside what matches EventSources; the objects as they are, and not what is said of them."""
    assert three.catalogs.current().health_checks
    web = fleet.service()
    web["metadata"] |= {"name": "web", "namespace": "default"}
    fleet.observe(three, web, "fleet/east")
    shown = bellhop("show", "resources", "--verbose", "--cluster", "fleet/east").stdout
    assert [line.split(maxsplit=4) for line in shown.splitlines()[1:]] == [
        ["fleet/east", "v1/Service", "default", "web", "Degraded: no endpoints"]
    ]

    whole = yaml.safe_load(bellhop("show", "resources", "--full").stdout)
    items = whole.get("items", [whole])
    assert [(each["kind"], each["metadata"]["name"]) for each in items] == [("Service", "web")]
    assert "spec" in items[0]
    assert bellhop("show", "resources", "--kind", "pod").stdout == ""


def test_what_does_not_count_yet_is_told_as_that(
    bellhop: Bellhop, three: Installation, tmp_path: Path
) -> None:
    """With from when it counts; the cluster is well until then, and the status says nothing."""
    file = tmp_path / "flapping.yaml"
    file.write_text(health_check(more="  flapping: {consecutiveEvaluations: 7}\n"))
    assert bellhop("apply", "-f", str(file)).exit_code == 0
    kept = three.records.selections.get("fleet/east", SOURCE)
    assert kept
    now = three.records.clock.now()
    (one,) = kept.value.selected
    young = replace(kept.value, selected=(replace(one, since=now),))
    three.records.selections.put(young)

    said = bellhop("describe", "healthcheck", "services").stdout
    assert f"counts from {now + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}; no endpoints" in said
    assert "unhealthy" not in said
    assert bellhop("get", "hc", "--no-headers").stdout.split()[3:5] == ["1", "0"]
    shown = yaml.safe_load(bellhop("get", "hc", "services", "-o", "yaml").stdout)
    assert shown["status"]["healthCheckReports"][0]["resourceStatuses"] == []


def test_describe_tells_what_is_not_well(bellhop: Bellhop, three: Installation) -> None:
    """In each cluster; `show failures` has the script that fails."""
    assert three.catalogs.current().health_checks
    said = bellhop("describe", "healthcheck", "services").stdout

    for each in ("1 not healthy of 4", "no endpoints", "it fails", "waits for a resync"):
        assert each in said
    assert "healthcheck:services in fleet/north" in bellhop("show", "failures").stdout
    assert "services (HealthCheck services)" in bellhop("describe", "chc", "production").stdout


def test_hides_its_source_from_those_that_are_declared(
    bellhop: Bellhop, three: Installation
) -> None:
    """What it asks by is told with the cluster alone."""
    assert three.catalogs.current().sources_in("fleet/east") == (SOURCE,)
    assert SOURCE not in bellhop("get", "eventsources").stdout
    assert "by HealthCheck services" in bellhop("describe", "cluster", "fleet/east").stdout


def test_apply_refuses_a_script_that_is_none(bellhop: Bellhop, tmp_path: Path) -> None:
    """With its line in the file."""
    file = tmp_path / "check.yaml"
    file.write_text(health_check("function evaluate()\n  return {\nend"))
    refused = bellhop("apply", "-f", str(file))

    assert refused.exit_code == 2
    assert "spec.evaluateHealth: the Lua script cannot be compiled in its line 3" in refused.stderr
