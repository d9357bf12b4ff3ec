"""get and describe of ClusterHealthChecks: which clusters are well, and who was not told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from bellhop.installation.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.state.condition import Condition, Notice
from bellhop.state.record import Cluster
from tests.fakes.clock import START
from tests.unit.fleet.test_noticing import CHECK

Bellhop = Callable[..., Result]


@pytest.fixture
def three(bellhop: Bellhop, here: Installation, tmp_path: Path) -> Installation:
    """A cluster that is well, one that is not, and one of which nobody knows yet."""
    for name in ("east", "north", "west"):
        labels = {"env": "production"}
        here.declare.register(Cluster("fleet", name, labels, "v1.34.2", name, START))
    file = tmp_path / "check.yaml"
    file.write_text(CHECK)
    assert bellhop("apply", "-f", str(file)).exit_code == 0
    notice = Notice("slack", failures=2, error="cannot send a notice to 'slack.com': 503")
    well = Condition(healthy=True, since=START, message="all 2 profiles are deployed")
    unwell = Condition(healthy=False, since=START, message="own: denied", notices=(notice,))
    here.records.conditions.put("fleet/east", "production", well, expect=ABSENT)
    here.records.conditions.put("fleet/west", "production", unwell, expect=ABSENT)
    return here


def test_get_shows_how_many_are_well(bellhop: Bellhop, three: Installation) -> None:
    """As a table, and as the status that Sveltos writes."""
    assert three.catalogs.current().checks
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
    bellhop: Bellhop, three: Installation, tmp_path: Path
) -> None:
    """It is told from when it is sent, and its status is not that of a failure."""
    policy = "type: Slack\n    policy: {failingFor: 30m}"
    file = tmp_path / "patient.yaml"
    file.write_text(CHECK.replace("type: Slack", policy).replace("name: production", "name: slow"))
    assert bellhop("apply", "-f", str(file)).exit_code == 0
    now = three.records.clock.now()
    unwell = Condition(healthy=False, since=now, message="own: denied", notices=(Notice("slack"),))
    three.records.conditions.put("fleet/east", "slow", unwell, expect=ABSENT)

    said = bellhop("describe", "clusterhealthcheck", "slow").stdout
    assert f"is sent at {now + timedelta(minutes=30):%Y-%m-%dT%H:%M:%SZ}, if it is still so" in said
    shown = yaml.safe_load(bellhop("get", "chc", "slow", "-o", "yaml").stdout)
    [found] = shown["status"]["clusterCondition"]
    assert found["notificationSummaries"] == [{"name": "slack", "status": "Delivered"}]


def test_describe_tells_why_and_who_was_not_told(bellhop: Bellhop, three: Installation) -> None:
    """Of each cluster; `show failures` has what could not be sent."""
    assert three.catalogs.current().checks
    said = bellhop("describe", "clusterhealthcheck", "production").stdout

    for each in ("slack (Slack)", "own: denied", "not known yet", "'slack.com': 503"):
        assert each in said
    failures = bellhop("show", "failures").stdout
    assert "slack of production about fleet/west" in failures
