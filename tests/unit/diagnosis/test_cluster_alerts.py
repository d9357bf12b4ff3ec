"""Resyncs record which clusters need attention, and the schedule reports them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.clusters.alert import Alert
from bellhop.diagnosis.cluster_status import ClusterAlerts
from bellhop.errors import UnauthorizedError, UnreachableError
from bellhop.logs import Log
from bellhop.runtime.aws.metrics import Metrics
from bellhop.runtime.aws.resources import Resources as AwsResources
from bellhop.runtime.cloud.resources import Resources
from bellhop.runtime.cloud.tick import report_alerts
from bellhop.state.ingest_policy import Refusals
from bellhop.state.match import HeldDeletion
from bellhop.state.messages import CollectGarbage, Resync
from tests.fakes.fleet import Fleet

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
EAST, WEST = "fleet/east", "fleet/west"


class Alerted(Fleet):
    """A fleet whose resyncs record which clusters need attention, as in a cloud."""

    def _wire(self) -> None:
        super()._wire()
        resync = self.handlers[Resync]
        self.handlers[Resync] = ClusterAlerts(self.installation(), resync).handle

    def wait(self, minutes: int = 10) -> None:
        """Let time pass, a minute at a time."""
        for _ in range(minutes):
            self.clock.advance(MINUTE)
            self.pump()

    def found(self) -> dict[str, Alert]:
        """Return the clusters that need attention."""
        return dict(self.records.alerts.first(100))

    def reported(self, cloud: type[Resources], named: int = 20) -> list[dict[str, Any]]:
        """Return the lines of a tick's alerts in a cloud."""
        output = io.StringIO()
        log = Log(output)
        here: Any = SimpleNamespace(
            records=self.records,
            settings=replace(self.settings, named_clusters=named),
            log=log,
            metrics=Metrics("prod", log),
        )
        here.report_alert = lambda *given: cloud.report_alert(here, *given)
        report_alerts(here)
        here.metrics.publish()
        return [json.loads(line) for line in output.getvalue().splitlines()]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Alerted]:
    one = Alerted(tmp_path)
    for name in ("east", "west"):
        one.register(name)
    one.wait(1)
    yield one
    one.close()


def dimensions(line: dict[str, Any]) -> list[str]:
    """Return the dimensions of a line in CloudWatch's embedded metric format."""
    (found,) = line["_aws"]["CloudWatchMetrics"]
    (names,) = found["Dimensions"]
    assert [each["Name"] for each in found["Metrics"]] == [
        each for each in line if each[0].isupper()
    ]
    return list(names)


def test_a_healthy_fleet_has_no_alert(fleet: Alerted) -> None:
    """It costs no record, no line and no metric."""
    fleet.wait()

    assert fleet.found() == {}
    assert fleet.reported(Resources) == fleet.reported(AwsResources) == []


def test_a_cluster_that_does_not_answer_is_alerted_of_until_it_does(fleet: Alerted) -> None:
    """Within a resync interval, and by its name; another one is not."""
    east = fleet.access.clusters[EAST]
    east.fail_with(UnreachableError("cannot reach 'fleet/east'"))
    fleet.wait()

    assert fleet.found() == {EAST: Alert("Down")}
    (line,) = fleet.reported(Resources)
    assert (line["alert"], line["cluster"]) == ("ClustersUnreachable", EAST)

    east.fail_with(None)
    fleet.wait()
    assert fleet.found() == {}


def test_refused_credentials_are_alerted_of_as_an_unreachable_cluster(fleet: Alerted) -> None:
    """Nothing is deployed there either."""
    fleet.access.clusters[EAST].fail_with(UnauthorizedError("'fleet/east' refuses"))
    fleet.wait()

    assert fleet.found()[EAST].names == ("ClustersUnreachable",)


def test_a_cluster_whose_sender_is_refused_is_silent(fleet: Alerted) -> None:
    """It answers, and its events are not taken."""
    now = fleet.clock.now()
    fleet.records.refusals.put(EAST, Refusals(7, now, now + 5 * MINUTE))
    fleet.wait(6)

    assert fleet.found() == {EAST: Alert("Silent")}
    fleet.wait(15)
    assert fleet.found() == {}


def test_credentials_are_alerted_of_in_their_last_week(fleet: Alerted) -> None:
    """Not before, and no more once they were replaced."""
    east: Any = fleet.access.clusters[EAST]
    east.ends_at = fleet.clock.now() + 8 * DAY
    fleet.wait()
    assert fleet.found() == {}

    ends_at = east.ends_at = fleet.clock.now() + 6 * DAY
    fleet.wait()
    assert fleet.found() == {EAST: Alert("", ends_at)}
    assert fleet.found()[EAST].names == ("CredentialsExpiring",)

    east.ends_at = None
    fleet.wait()
    assert fleet.found() == {}


def test_a_forgotten_cluster_is_no_alert(fleet: Alerted) -> None:
    """A lost cluster that is deregistered has no alert any more."""
    fleet.access.clusters[EAST].fail_with(UnreachableError("cannot reach 'fleet/east'"))
    fleet.wait()
    fleet.declare.deregister(EAST)
    fleet.wait()

    assert fleet.found() == {}


def test_an_alert_that_an_older_version_left_is_deleted(fleet: Alerted) -> None:
    """Versions without alerts remove a cluster and not its alert, beside this one or before it."""
    fleet.records.alerts.put("fleet/gone", Alert("Down"))
    fleet.records.alerts.put(EAST, Alert("Down"))
    fleet.handlers[CollectGarbage](CollectGarbage())

    assert fleet.found() == {EAST: Alert("Down")}


def test_an_alert_names_so_many_clusters_and_counts_all(fleet: Alerted) -> None:
    """Each name is a metric that is billed; the others are not forgotten."""
    for number in range(30):
        fleet.records.alerts.put(f"fleet/c{number:02}", Alert("Down"))

    google = fleet.reported(Resources, named=2)
    assert [each.get("cluster") for each in google] == ["fleet/c00", "fleet/c01", None]
    assert google[-1]["others"] == 28
    assert [each.get("cluster") for each in fleet.reported(Resources, named=0)] == [None]

    *named, total = fleet.reported(AwsResources, named=2)
    assert [each["cluster"] for each in named] == ["fleet/c00", "fleet/c01"]
    assert [dimensions(each) for each in named] == [["installation", "cluster"]] * 2
    assert (dimensions(total), total["ClustersUnreachable"]) == (["installation"], 30)


def test_held_deletions_are_alerted_of(fleet: Alerted) -> None:
    """Those that are only counted are not held yet."""
    now = fleet.clock.now()
    held = HeldDeletion(EAST, "web", "lot", "rings", now, now, held_at=now)
    fleet.records.holds.put(held)
    fleet.records.holds.put(replace(held, cluster=WEST, held_at=None))

    (line,) = fleet.reported(Resources)
    assert (line["alert"], line["cluster"]) == ("DeletionsHeld", EAST)


def test_a_tick_reads_as_much_of_a_large_fleet_as_of_a_small_one(fleet: Alerted) -> None:
    """Three queries, however many clusters are registered."""
    for number in range(50):
        fleet.register(f"more-{number}")
    fleet.store.counts.clear()
    fleet.reported(Resources)

    assert fleet.store.counts == {"query": 3}
