"""ClusterSets: the clusters that triggers watch and profiles select by them, and replacements."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.errors import UnreachableError
from bellhop.ports.store import ANY, Item
from bellhop.state.cluster import SetSelection
from bellhop.state.messages import Resync
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.hooks import after_next
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    cluster_set,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.fakes.mortal import Killed
from tests.unit.declarations.test_fan_out import count_messages


def by_set(*names: str) -> str:
    """Return a user's own profile that selects sets, and its manifest."""
    selecting = profile(f"setRefs: [{', '.join(names or ('active',))}]")
    return join(selecting, holder("own", config("own")))


def watching() -> str:
    """Return a trigger that watches only a set's clusters, and its manifest."""
    rule = trigger(ref="made").replace(
        "sourceClusterSelector: {matchLabels: {env: production}}", "clusterSetRefs: [active]"
    )
    assert "clusterSetRefs" in rule
    made = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    return join(source(), rule, made)


def has(fleet: Fleet, *clusters: str) -> list[str]:
    """Return the clusters that have an object that was deployed."""
    return [x for x in clusters if fleet.access.clusters[f"fleet/{x}"].objects(CONFIG)]


def chosen(fleet: Fleet, name: str = "active") -> SetSelection:
    return fleet.records.choices.all()[name].value


def fail(fleet: Fleet, kube: FakeKube, *, times: int = 3) -> None:
    """Have a cluster not answer for so many looks of ours."""
    kube.fail_with(UnreachableError(f"cannot reach '{kube.cluster}'"))
    fleet.publisher.publish([Resync(kube.cluster)])
    for _ in range(times):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=2))


def recover(fleet: Fleet, kube: FakeKube) -> None:
    kube.fail_with(None)
    fleet.wait(timedelta(minutes=10))


def three(fleet: Fleet) -> tuple[FakeKube, FakeKube, FakeKube]:
    east, north, west = (fleet.register(x, env="production") for x in ("east", "north", "west"))
    fleet.pump()
    return east, north, west


ALL = ("east", "north", "west")


def test_a_profile_goes_to_all_clusters_of_a_set_without_a_limit(fleet: Fleet) -> None:
    """A label adds a cluster and removes it, as a selector does; no selection is stored."""
    three(fleet)
    fleet.deploy(cluster_set(None), by_set())
    assert has(fleet, *ALL) == ["east", "north", "west"]

    fleet.declare.label("fleet/north", {"env": "test"})
    fleet.pump()

    assert has(fleet, *ALL) == ["east", "west"]
    assert fleet.records.choices.all() == {}


def test_as_many_clusters_as_maxreplicas_says_stay_chosen(fleet: Fleet) -> None:
    """One that comes before them by its name does not take anybody's place."""
    fleet.apply(cluster_set(2), by_set())
    fleet.register("west", env="production")
    fleet.pump()
    three(fleet)

    assert has(fleet, *ALL) == ["east", "west"]
    fleet.register("alpha", env="production")
    fleet.pump()
    assert has(fleet, "alpha", *ALL) == ["east", "west"]


@pytest.mark.parametrize("how", ["label", "deregister"])
def test_a_cluster_that_leaves_is_replaced(fleet: Fleet, how: str) -> None:
    """Its add-ons are withdrawn if it is still registered."""
    three(fleet)
    fleet.deploy(cluster_set(1), by_set())
    assert has(fleet, *ALL) == ["east"]

    if how == "label":
        fleet.declare.label("fleet/east", {"env": None})
    else:
        fleet.declare.deregister("fleet/east")
    fleet.pump()

    assert chosen(fleet) == SetSelection(("fleet/north",))
    assert has(fleet, "north", "west") == ["north"]
    assert has(fleet, "east") == (["east"] if how == "deregister" else [])


