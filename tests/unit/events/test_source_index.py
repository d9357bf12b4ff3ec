"""An event asks only for the matches of sources that the object matches or has matched."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.errors import UnreachableError
from bellhop.ingest.records import TOMBSTONE
from bellhop.state.messages import Evaluate
from tests.fakes.fleet import EAST, SERVICE, Fleet
from tests.fakes.hooks import failing
from tests.fakes.manifests import join, source, trigger

WEB = ObjectKey(SERVICE, "default", "web")


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
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
    return [each.source for each in fleet.records.matches.of(EAST)]


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
    before = cost(fleet, ring, "2")
    watch(fleet, *(f"other-{number}" for number in range(20)))
    cost(fleet, ring, "3")

    assert cost(fleet, ring, "4") == before


def test_a_source_that_matched_is_read_until_the_object_is_deleted(fleet: Fleet) -> None:
    """A source index grows, ends with its object, and is deleted with the last message."""
    watch(fleet, "one", "other")
    for ring in ("one", "other", "none"):
        fleet.write("east", service(ring))
        fleet.pump()
    stored = fleet.access.clusters[EAST].get(*WEB)
    assert stored
    there = fleet.records.trails.get(EAST, WEB).value
    assert (there.sources, there.ended, matching(fleet)) == (("one", "other"), False, [])

    fleet.drop("east", stored)
    fleet.pump()

    assert fleet.records.trails.get(EAST, WEB).value.ended
    fleet.clock.advance(TOMBSTONE + timedelta(seconds=1))
    assert fleet.records.trails.get(EAST, WEB).value.sources == ()


@pytest.mark.parametrize("died", [False, True], ids=["in time", "after a death"])
def test_a_source_index_that_a_slow_worker_ends_is_restored(fleet: Fleet, *, died: bool) -> None:
    """A worker that ends the index of an object that exists again notices, and loses no match.

    So does a worker with nothing to withdraw, because another died before it ended the index.
    """
    watch(fleet, "one")
    stored = fleet.write("east", service("one"))
    fleet.pump()
    fleet.drop("east", stored)
    stage: Any = fleet.stages["evaluate"]
    index: Any = fleet.records.trails
    end = index.end
    away = UnreachableError("the store is away")
    if died:
        with failing(index, "end", away), pytest.raises(UnreachableError):
            stage.handle(Evaluate(EAST, str(WEB)))

    def late(*args: Any) -> bool:
        index.end = end
        fleet.write("east", service("one", "2"))
        fleet.wait(timedelta(seconds=121))
        assert matching(fleet) == ["one"]
        return bool(end(*args))

    index.end = late
    stage.handle(Evaluate(EAST, str(WEB)))
    fleet.pump()

    assert not fleet.records.trails.get(EAST, WEB).value.ended
    fleet.clock.advance(TOMBSTONE + timedelta(seconds=1))
    fleet.write("east", service("none", "3"))
    fleet.pump()
    assert matching(fleet) == []


def test_a_kind_that_no_source_names_leaves_an_ended_source_index(fleet: Fleet) -> None:
    """An object that a resync drops keeps its source index for a week."""
    watch(fleet, "one")
    fleet.write("east", service("one"))
    fleet.pump()

    fleet.delete("EventTrigger", "one")

    assert matching(fleet) == []
    assert fleet.records.trails.get(EAST, WEB).value.ended
