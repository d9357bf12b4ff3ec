"""Rolling profiles back: what was before comes to all clusters, and stays whatever is declared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import MissingError
from bellhop.operations import rollback as fleet_rollback
from bellhop.operations.rollback import list_revisions, rollback, undo
from bellhop.profiles.records import place
from bellhop.settings import Settings
from bellhop.state.messages import Instantiate, Resolve
from bellhop.state.profile import Profile
from tests.fakes import rig
from tests.fakes.fleet import Fleet, OpenFleet, service
from tests.fakes.hooks import before_next
from tests.fakes.interrupted import interrupted
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger
from tests.fakes.mortal import kill_before_publishing
from tests.fakes.share import SHARE

NAMES = ("east", "west")
LARGE = "x" * 200_000


def said(kube: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["data"]["v"] for each in kube.objects(CONFIG)}


def deploys(fleet: Fleet, value: str, *, name: str = "one") -> None:
    """Apply a profile, and its present manifests."""
    fleet.deploy(join(profile(), holder("own", config(name, f"v: '{value}'"))))


def held(fleet: Fleet, name: str = "own") -> Profile:
    found = value_of(fleet.records.profiles.get("", "", name))
    assert found
    return found


def kept(fleet: Fleet) -> list[int]:
    return [each.number for each in fleet.records.renderings.of(place(held(fleet)))]


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster that has a second version of a profile."""
    kube = fleet.register("east", env="production")
    deploys(fleet, "1")
    deploys(fleet, "2")
    return kube


def test_all_clusters_have_what_was_before(fleet: Fleet, east: FakeKube) -> None:
    """Objects that the new version added are removed, as with any change."""
    west = fleet.register("west", env="production")
    deploys(fleet, "3", name="other")
    assert said(east) == said(west) == {"other": "3"}
    rollback(fleet.installation(), "own")
    fleet.pump()

    assert said(east) == said(west) == {"one": "2"}
    assert held(fleet).pinned
    assert [each.detail for each in fleet.ledger() if each.what == "rolled back"] == [
        "to revision 2"
    ]


def test_nothing_but_undo_ends_it(fleet: Fleet, east: FakeKube) -> None:
    """Neither a manifest, nor a label, a resync or a message of last week; undo does."""
    rollback(fleet.installation(), "own")
    fleet.pump()
    deploys(fleet, "3")
    fleet.declare.label("fleet/east", {"tier": "gold"})
    fleet.publisher.publish([Resolve("own")])
    fleet.pump()
    assert said(east) == {"one": "1"}
    late = fleet.register("late", env="production")
    fleet.pump()
    assert said(late) == {"one": "1"}

    assert undo(fleet.installation(), "own").is_new
    fleet.pump()

    assert said(east) == said(late) == {"one": "3"}
    assert not undo(fleet.installation(), "own").is_new


def test_where_it_goes_is_as_declared(fleet: Fleet, east: FakeKube) -> None:
    """A rollback fixes the contents, not the clusters: a deselected cluster loses them."""
    rollback(fleet.installation(), "own")
    fleet.pump()
    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.pump()

    assert said(east) == {}
    assert held(fleet).pinned


