"""get, describe and apply of health checks: healthy clusters, resources and unsent notices."""

from __future__ import annotations

from datetime import timedelta

import pytest
import yaml
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.extras.health.records import Condition, Notice
from bellhop.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.state.cluster import Cluster
from bellhop.state.match import Selected, Selection
from tests.fakes.clock import START
from tests.fakes.health import cluster_check, health_check
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.extras.test_notifications import CHECK

# ClusterHealthChecks ------------------------------------------------------------------------------


@pytest.fixture
def checked_clusters(bellhop: Bellhop, here: Installation) -> Installation:
    """A healthy cluster, an unhealthy one, and one without a result."""
    for name in ("east", "north", "west"):
        labels = {"env": "production"}
        here.declare.register(Cluster("fleet", name, labels, "v1.34.2", name, START))
    assert bellhop("apply", "-f", "-", stdin=CHECK).exit_code == 0
    notice = Notice("slack", failures=2, error="cannot send a notice to 'slack.com': 503")
    well = Condition(healthy=True, since=START, message="all 2 profiles are deployed")
    unwell = Condition(healthy=False, since=START, message="own: denied", notices=(notice,))
    here.records.conditions.put("fleet/east", "production", well, expect=ABSENT)
    here.records.conditions.put("fleet/west", "production", unwell, expect=ABSENT)
    return here


def test_get_counts_healthy_clusters(bellhop: Bellhop, checked_clusters: Installation) -> None:
    """As a table, and as the status that Sveltos writes."""
    assert checked_clusters.catalogs.current().checks
    assert bellhop("get", "clusterhealthchecks").stdout.splitlines() == [
        "NAME         SELECTS          CLUSTERS   HEALTHY   UNHEALTHY   UNTOLD",
        "production   env=production   3          1         1           1",
    ]

    shown = yaml.safe_load(bellhop("get", "chc", "production", "-o", "yaml").stdout)
    [well, unwell] = shown["status"]["clusterCondition"]
    assert [each["status"] for each in (*well["conditions"], *unwell["conditions"])] == [
        "True",
        "False",
    ]
    assert unwell["notificationSummaries"] == [{"name": "slack", "status": "FailedToDeliver"}]


def test_what_a_policy_puts_off_has_not_failed(
    bellhop: Bellhop, checked_clusters: Installation
) -> None:
    policy = "type: Slack\n    policy: {failingFor: 30m}"
    slow = CHECK.replace("type: Slack", policy).replace("name: production", "name: slow")
    assert bellhop("apply", "-f", "-", stdin=slow).exit_code == 0
    now = checked_clusters.records.clock.now()
    unwell = Condition(healthy=False, since=now, message="own: denied", notices=(Notice("slack"),))
    checked_clusters.records.conditions.put("fleet/east", "slow", unwell, expect=ABSENT)

    said = bellhop("describe", "clusterhealthcheck", "slow").stdout
    assert f"is sent at {now + timedelta(minutes=30):%Y-%m-%dT%H:%M:%SZ}, if it is still so" in said
    shown = yaml.safe_load(bellhop("get", "chc", "slow", "-o", "yaml").stdout)
    [found] = shown["status"]["clusterCondition"]
    assert found["notificationSummaries"] == [{"name": "slack", "status": "Delivered"}]


def test_describe_reports_why_and_who_was_not_notified(
    bellhop: Bellhop, checked_clusters: Installation
) -> None:
    """Of each cluster; `show failures` has what could not be sent."""
    assert checked_clusters.catalogs.current().checks
    said = bellhop("describe", "clusterhealthcheck", "production").stdout

    for each in ("slack (Slack)", "own: denied", "not known yet", "'slack.com': 503"):
        assert each in said
    failures = bellhop("show", "failures").stdout
    assert "slack of production about fleet/west" in failures


# HealthChecks -------------------------------------------------------------------------------------


SOURCE = "healthcheck:services"