def test_a_cluster_that_is_down_is_replaced_and_not_put_back(fleet: Fleet) -> None:
    """A short outage moves nothing; once it answers, it is rid of what it had."""
    east, _, _ = three(fleet)
    fleet.deploy(cluster_set(1), by_set())
    fail(fleet, east, times=1)
    assert chosen(fleet) == SetSelection(("fleet/east",))

    fail(fleet, east, times=3)
    assert chosen(fleet) == SetSelection(("fleet/north",))
    assert has(fleet, "north", "west") == ["north"]

    recover(fleet, east)
    assert chosen(fleet) == SetSelection(("fleet/north",))
    assert has(fleet, *ALL) == ["north"]


def test_a_cluster_without_a_replacement_stays(fleet: Fleet) -> None:
    """It is marked until it answers, or another one that can take its place comes."""
    east = fleet.register("east", env="production")
    fleet.deploy(cluster_set(1), by_set())
    fail(fleet, east)
    assert chosen(fleet) == SetSelection(("fleet/east",), ("fleet/east",))

    recover(fleet, east)
    assert chosen(fleet) == SetSelection(("fleet/east",))

    fail(fleet, east)
    assert chosen(fleet).failing
    fleet.register("west", env="production")
    fleet.pump()
    assert chosen(fleet) == SetSelection(("fleet/west",))


def test_a_free_place_is_taken_by_a_cluster_that_answers_again(fleet: Fleet) -> None:
    """No cluster that is down is newly selected."""
    east, _, _ = three(fleet)
    fail(fleet, east)
    fleet.deploy(cluster_set(3), by_set())
    assert set(chosen(fleet).clusters) == {"fleet/north", "fleet/west"}

    recover(fleet, east)

    assert set(chosen(fleet).clusters) == {"fleet/east", "fleet/north", "fleet/west"}
    assert has(fleet, *ALL) == ["east", "north", "west"]


def test_a_limit_may_be_changed_and_taken_away(fleet: Fleet) -> None:
    """Those chosen last go first; a set that is deleted has no cluster, and leaves no choice."""
    three(fleet)
    counts = []
    for most in (2, 1, 0, 3, None):
        fleet.deploy(cluster_set(most), by_set())
        counts.append(has(fleet, *ALL))
    assert counts == [["east", "north"], ["east"], [], [*ALL], [*ALL]]

    fleet.apply(cluster_set(2))
    fleet.delete("ClusterSet", "active")
    assert has(fleet, *ALL) == []
    assert fleet.records.choices.all() == {}


def test_a_trigger_watches_the_clusters_of_its_sets(fleet: Fleet) -> None:
    """Changes in others are no events; a selected cluster is resynced, one that left withdrawn."""
    three(fleet)
    for name in ALL:
        fleet.access.clusters[f"fleet/{name}"].put(service("web"))
    fleet.deploy(cluster_set(1), watching())
    assert has(fleet, *ALL) == ["east"]
    assert [key for key in fleet.catalogs.current().clusters if kinds(fleet, key)] == ["fleet/east"]

    fleet.declare.label("fleet/east", {"env": None})
    fleet.pump()

    assert has(fleet, *ALL) == ["north"]


def test_a_trigger_of_sets_deploys_to_the_clusters_that_it_selects(fleet: Fleet) -> None:
    """Events in the set's cluster deploy to the destinations, and move with the set."""
    three(fleet)
    fleet.register("office", dep="eng")
    for name in ALL:
        fleet.access.clusters[f"fleet/{name}"].put(service(f"web-{name}"))
    fleet.apply(cluster_set(1))
    selecting = "  destinationClusterSelector: {matchLabels: {dep: eng}}\n  eventSourceName"
    fleet.deploy(watching().replace("  eventSourceName", selecting))
    office = fleet.access.clusters["fleet/office"]
    assert office.names() == ["for-web-east"]

    fleet.declare.label("fleet/east", {"env": None})
    fleet.pump()

    assert office.names() == ["for-web-north"]
    assert has(fleet, *ALL) == []


def kinds(fleet: Fleet, cluster: str) -> Any:
    """Return what ingest lets in from a cluster."""
    return value_of(fleet.records.gates.get(cluster)).kinds