def test_a_second_time_changes_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Two rollbacks, in turn or at once, go back once; a number selects any revision."""
    deploys(fleet, "3")
    here = fleet.installation()
    assert [rollback(here, "own").is_new for _ in range(2)] == [True, False]
    fleet.pump()
    assert said(east) == {"one": "2"}
    rollback(here, "own", 1)
    fleet.pump()
    assert said(east) == {"one": "1"}
    rollback(here, "own", 3)
    fleet.pump()

    assert said(east) == {"one": "3"}
    assert held(fleet).number == 3


def test_what_is_in_force_can_be_kept(fleet: Fleet, east: FakeKube) -> None:
    """By its own number: what is declared later does not come."""
    rollback(fleet.installation(), "own", 2)
    deploys(fleet, "3")

    assert said(east) == {"one": "2"}


@pytest.mark.parametrize("number", [0, 1, 9])
def test_a_version_that_is_not_stored_cannot_be_deployed(fleet: Fleet, number: int) -> None:
    """The numbers that are kept are said; with none at all that is said."""
    fleet.register("east", env="production")
    deploys(fleet, "1")
    if number != 1:
        said_so = "there is no earlier revision"
    else:
        for each in "2345":
            deploys(fleet, each)
        said_so = "kept are 2, 3, 4;"

    with pytest.raises(MissingError, match=said_so):
        rollback(fleet.installation(), "own", number)


def test_no_profile_no_rollback(fleet: Fleet) -> None:
    """Each question about one that is not there says so."""
    here = fleet.installation()
    for ask in (rollback, undo, lambda *given: list(list_revisions(*given))):
        with pytest.raises(MissingError, match="'none': there is none of that name"):
            ask(here, "none")


def test_the_last_few_are_kept(fleet: Fleet, east: FakeKube) -> None:
    """Beyond the setting the oldest goes; what comes again has its number, and lies there once."""
    for value in "3451":
        deploys(fleet, value)

    assert said(east) == {"one": "1"}
    assert held(fleet).number == 6
    assert kept(fleet) == [5, 4, 3]
    deploys(fleet, "4")
    assert held(fleet).number == 4


def test_none_is_kept_where_none_is_asked_for(tmp_path: Path) -> None:
    """With the setting at 0 a change costs what it did."""
    fleet = Fleet(tmp_path, Settings(revisions=0))
    fleet.register("east", env="production")
    deploys(fleet, "1")
    deploys(fleet, "2")

    assert kept(fleet) == []
    assert held(fleet).number == 2
    fleet.close()


def test_large_ones_lie_among_the_blobs(fleet: Fleet) -> None:
    """They come back whole, and go with their profile: records and, a day later, blobs."""
    east = fleet.register("east", env="production")
    deploys(fleet, LARGE)
    deploys(fleet, "2")
    rollback(fleet.installation(), "own")
    fleet.pump()
    assert said(east) == {"one": LARGE}
    fleet.delete("ClusterProfile", "own")

    partitions = {each.partition for each in fleet.store.all()}
    assert not [each for each in partitions if each.startswith(("rendering", "payload/rendering"))]


def test_history_shows_what_was_changed(fleet: Fleet, east: FakeKube) -> None:
    """Of each revision which declarations are others than before, and which one is in force."""
    here = fleet.installation()
    fleet.deploy(join(profile(more="tier: 7"), holder("own", config("one", "v: '3'"))))
    listed = list(list_revisions(here, "own"))
    assert [each.why for each in listed] == [
        "",
        "ConfigMap default/own changed",
        "ClusterProfile own changed, ConfigMap default/own changed",
    ]
    assert [each.until is None for each in listed] == [False, False, True]
    rollback(here, "own", 1)

    listed = list(list_revisions(here, "own"))
    assert [each.number for each in listed if each.pinned] == [1]
    assert [each.number for each in listed if each.until] == [2, 3]
    assert said(east) == {"one": "3"}


# What triggers make ------------------------------------------------------------------------------


def rules(text: str, *, one: str = "true") -> str:
    return join(
        source(),
        trigger(one=one),
        holder("made", config("{{ $.Cluster.metadata.name }}", text), annotations=INSTANTIATE),
    )


ONE = 'v: "{version}-{{{{ get .Resource `port` }}}}"'
EACH = "v: '{version} {{{{ len .Resources }}}}'"


def generated(fleet: Fleet) -> Profile:
    (found,) = fleet.records.profiles.of("made")
    return found


@pytest.fixture
def triggered(fleet: Fleet) -> FakeKube:
    """Have a trigger's profile made of an older and of a newer text."""
    kube = fleet.register("east", env="production")
    for version in ("old", "new"):
        fleet.apply(rules(ONE.format(version=version)))
        fleet.write("east", service("shop"))
        fleet.pump()
    return kube


def test_what_a_trigger_made_goes_back_as_well(fleet: Fleet, triggered: FakeKube) -> None:
    """And stays, though its object changes, and its message comes again next week."""
    assert said(triggered) == {"east": "new-"}
    rollback(fleet.installation(), generated(fleet).name)
    fleet.pump()
    assert said(triggered) == {"east": "old-"}
    fleet.write("east", service("shop", port=1))
    made = generated(fleet)
    fleet.publisher.publish([Instantiate("made", "fleet/east", made.object)])
    fleet.pump()
    assert said(triggered) == {"east": "old-"}

    undo(fleet.installation(), made.name)
    fleet.pump()

    assert said(triggered) == {"east": "new-1"}


def test_events_make_no_revisions(fleet: Fleet, triggered: FakeKube) -> None:
    """A rollback restores what the last manifest replaced, however often an object changes."""
    for port in range(1, 6):
        fleet.write("east", service("shop", port=port))
        fleet.pump()
    assert said(triggered) == {"east": "new-5"}
    assert generated(fleet).number == 2

    rollback(fleet.installation(), generated(fleet).name)
    fleet.pump()

    assert said(triggered) == {"east": "old-"}


def test_it_ends_with_its_profile(fleet: Fleet, triggered: FakeKube) -> None:
    """A deleted object takes all with it; a new one is rendered from what is declared."""
    stored = triggered.objects(GVK("", "v1", "Service"))[0]
    rollback(fleet.installation(), generated(fleet).name)
    fleet.pump()
    fleet.drop("east", stored)
    fleet.pump()
    assert said(triggered) == {}
    assert not [each for each in fleet.store.all() if each.partition.startswith("rendering")]

    fleet.write("east", service("shop"))
    fleet.pump()

    assert said(triggered) == {"east": "new-"}


