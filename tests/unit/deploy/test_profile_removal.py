"""A profile leaves its clusters: each has a record of its own, and the last one closes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellhop.errors import StaleError, UnreachableError
from bellhop.profiles.records import Place
from bellhop.state.messages import Apply, Resolve
from tests.fakes.fleet import Fleet
from tests.fakes.hooks import before_next
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import config, holder, profile
from tests.fakes.mortal import Killed

OWN = Place("", "", "own")
KEY = ("ClusterProfile", "", "own")


def names(count: int) -> list[str]:
    return [f"fleet/c{number:03}" for number in range(count)]


@pytest.fixture
def spread(fleet: Fleet) -> Callable[[int], list[str]]:
    """Apply a profile to so many clusters, and return their names."""

    def to(count: int) -> list[str]:
        for name in names(count):
            fleet.register(name.removeprefix("fleet/"), env="production")
        fleet.deploy(profile(), holder("own", config("a")))
        return names(count)

    return to


def withdraw(fleet: Fleet) -> None:
    """Delete the profile; its clusters are asked to be left, and not left yet."""
    fleet.declare.delete([KEY])
    fleet.release()
    fleet.stages["deploy"].handle(Resolve("own"))


def leave(fleet: Fleet, cluster: str) -> None:
    fleet.stages["deploy"].handle(Apply(*OWN, cluster))


def leaving(fleet: Fleet) -> list[str]:
    return list(fleet.records.departures.of(OWN))


def test_each_cluster_costs_the_same(fleet: Fleet, spread: Callable[[int], list[str]]) -> None:
    """Of thirty clusters each is left by as many operations; the head is written by the last."""
    clusters = spread(30)
    withdraw(fleet)
    head = fleet.records.profiles.head(*OWN)
    assert head
    costs = []
    for cluster in clusters[:-1]:
        fleet.store.counts.clear()
        leave(fleet, cluster)
        # Of a query no more than a page is read, and of that one item.
        costs.append({each: fleet.store.counts[each] for each in ("get", "put", "delete", "query")})
        now = fleet.records.profiles.head(*OWN)
        assert now
        assert now.token == head.token

    assert all(each == costs[0] for each in costs)
    assert leaving(fleet) == clusters[-1:]
    leave(fleet, clusters[-1])
    assert fleet.records.profiles.head(*OWN) is None
    assert leaving(fleet) == []


def test_one_that_is_away_is_the_one_that_is_left_still(
    fleet: Fleet, spread: Callable[[int], list[str]]
) -> None:
    """A list of profiles shows which clusters still hold something of each."""
    clusters = spread(4)
    fleet.access.clusters[clusters[2]].fail_with(UnreachableError("cannot reach: it is away"))
    withdraw(fleet)
    fleet.pump()

    assert [each.leaving for each in fleet.records.profiles.of("")] == [(clusters[2],)]
    assert [each.leaving for each in fleet.records.profiles.heads("")] == [(clusters[2],)]


def test_who_stays_is_not_closed(fleet: Fleet, spread: Callable[[int], list[str]]) -> None:
    """A profile that leaves some of its clusters is as before when they are left."""
    clusters = spread(4)
    for cluster in clusters[:2]:
        fleet.declare.label(cluster, {"env": "test"})
    fleet.pump()

    [there] = fleet.records.profiles.of("")
    assert (there.destinations, there.leaves, there.leaving) == (tuple(clusters[2:]), False, ())
    assert leaving(fleet) == []


def test_what_dies_before_it_closes_is_closed_by_its_message(
    fleet: Fleet, spread: Callable[[int], list[str]]
) -> None:
    """The last pending removal is deleted, and its worker dies: the message comes again."""
    [cluster] = spread(1)
    withdraw(fleet)
    delete = fleet.store.delete

    def dying(partition: str, sort: str, **expect: str) -> bool:
        if partition.startswith("profile/"):
            raise Killed
        return delete(partition, sort, **expect)

    fleet.store.delete = dying  # type: ignore[method-assign]
    with pytest.raises(Killed):
        leave(fleet, cluster)
    fleet.store.delete = delete  # type: ignore[method-assign]
    assert leaving(fleet) == []

    leave(fleet, cluster)

    assert fleet.records.profiles.head(*OWN) is None


def test_a_slow_worker_deletes_no_later_pending_removal(
    fleet: Fleet, spread: Callable[[int], list[str]]
) -> None:
    """Between its status and its pending removal the cluster is selected and deselected again."""
    first, second = spread(2)
    withdraw(fleet)
    forget = fleet.records.outcomes.delete

    def lose_race(cluster: str, name: str, **expect: str) -> bool:
        gone = forget(cluster, name, **expect)
        fleet.records.outcomes.delete = forget  # type: ignore[method-assign]
        fleet.deploy(profile())
        assert len(fleet.access.clusters[first].objects(CONFIG)) == 1
        withdraw(fleet)
        return gone

    fleet.records.outcomes.delete = lose_race  # type: ignore[method-assign]
    before = itertools.count()
    end = fleet.records.departures.end

    def ending(place: Place, cluster: str, *, expect: str) -> None:
        try:
            end(place, cluster, expect=expect)
        except StaleError:
            next(before)
            raise

    fleet.records.departures.end = ending  # type: ignore[method-assign]
    leave(fleet, first)

    assert next(before) == 1
    assert leaving(fleet) == [second]
    assert fleet.access.clusters[first].objects(CONFIG) == []


def test_a_withdrawal_that_loses_notes_nothing(
    fleet: Fleet, spread: Callable[[int], list[str]]
) -> None:
    """Another writer is quicker between the departures and the head: they are taken back."""
    spread(3)
    fleet.declare.delete([KEY])
    put = fleet.records.profiles.put

    def lose_race(*_: object, **__: object) -> str:
        fleet.records.profiles.put = put  # type: ignore[method-assign]
        assert len(leaving(fleet)) == 3
        raise StaleError("cannot write: somebody else was quicker")

    fleet.records.profiles.put = lose_race  # type: ignore[method-assign]
    begun = fleet.records.departures.begin
    seen: list[list[str]] = []

    def beginning(*args: object) -> object:
        seen.append(leaving(fleet))
        return begun(*args)  # type: ignore[arg-type]

    fleet.records.departures.begin = beginning  # type: ignore[assignment, method-assign]
    fleet.pump()

    assert seen == [[], []]
    assert fleet.records.profiles.head(*OWN) is None


def test_what_a_dead_worker_noted_is_left_with_the_others(
    fleet: Fleet, spread: Callable[[int], list[str]]
) -> None:
    """A pending removal of an earlier life keeps no profile from being closed."""
    spread(2)
    fleet.records.departures.begin(OWN, ["fleet/long-gone"])

    fleet.declare.delete([KEY])
    fleet.pump()
    fleet.wait(timedelta(hours=1))

    assert fleet.records.profiles.head(*OWN) is None
    assert leaving(fleet) == []


def test_a_cluster_that_is_wanted_again_keeps_what_it_has(
    fleet: Fleet, spread: Callable[[int], list[str]]
) -> None:
    """The profile comes back before any cluster has left; no pending removal stays."""
    clusters = spread(3)
    withdraw(fleet)
    fleet.deploy(profile())

    assert all(len(fleet.access.clusters[each].objects(CONFIG)) == 1 for each in clusters)
    there = value_of(fleet.records.profiles.get(*OWN))
    assert (there.destinations, there.leaves) == (tuple(clusters), False)


def test_a_profile_that_comes_back_as_its_last_cluster_is_left_is_not_closed(
    fleet: Fleet, spread: Callable[[int], list[str]]
) -> None:
    """Between the look at its head and the end of that it is declared again."""
    [cluster] = spread(1)
    withdraw(fleet)

    def lose_race() -> None:
        fleet.deploy(profile())

    before_next(fleet.records.profiles, "delete", lose_race)
    leave(fleet, cluster)

    there = value_of(fleet.records.profiles.get(*OWN))
    assert there
    assert there.destinations == (cluster,)
    assert len(fleet.access.clusters[cluster].objects(CONFIG)) == 1


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("late", [True, False], ids=["written after", "written before"])
def test_a_cluster_that_comes_back_as_its_profile_is_withdrawn_is_waited_for(
    fleet: Fleet, spread: Callable[[int], list[str]], count: int, *, late: bool
) -> None:
    """A worker that finds it registered again leaves the pending removal to the next one."""
    first, *others = spread(count)
    fleet.deploy(profile(more="stopMatchingBehavior: LeavePolicies"))
    put, forget = fleet.records.profiles.put, fleet.records.outcomes.delete

    def withdrawing(*args: Any, **expect: Any) -> str:
        fleet.records.profiles.put = put  # type: ignore[method-assign]
        withdrawn: list[str] = []

        def comes_back(*which: Any, **expected: Any) -> bool:
            fleet.records.outcomes.delete = forget  # type: ignore[method-assign]
            gone = forget(*which, **expected)
            fleet.register(first.removeprefix("fleet/"), env="production")
            fleet.stages["deploy"].handle(Apply(*OWN, first))
            if not late:
                withdrawn.append(put(*args, **expect))
            return gone

        fleet.records.outcomes.delete = comes_back  # type: ignore[method-assign]
        leave(fleet, first)
        return withdrawn[0] if withdrawn else put(*args, **expect)

    fleet.declare.deregister(first)
    fleet.records.profiles.put = withdrawing  # type: ignore[method-assign]
    withdraw(fleet)
    for each in (*others, first):
        leave(fleet, each)

    assert len(fleet.access.clusters[first].objects(CONFIG)) == 1
    assert fleet.records.profiles.head(*OWN) is None