def test_a_selection_publishes_only_what_it_concerns(fleet: Fleet) -> None:
    """However many clusters a set has, one that is replaced concerns two."""
    for number in range(8):
        fleet.register(f"c{number}", env="production").put(service("web"))
    fleet.apply(cluster_set(6), watching(), by_set())

    found = count_messages(fleet, lambda: fleet.declare.label("fleet/c2", {"env": None}))

    assert chosen(fleet).clusters[-1] == "fleet/c6"
    assert found["sweep"] == 2
    # For all objects and for each of one, in the cluster that leaves and in the one that comes.
    assert found["instantiate"] <= 10
    assert found["resolve"] == 2


class Between:
    """A store that lets something happen before the first choice is written."""

    def __init__(self, store: Any, act: Any) -> None:
        self._store, self._act = store, act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        if item.partition == "choice" and self._act:
            act, self._act = self._act, None
            act()
        found: Item = self._store.put(item, expect=expect)
        return found


def test_two_selections_at_once_both_count(fleet: Fleet) -> None:
    """The slower one finds another choice than it had read, and chooses by what there is then."""
    three(fleet)
    fleet.deploy(cluster_set(1), by_set())
    other = rig.process(fleet)

    def leave() -> None:
        other.declare.label("fleet/north", {"env": None})

    fleet.store._store = Between(fleet.store._store, leave)  # type: ignore[assignment]
    fleet.declare.label("fleet/east", {"env": None})
    fleet.pump()

    assert chosen(fleet) == SetSelection(("fleet/west",))
    assert has(fleet, *ALL) == ["west"]
    assert not list(fleet.records.pending.all())


def test_a_late_selection_changes_nothing_that_another_selected(fleet: Fleet) -> None:
    """The cluster selected meanwhile stays, and only it has the add-ons."""
    for each in three(fleet):
        each.put(service("web"))
    fleet.deploy(cluster_set(1), watching())
    other = rig.process(fleet)

    def leave_and_come_back() -> None:
        other.declare.label("fleet/north", {"env": None})
        other.declare.label("fleet/north", {"env": "production"})
        other.pump()

    fleet.store._store = Between(fleet.store._store, leave_and_come_back)  # type: ignore[assignment]
    fleet.declare.label("fleet/east", {"env": None})
    fleet.pump()

    assert has(fleet, *ALL) == ["west"]
    assert chosen(fleet) == SetSelection(("fleet/west",))


def test_a_selection_after_a_resync_survives_a_death(fleet: Fleet) -> None:
    """The next resync finds nothing to select: the schedule finishes what was noted."""
    east, _, _ = three(fleet)
    fleet.deploy(cluster_set(1), by_set())

    def die() -> None:
        raise Killed

    after_next(fleet.records.choices, "put", die)
    with pytest.raises(Killed):
        fail(fleet, east)
    fleet.clock.advance(timedelta(minutes=10))
    rig.tick(fleet)
    fleet.pump()

    assert chosen(fleet) == SetSelection(("fleet/north",))
    assert has(fleet, "north", "west") == ["north"]
    assert not list(fleet.records.pending.all())


@pytest.mark.rest
@pytest.mark.parametrize("offset", range(2))
def test_a_death_at_any_step_of_a_selection_is_corrected(offset: int) -> None:
    """The next worker finishes what was noted: one cluster is selected, and only it has all."""
    for steps in range(1 + offset, 140, 14):
        with rig.folder() as folder:
            die_and_go_on(Path(folder), steps)


def die_and_go_on(folder: Path, steps: int) -> None:
    fleet = Fleet(folder)
    three(fleet)
    fleet.deploy(cluster_set(1), by_set())
    fate = rig.make_mortal(fleet)
    fate.doom(steps)
    with suppress(Killed):
        fleet.declare.label("fleet/east", {"env": None})
    fate.revive()
    fleet.reread()
    fleet.declare.label("fleet/east", {"env": None})
    fleet.clock.advance(timedelta(minutes=1))
    rig.tick(fleet)
    fleet.pump()

    assert chosen(fleet) == SetSelection(("fleet/north",))
    assert has(fleet, *ALL) == ["north"]
    assert not list(fleet.records.pending.all())
    fleet.close()
