"""An event asks for the matches of those sources alone that the object matches or has matched."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.errors import UnreachableError
from bellhop.ingest.records.observations import TOMBSTONE
from bellhop.state.messages import Evaluate
from tests.fakes.fleet import SERVICE, Fleet
from tests.fakes.manifests import join, source, trigger

WEB = ObjectKey(SERVICE, "default", "web")
HERE = "fleet/east"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path)
    fleet.register("east", env="production")
    return fleet


def watch(fleet: Fleet, *names: str) -> None:
    """Declare sources of Services whose label `ring` is theirs, each with a trigger."""
    for name in names:
        watching = source(name=name, more=f", selector: {{matchLabels: {{ring: '{name}'}}}}")
        joining = trigger(name, origin=name)
        fleet.apply(join(watching, joining))
    fleet.pump()


def service(ring: str, v: str = "1") -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "default", "labels": {"ring": ring, "v": v}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


def matching(fleet: Fleet) -> list[str]:
    return [each.source for each in fleet.records.matches.of(HERE)]


def cost(fleet: Fleet, ring: str, v: str) -> dict[str, int]:
    fleet.store.counts.clear()
    fleet.write("east", service(ring, v))
    fleet.pump()
    return dict(fleet.store.counts)


@pytest.mark.parametrize("ring", ["one", "none"])
def test_costs_the_same_beside_any_number_of_sources(fleet: Fleet, ring: str) -> None:
    """An event's store operations do not grow with sources that its object never matched."""
    watch(fleet, "one")
    cost(fleet, ring, "1")
    alone = cost(fleet, ring, "2")
    watch(fleet, *(f"other-{number}" for number in range(20)))
    cost(fleet, ring, "3")

    assert cost(fleet, ring, "4") == alone


def test_what_matched_is_asked_for_until_the_object_is_gone(fleet: Fleet) -> None:
    """A trail grows, ends with its object, and is deleted when no message can be on the way."""
    watch(fleet, "one", "other")
    for ring in ("one", "other", "none"):
        fleet.write("east", service(ring))
        fleet.pump()
    stored = fleet.access.clusters[HERE].get(*WEB)
    assert stored
    there = fleet.records.trails.get(HERE, WEB).value
    assert (there.sources, there.ended, matching(fleet)) == (("one", "other"), False, [])

    fleet.drop("east", stored)
    fleet.pump()

    assert fleet.records.trails.get(HERE, WEB).value.ended
    fleet.clock.advance(TOMBSTONE + timedelta(seconds=1))
    assert fleet.records.trails.get(HERE, WEB).value.sources == ()


@pytest.mark.parametrize("died", [False, True], ids=["in time", "after a death"])
def test_a_trail_that_a_slow_worker_ends_goes_on(fleet: Fleet, *, died: bool) -> None:
    """Who ends the trail of an object that is back finds that out, and loses none of its matches.

    Also one who had nothing left to withdraw, since whoever did died before the trail's end.
    """
    watch(fleet, "one")
    stored = fleet.write("east", service("one"))
    fleet.pump()
    fleet.drop("east", stored)
    stage: Any = fleet.stages["evaluate"]
    trails: Any = fleet.records.trails
    end = trails.end
    if died:
        trails.end = dies
        with pytest.raises(UnreachableError):
            stage.handle(Evaluate(HERE, str(WEB)))

    def late(*args: Any) -> bool:
        trails.end = end
        fleet.write("east", service("one", "2"))
        fleet.clock.advance(timedelta(seconds=121))
        fleet.pump()
        assert matching(fleet) == ["one"]
        return bool(end(*args))

    trails.end = late
    stage.handle(Evaluate(HERE, str(WEB)))
    fleet.pump()

    assert not fleet.records.trails.get(HERE, WEB).value.ended
    fleet.clock.advance(TOMBSTONE + timedelta(seconds=1))
    fleet.write("east", service("none", "3"))
    fleet.pump()
    assert matching(fleet) == []


def dies(*_: Any) -> bool:
    raise UnreachableError("the store is away")


def test_kinds_that_count_no_more_leave_no_trail(fleet: Fleet) -> None:
    """What a sweep forgets about leaves its trail for a week."""
    watch(fleet, "one")
    fleet.write("east", service("one"))
    fleet.pump()

    fleet.declare.delete([("EventTrigger", "", "one")])
    fleet.pump()

    assert matching(fleet) == []
    assert fleet.records.trails.get(HERE, WEB).value.ended
