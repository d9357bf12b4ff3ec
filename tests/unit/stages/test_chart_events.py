"""Events that come while Helm works on a release, and what they delay."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.messages import Apply
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.unit.stages.test_charts import chart, charts, data

EAST = "fleet/east"
TOUCHED = Apply("", "", "p", EAST, touched="/ConfigMap/apps/web-config")
PLAIN = Apply("", "", "p", EAST)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    fleet.repositories.put("web", "1.0.0")
    return fleet.register("east", env="production")


def take(fleet: Fleet, inbox: str) -> None:
    """Work on one message of an inbox, as another worker does."""
    fleet.work(inbox, fleet.queues[inbox].receive(1, wait=timedelta(0)))


@pytest.mark.parametrize("event", [TOUCHED, PLAIN], ids=["an event", "a change"])
def test_an_event_during_an_upgrade_delays_no_later_change(
    fleet: Fleet, east: FakeKube, event: Apply
) -> None:
    """Helm's own writes send events: a message that meets the lease waits for Helm, not for it."""

    def arrive() -> None:
        fleet.publisher.publish([event])
        take(fleet, "apply")

    fleet.apply(charts())
    fleet.pump()
    fleet.repositories.meanwhile.append(arrive)
    fleet.apply(charts(of=chart(values="replicas: two")))
    fleet.pump()
    fleet.apply(charts(of=chart(values="replicas: three")))
    fleet.pump()

    assert data(east)["web-config"]["replicas"] == "three"
    assert len(fleet.charts.deployed) == 3
    assert fleet.queues["apply"].backlog().waiting == 0
