"""Add-ons that one change of manifests would remove at once are held, named, and released."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import parse_all, read_documents
from bellhop.core.gvk import GVK
from bellhop.declarations.records import HeldRemoval
from bellhop.errors import MissingError
from bellhop.settings import Settings
from bellhop.state.messages import Instantiate, Resolve, Resync
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet, OpenFleet, service
from tests.fakes.hooks import before_each
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, cluster_set, config, holder, profile, source, trigger
from tests.fakes.mortal import Fate, Killed
from tests.fakes.share import SHARE

MADE = holder("made", config("of-{{ .Resource.metadata.name }}"), annotations=INSTANTIATE)
LISTED = "v: '{{ range .Resources }}{{ .metadata.name }} {{ end }}'"
ALL = holder("all", config("all", LISTED), annotations=INSTANTIATE)

GUARDED = Settings(hold_from=8, hold_share=0.5)
"""Of eight add-ons four may go at once."""

Change = Callable[[Fleet], object]


@pytest.fixture
def fleet(open_fleet: OpenFleet) -> Fleet:
    """Open an installation that holds what would be removed of eight add-ons and more."""
    return open_fleet(GUARDED)


def uids(kube: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in kube.objects(CONFIG)}


def held(fleet: Fleet) -> list[HeldRemoval]:
    return [each.value for each in fleet.records.removals.all()]


def one_cluster(fleet: Fleet, count: int = 10) -> FakeKube:
    """Have Services of one cluster get a ConfigMap each."""
    kube = fleet.register("east", env="production")
    fleet.apply(source(), trigger(), MADE)
    for number in range(count):
        kube.put(service(f"s{number}"))
    fleet.resync()
    assert len(kube.names()) == count
    return kube


def many_clusters(fleet: Fleet) -> list[FakeKube]:
    """Have a user's own profile go to ten clusters."""
    kubes = [fleet.register(f"c{number}", env="production") for number in range(10)]
    fleet.deploy(profile(), holder("own", config("own")))
    assert all(each.names() == ["own"] for each in kubes)
    return kubes


def relabel(value: str) -> Change:
    return lambda fleet: fleet.declare.label(EAST, {"env": value})


def apply(*texts: str) -> Change:
    return lambda fleet: fleet.apply(*texts)


def delete(kind: str, name: str) -> Change:
    return lambda fleet: fleet.declare.delete([(kind, "", name)])


TYPO = trigger().replace("env: production", "env: prodution")
DESTINATION = "destinationClusterSelector: {matchLabels: {env: %s}}"