def test_a_profile_for_all_objects_stays_as_well(fleet: Fleet) -> None:
    """Though its inputs are known by a digest, undoing it renders it again."""
    kube = fleet.register("east", env="production")
    for version in ("old", "new"):
        fleet.apply(rules(EACH.format(version=version), one="false"))
        fleet.write("east", service("shop"))
        fleet.pump()
    rollback(fleet.installation(), generated(fleet).name)
    fleet.pump()
    fleet.write("east", service("other"))
    fleet.pump()
    assert said(kube) == {"east": "old 1"}

    undo(fleet.installation(), generated(fleet).name)
    fleet.pump()

    assert said(kube) == {"east": "new 2"}


def test_inputs_that_fail_are_reported_and_change_nothing(
    fleet: Fleet, triggered: FakeKube
) -> None:
    """While it is rolled back, too."""
    rollback(fleet.installation(), generated(fleet).name)
    fleet.pump()
    fleet.deploy(rules("v: '{{ .Resource.nothing.there }}'"))

    assert said(triggered) == {"east": "old-"}
    assert generated(fleet).error
    assert generated(fleet).pinned


# At once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["worker", "person"])
def test_who_renders_meanwhile_does_not_undo_it(tmp_path: Path, first: str) -> None:
    """It stays rolled back, at each point where one interrupts the other."""
    met, number = True, 0
    while met:
        fleet = Fleet(tmp_path / str(number))
        east = fleet.register("east", env="production")
        deploys(fleet, "1")
        deploys(fleet, "2")
        here, process = fleet.installation(), rig.process(fleet)
        fleet.apply(holder("own", config("one", "v: '3'")))
        acts: list[Callable[[], object]] = [fleet.pump, partial(rollback, here, "own", 1)]
        before, between = acts if first == "worker" else reversed(acts)
        with interrupted(fleet.records, number, between) as found:
            before()
        met, number = found.met, number + 4
        process.pump()

        assert met is False or said(east) == {"one": "1"}
        assert met is False or held(fleet).pinned
        fleet.close()
    assert number > 12


def test_two_at_once_end_at_one(tmp_path: Path) -> None:
    """The one who comes last has it; nobody fails, and clusters have what the profile says."""
    ends, met, number = set(), True, 0
    while met:
        fleet = Fleet(tmp_path / str(number))
        east = fleet.register("east", env="production")
        for each in "123":
            deploys(fleet, each)
        here = fleet.installation()
        with interrupted(fleet.records, number, partial(rollback, here, "own", 1)) as found:
            rollback(here, "own", 2)
        met, number = found.met, number + 3
        fleet.pump()

        assert said(east) == {"one": str(held(fleet).number)}
        ends.add(held(fleet).number)
        fleet.close()
    assert ends == {1, 2}


def test_two_who_undo_it_at_once_number_nothing_twice(fleet: Fleet, east: FakeKube) -> None:
    """The second one finds it undone, and all former revisions by their own numbers."""
    deploys(fleet, "3")
    here, profiles = fleet.installation(), fleet.records.profiles
    rollback(here, "own", 2)
    deploys(fleet, "4")

    def late() -> None:
        assert undo(here, "own").is_new
        fleet.pump()

    before_next(profiles, "put_head", late)
    undo(here, "own")
    fleet.pump()

    assert said(east) == {"one": "4"}
    assert [each.number for each in list_revisions(here, "own")] == [1, 2, 3, 4]


# Dying --------------------------------------------------------------------------------------------


@pytest.fixture(params=["rollback", "undo"])
def act(request: pytest.FixtureRequest) -> Any:
    """The operation that is killed."""
    return getattr(fleet_rollback, request.param)


@pytest.mark.rest
def test_a_death_before_clusters_are_notified_is_corrected(
    fleet: Fleet, east: FakeKube, act: Any
) -> None:
    """The profile is stored and no message follows: a timer resolves it again."""
    here = fleet.installation()
    if act is undo:
        rollback(here, "own")
        fleet.pump()

    kill_before_publishing(fleet.publisher, bool, partial(act, here, "own"))
    fleet.clock.advance(fleet_rollback._ABANDONED)
    rig.tick(fleet)
    fleet.pump()

    assert held(fleet).pinned is (act is rollback)
    assert said(east) == {"one": "1" if act is rollback else "2"}


def test_a_death_in_between_is_corrected(open_fleet: OpenFleet, act: Any) -> None:
    """Wherever it dies, clusters have what the profile says within minutes, and all of them.

    It takes seconds: each death is played in an installation of its own.
    """
    for steps in range(1, 40, SHARE):
        fleet = open_fleet()
        kubes = [fleet.register(name, env="production") for name in NAMES]
        deploys(fleet, "1")
        deploys(fleet, "2")
        if act is undo:
            rollback(fleet.installation(), "own")
            fleet.pump()
        fate = rig.make_mortal(fleet)
        died = rig.kill(fleet, fate, steps, partial(act, fleet.installation(), "own"))
        for _ in range(3):
            fleet.clock.advance(fleet_rollback._ABANDONED)
            rig.tick(fleet)
            fleet.pump()
        expected = {"one": "1" if held(fleet).pinned else "2"}
        assert [said(each) for each in kubes] == [expected, expected]
        if not died:
            return
    raise AssertionError("it never ends")