@pytest.fixture
def checked_resources(bellhop: Bellhop, here: Installation) -> Installation:
    """An unhealthy cluster, one whose script fails, and one without a result."""
    for name in ("east", "north", "west"):
        labels = {"env": "production"}
        here.declare.register(Cluster("fleet", name, labels, "v1.34.2", name, START))
    assert bellhop("apply", "-f", "-", stdin=f"{health_check()}---{cluster_check()}").exit_code == 0
    key = ObjectKey(GVK("", "v1", "Service"), "default", "web")
    kept = {"healthStatus": "Degraded", "message": "no endpoints"}
    unwell = (Selected(key, "digest", START, kept),)
    said = "1 not healthy of 4 resources"
    put = here.records.selections.put
    put(Selection("fleet/east", SOURCE, START, unwell, made=True, message=said))
    put(Selection("fleet/north", SOURCE, START, error="line 2: it fails"))
    return here


def test_get_counts_clusters(bellhop: Bellhop, checked_resources: Installation) -> None:
    assert checked_resources.catalogs.current().health_checks
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


def test_resources_that_are_unhealthy_are_shown(
    bellhop: Bellhop, checked_resources: Installation
) -> None:
    """Beside what matches EventSources; the objects as they are, and not what is said of them."""
    assert checked_resources.catalogs.current().health_checks
    web = fleet.service()
    web["metadata"] |= {"name": "web", "namespace": "default"}
    fleet.observe(checked_resources, web, "fleet/east")
    shown = bellhop("show", "resources", "--verbose", "--cluster", "fleet/east").stdout
    assert [line.split(maxsplit=4) for line in shown.splitlines()[1:]] == [
        ["fleet/east", "v1/Service", "default", "web", "Degraded: no endpoints"]
    ]

    whole = yaml.safe_load(bellhop("show", "resources", "--full").stdout)
    items = whole.get("items", [whole])
    assert [(each["kind"], each["metadata"]["name"]) for each in items] == [("Service", "web")]
    assert "spec" in items[0]
    assert bellhop("show", "resources", "--kind", "pod").stdout == ""


def test_what_does_not_count_yet_is_printed_as_that(
    bellhop: Bellhop, checked_resources: Installation
) -> None:
    flapping = health_check(more="  flapping: {consecutiveEvaluations: 7}\n")
    assert bellhop("apply", "-f", "-", stdin=flapping).exit_code == 0
    kept = checked_resources.records.selections.get("fleet/east", SOURCE)
    assert kept
    now = checked_resources.records.clock.now()
    (one,) = kept.value.selected
    young = replace(kept.value, selected=(replace(one, since=now),))
    checked_resources.records.selections.put(young)

    said = bellhop("describe", "healthcheck", "services").stdout
    assert f"counts from {now + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}; no endpoints" in said
    assert "unhealthy" not in said
    assert bellhop("get", "hc", "--no-headers").stdout.split()[3:5] == ["1", "0"]
    shown = yaml.safe_load(bellhop("get", "hc", "services", "-o", "yaml").stdout)
    assert shown["status"]["healthCheckReports"][0]["resourceStatuses"] == []


def test_describe_reports_what_is_unhealthy(
    bellhop: Bellhop, checked_resources: Installation
) -> None:
    """In each cluster; `show failures` has the script that fails."""
    assert checked_resources.catalogs.current().health_checks
    said = bellhop("describe", "healthcheck", "services").stdout

    for each in ("1 not healthy of 4", "no endpoints", "it fails", "waits for a resync"):
        assert each in said
    assert "healthcheck:services in fleet/north" in bellhop("show", "failures").stdout
    assert "services (HealthCheck services)" in bellhop("describe", "chc", "production").stdout


def test_hides_its_source_from_those_that_are_declared(
    bellhop: Bellhop, checked_resources: Installation
) -> None:
    assert checked_resources.catalogs.current().sources_in("fleet/east") == (SOURCE,)
    assert SOURCE not in bellhop("get", "eventsources").stdout
    assert "by HealthCheck services" in bellhop("describe", "cluster", "fleet/east").stdout


def test_apply_refuses_a_script_that_is_none(bellhop: Bellhop) -> None:
    """With its line in the file."""
    broken = health_check("function evaluate()\n  return {\nend")
    refused = bellhop("apply", "-f", "-", stdin=broken)

    assert refused.exit_code == 2
    assert "spec.evaluateHealth: the Lua script cannot be compiled in its line 3" in refused.stderr