MISTAKES: dict[str, tuple[Change, Change]] = {
    "a label": (relabel("prodution"), relabel("production")),
    "a source selector": (apply(TYPO), apply(trigger())),
    "a destination selector": (
        apply(trigger(more=DESTINATION % "prodution")),
        apply(trigger(more=DESTINATION % "production")),
    ),
    "an EventSource": (delete("EventSource", "watched"), apply(source())),
    "a trigger": (delete("EventTrigger", "made"), apply(trigger())),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_removes_nothing_and_is_taken_back(fleet: Fleet, mistake: str) -> None:
    """The add-ons stay as they are, whatever comes meanwhile, and no object is made again."""
    wrong, right = MISTAKES[mistake]
    east = one_cluster(fleet)
    before = uids(east)

    wrong(fleet)
    fleet.pump()
    fleet.publisher.publish([Resync(EAST, full=True), Instantiate("made", EAST)])
    fleet.pump()
    assert uids(east) == before
    (found,) = held(fleet)
    assert (found.rule, found.profiles, found.addons, found.of) == (("made", ""), 10, 10, 10)
    assert (found.number, found.clusters) == (1, (EAST,))
    assert fleet.declare.held == [found]
    (line,) = (each for each in fleet.ledger() if each.what == "held")
    assert (line.context, f"--change {found.change}" in line.detail) == ({"trigger": "made"}, True)

    right(fleet)
    fleet.pump()
    assert held(fleet) == []
    assert uids(east) == before
    fleet.drop("east", east.get(GVK("", "v1", "Service"), "default", "s3") or {})
    fleet.pump()
    assert "of-s3" not in east.names()
    assert len(east.names()) == 9


@pytest.mark.parametrize(("asked", "at"), [("all", 1), ("get", 1), ("get", 2), ("get", 5)])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_that_ends_at_any_moment_removes_nothing(
    fleet: Fleet, mistake: str, asked: str, at: int
) -> None:
    """A worker that saw it in the catalog, and finds nothing held any more, looks again."""
    wrong, right = MISTAKES[mistake]
    east = one_cluster(fleet)
    before, removed = uids(east), before_each(east, "remove")

    wrong(fleet)
    fleet.publisher.publish([Resync(EAST, full=True), Instantiate("made", EAST)])
    left = iter(range(at - 1, -1, -1))
    before_each(fleet.records.removals, asked, lambda: next(left, 1) or right(fleet))
    fleet.pump()

    assert next(left, None) is None
    assert uids(east) == before
    assert removed == []
    assert held(fleet) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_was_meant_is_released(fleet: Fleet, mistake: str) -> None:
    """All of it goes, and what was known of the objects that matched goes with it."""
    wrong, _ = MISTAKES[mistake]
    east = one_cluster(fleet)
    wrong(fleet)
    fleet.pump()
    fleet.reread()

    fleet.release()
    fleet.pump()

    assert east.names() == []
    assert held(fleet) == []
    if mistake != "a destination selector":
        assert list(fleet.records.profiles.heads("made")) == []
        assert list(fleet.records.matches.of(EAST)) == []
    with pytest.raises(MissingError, match="nothing of it is held"):
        fleet.declare.release("0123abcd")


def test_a_profile_for_all_objects_stays_whole(fleet: Fleet) -> None:
    """It keeps what it was made of while it is held and while matches are found again."""
    east = fleet.register("east", env="production", gets="it")
    kubes = [fleet.register(f"w{number}", gets="it") for number in range(9)]
    more = "destinationClusterSelector: {matchLabels: {gets: it}}"
    every = trigger("all", one="false", more=more)
    fleet.apply(source(), every, ALL)
    for number in range(3):
        east.put(service(f"s{number}"))
    fleet.resync()
    before = [kube.objects(CONFIG) for kube in kubes]
    assert [each[0]["data"]["v"] for each in before] == ["s0 s1 s2 "] * 9

    fleet.declare.label(EAST, {"env": "prodution"})
    fleet.pump()
    assert [each.addons for each in held(fleet)] == [10]
    fleet.declare.label(EAST, {"env": "production"})
    fleet.pump()

    assert [kube.objects(CONFIG) for kube in kubes] == before
    assert held(fleet) == []


def test_what_is_new_comes_while_something_is_held(fleet: Fleet) -> None:
    """A selector that loses most clusters and gains one: the gained one gets its add-on at once."""
    kubes = many_clusters(fleet)
    canary = fleet.register("canary", env="canary")

    fleet.deploy(profile("clusterSelector: {matchLabels: {env: canary}}"))
    assert canary.names() == ["own"]
    assert all(each.names() == ["own"] for each in kubes)

    fleet.deploy(holder("own", config("other")))
    assert all(each.names() == ["other"] for each in (canary, *kubes))

    fleet.release()
    fleet.pump()
    assert (canary.names(), [each.names() for each in kubes]) == (["other"], [[]] * 10)


def test_a_profile_that_is_deleted_is_held_and_comes_back(fleet: Fleet) -> None:
    """A ClusterProfile in use stays as it was until a user says that it was meant."""
    kubes = many_clusters(fleet)
    before = [uids(each) for each in kubes]

    fleet.delete("ClusterProfile", "own")
    assert [each.rule for each in held(fleet)] == [("", "own")]
    fleet.publisher.publish([Resolve("own")])
    fleet.pump()
    assert [uids(each) for each in kubes] == before

    fleet.deploy(profile())
    assert (held(fleet), [uids(each) for each in kubes]) == ([], before)


def test_a_few_and_a_small_share_go_at_once(fleet: Fleet) -> None:
    """Four of ten are not too much, nor are all of seven."""
    kubes = many_clusters(fleet)
    ref = "{{kind: SveltosCluster, namespace: fleet, name: c{}}}"
    rest = ", ".join(ref.format(number) for number in range(4, 10))
    fleet.deploy(profile(f"clusterRefs: [{rest}]"))
    assert (held(fleet), [len(each.names()) for each in kubes]) == ([], [0] * 4 + [1] * 6)

    fleet.delete("ClusterProfile", "own")
    assert (held(fleet), [each.names() for each in kubes]) == ([], [[]] * 10)


def test_many_small_rules_of_one_change_are_held_together(fleet: Fleet) -> None:
    """Ten profiles for one cluster each, deleted by one command, are one mistake."""
    east = fleet.register("east", env="production")
    names = [f"p{number}" for number in range(10)]
    for name in names:
        fleet.apply(profile(name=name), holder(name, config(name)))
    fleet.pump()

    fleet.declare.delete([("ClusterProfile", "", name) for name in names])
    fleet.pump()

    assert east.names() == names
    assert len({each.change for each in held(fleet)}) == 1
    fleet.release()
    fleet.pump()
    assert east.names() == []


def test_a_label_that_takes_most_of_a_cluster_is_held(fleet: Fleet) -> None:
    """Profiles that each lose one cluster of two are held where the cluster loses nearly all."""
    east, west = (fleet.register(name, env="production") for name in ("east", "west"))
    names = [f"p{number}" for number in range(10)]
    for name in names:
        fleet.apply(profile(name=name), holder(name, config(name)))
    fleet.pump()

    fleet.declare.label(EAST, {"env": "prodution"})
    fleet.pump()

    assert (east.names(), west.names()) == (names, names)
    assert {each.clusters for each in held(fleet)} == {(EAST,)}
    fleet.declare.label(EAST, {"env": "production"})
    assert held(fleet) == []


def test_what_was_asked_for_is_not_held(fleet: Fleet) -> None:
    """A cluster that is deregistered, a dry run and LeavePolicies take nothing by mistake."""
    one_cluster(fleet)
    fleet.declare.deregister(EAST)
    assert held(fleet) == []

    kubes = [fleet.register(f"c{number}", env="production") for number in range(10)]
    fleet.deploy(profile(more="stopMatchingBehavior: LeavePolicies"), holder("own", config("own")))
    fleet.delete("ClusterProfile", "own")
    assert held(fleet) == []
    assert all(each.names() == ["own"] for each in kubes)


def test_the_guard_can_be_switched_off(open_fleet: OpenFleet) -> None:
    """With a share of 1 everything goes at once."""
    fleet = open_fleet(replace(GUARDED, hold_share=1.0))
    east = one_cluster(fleet)
    fleet.declare.label(EAST, {"env": "prodution"})
    fleet.pump()

    assert (east.names(), held(fleet)) == ([], [])


@pytest.mark.parametrize("place", ["", "fleet"], ids=["ClusterSet", "Set"])
def test_a_set_that_loses_its_clusters_is_held(fleet: Fleet, place: str) -> None:
    """A typo in a set's selector is one in the profiles that name it."""
    prod = partial(cluster_set, None, name="prod", namespace=place)
    kubes = [fleet.register(f"c{number}", env="production") for number in range(10)]
    named_by = profile("setRefs: [prod]", namespace=place)
    contents = holder("own", config("own"), namespace=place or "default")
    fleet.deploy(prod(), named_by, contents)

    fleet.deploy(prod(env="prodution"))
    assert [each.rule for each in held(fleet)] == [("", f"{place}/own" if place else "own")]
    assert all(each.names() == ["own"] for each in kubes)

    fleet.apply(prod())
    assert held(fleet) == []


def test_a_set_that_is_to_have_fewer_clusters_is_held(fleet: Fleet) -> None:
    """A maxReplicas with a digit too few is foreseen; one that keeps most is not held."""
    prod = partial(cluster_set, name="prod")
    kubes = [fleet.register(f"c{number}", env="production") for number in range(10)]
    own = holder("own", config("own"))
    fleet.deploy(prod(10), profile("setRefs: [prod]"), own)

    fleet.deploy(prod(1))
    assert [each.addons for each in fleet.declare.held] == [9]
    assert all(each.names() == ["own"] for each in kubes)
    fleet.deploy(prod(10))
    assert held(fleet) == []

    fleet.deploy(prod(8))
    assert held(fleet) == []
    assert sum(len(each.names()) for each in kubes) == 8


def test_a_classifier_that_takes_its_label_from_many_is_held(fleet: Fleet) -> None:
    """Clusters lose it one by one, and an eighth of the add-ons may go before it is held."""
    declared = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: Classifier
metadata: {name: old}
spec:
  kubernetesVersionConstraints: [{version: %s, comparison: Equal}]
  classifierLabels: [{key: age, value: old}]
"""
    kubes = [fleet.register(f"c{number}") for number in range(10)]
    aged = profile("clusterSelector: {matchLabels: {age: old}}")
    fleet.deploy(declared % "1.20.2", aged, holder("own", config("own")))
    assert all(each.names() == ["own"] for each in kubes)

    fleet.apply(declared % "1.21.2")
    for _ in range(4):
        fleet.pump()
        fleet.clock.advance(timedelta(seconds=11))
    fleet.pump()
    assert sum(len(each.names()) for each in kubes) == 6
    (found,) = held(fleet)
    assert (found.rule, "Classifiers" in found.cause) == (("", "own"), True)

    fleet.deploy(declared % "1.20.2")
    assert held(fleet) == []
    assert all(each.names() == ["own"] for each in kubes)


def test_more_is_held_with_what_is_held(fleet: Fleet) -> None:
    """A second change keeps the identifier of the first, and one release lets both go."""
    kubes = many_clusters(fleet)
    fleet.declare.delete([("ClusterProfile", "", "own")])
    (first,) = held(fleet)
    fleet.deploy(profile("clusterRefs: []"))

    (second,) = held(fleet)
    assert (second.change, second.cause) == (first.change, first.cause)
    assert all(each.names() == ["own"] for each in kubes)
    assert "ClusterProfile own was deleted" in first.cause


@pytest.mark.parametrize(
    ("applied", "deleted"),
    [
        pytest.param(TYPO, [], id="a source selector"),
        pytest.param(trigger(more=DESTINATION % "prodution"), [], id="a destination selector"),
        pytest.param("", [("EventTrigger", "", "made")], id="a trigger"),
        pytest.param("", [("EventSource", "", "watched")], id="an EventSource"),
    ],
)
def test_says_beforehand_what_would_be_held(
    fleet: Fleet, applied: str, deleted: list[tuple[str, str, str]]
) -> None:
    """Nothing is stored by who asks what a change would do."""
    one_cluster(fleet)
    plan = fleet.declare.foresee(parse_all(read_documents(applied, source="typo")), deleted)

    (found,) = plan.held
    assert (found.rule, found.addons, found.change) == (("made", ""), 10, "")
    assert (plan.at_once, held(fleet)) == ([], [])
    assert fleet.declare.foresee([])[:2] == ([], [])


# Two at once --------------------------------------------------------------------------------------


def test_a_late_worker_removes_nothing_that_is_desired_again(tmp_path: Path) -> None:
    """Taken back before any of its calls, a change is not followed by who had read it already."""
    number, met = 0, True
    while met:
        fleet = Fleet(tmp_path / str(number), replace(GUARDED, hold_from=2))
        kubes = [fleet.register(name, env="production") for name in ("east", "west")]
        fleet.deploy(profile(), holder("own", config("own")))
        before = [uids(each) for each in kubes]
        fleet.apply(profile("clusterSelector: {matchLabels: {env: prodution}}"))
        other = rig.process(fleet)
        again = partial(other.apply, profile())
        with interrupted(fleet.records, number, again) as found:
            fleet.stages["deploy"].handle(Resolve("own"))
        fleet.pump()

        assert [uids(each) for each in kubes] == before, number
        met = found.met
        assert not met or held(fleet) == [], number
        fleet.close()
        number += 1
    assert number > 5


# Deaths -------------------------------------------------------------------------------------------


def opened(folder: Path) -> tuple[Fleet, FakeKube, Fate]:
    """Return an installation that guards two add-ons, which are deployed, and what kills it."""
    fleet = Fleet(folder, replace(GUARDED, hold_from=2))
    fate = rig.make_mortal(fleet)
    return fleet, one_cluster(fleet, 2), fate


def insist(fleet: Fleet, fate: Fate, asks: Change, doom: int) -> bool:
    """Ask for something that a death interrupts, once; let others finish it; say whether it did."""
    died = False
    fate.doom(doom)
    try:
        asks(fleet)
    except Killed:
        died = True
    fate.revive()
    fleet.reread()
    fleet.clock.advance(timedelta(seconds=61))
    rig.tick(fleet)
    fleet.pump()
    return died


DEATHS: dict[str, tuple[Change, Change, set[int]]] = {
    "a change": (lambda _: None, relabel("prodution"), {2}),
    "a deletion": (lambda _: None, delete("EventTrigger", "made"), {2}),
    "a change that is taken back": (relabel("prodution"), relabel("production"), {2}),
    "a release": (relabel("prodution"), lambda fleet: fleet.release(), {0, 2}),
}
"""The change before, the change that a death interrupts, and how many add-ons there may be then.

Who is killed before a release is noted has released nothing.
"""


@pytest.mark.rest
@pytest.mark.parametrize("name", DEATHS)
def test_a_death_at_any_step_removes_nothing_that_is_held(name: str) -> None:
    """Done or not done, nothing is half done: add-ons stay, or go, together with the hold."""
    first, then, allowed = DEATHS[name]
    doom, died = 1, True
    while died:
        with rig.folder() as folder:
            fleet, east, fate = opened(Path(folder))
            first(fleet)
            fleet.pump()
            died = insist(fleet, fate, then, doom)

            catalog = fleet.catalogs.current()
            desired = "made" in catalog.triggers and catalog.sources_in(EAST) == ("watched",)
            assert len(east.names()) in allowed, doom
            assert bool(held(fleet)) == (not desired and bool(east.names())), doom
            assert list(fleet.records.pending.all()) == [], doom
            fleet.release()
            fleet.pump()
            assert len(east.names()) == 2 * desired, doom
            fleet.close()
        doom += 13 * SHARE
    assert doom > 3 * 13
