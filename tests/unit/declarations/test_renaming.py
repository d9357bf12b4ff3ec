"""Renames of sources, triggers and profiles: their objects stay the same objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.settings import Settings
from tests.fakes.fleet import EAST, SERVICE, Fleet, service
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)

EACH = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
ALL = holder(
    "made",
    config("all", 'names: "{{ range .Resources }}{{ .metadata.name }} {{ end }}"'),
    annotations=INSTANTIATE,
)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster in which two Services match."""
    kube = fleet.register("east", env="production")
    for name in ("one", "two"):
        fleet.write("east", service(name))
    return kube


def uids(kube: FakeKube) -> dict[str, str]:
    found = (each["metadata"] for each in kube.objects(CONFIG))
    return {each["name"]: each["uid"] for each in found}


def removed(kube: FakeKube) -> list[str]:
    return [call.name for call in kube.calls if call.verb == "remove"]


@pytest.mark.parametrize(("one", "contents"), [("true", EACH), ("false", ALL)])
def test_a_source_that_is_renamed_with_its_trigger_keeps_the_objects(
    fleet: Fleet, east: FakeKube, one: str, contents: str
) -> None:
    """The new source counts as matching what the old one did until it has been evaluated."""
    fleet.deploy(join(source(), trigger(one=one), contents))
    before = uids(east)
    assert before

    fleet.apply(join(source(name="seen"), trigger(one=one, origin="seen")))
    fleet.declare.delete([("EventSource", "", "watched")])
    fleet.drain("deploy", "apply")
    fleet.pump()

    assert uids(east) == before
    assert removed(east) == []


def test_a_renamed_source_that_asks_for_less_withdraws_the_rest_once_evaluated(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its evaluation withdraws only the objects that the new source does not match."""
    labelled = service("three")
    labelled["metadata"]["labels"] = {"keep": "yes"}
    fleet.apply(join(source(), trigger(), EACH))
    fleet.write("east", labelled)
    fleet.pump()
    before = uids(east)
    assert len(before) == 3

    narrow = source(name="seen", more=", labelFilters: [{key: keep, operation: Has}]")
    fleet.apply(join(narrow, trigger(origin="seen")))
    fleet.drain("deploy", "apply")
    assert uids(east) == before

    fleet.pump()
    assert uids(east) == {"for-three": before["for-three"]}


def test_a_source_in_force_already_is_given_no_matches_of_another(
    fleet: Fleet, east: FakeKube
) -> None:
    """The matches of a source in force are known: a trigger that joins it changes nothing."""
    none = source(name="none", more=", labelFilters: [{key: absent, operation: Has}]")
    fleet.apply(join(source(), trigger(), EACH))
    fleet.deploy(join(none, trigger("other", origin="none", ref="made")))

    fleet.apply(trigger(origin="none"))

    assert fleet.records.matches.count(EAST, "none") == 0
    assert uids(east)


def test_a_renamed_source_of_another_account_is_given_no_matches(
    fleet: Fleet, east: FakeKube
) -> None:
    """A source with other rights shows nothing that its own account has not been found to see."""
    place = "projectsveltos.io/serviceaccount"
    account = f"labels: {{{place}-namespace: team, {place}-name: reader}}"
    tenant = source(name="seen").replace("{name: seen}", f"{{name: seen, {account}}}")
    fleet.deploy(join(source(), trigger(), EACH))

    fleet.apply(join(tenant, trigger(origin="seen")))

    assert fleet.records.matches.count(EAST, "seen") == 0
    assert uids(east)


def test_a_match_of_a_renamed_source_ends_with_its_object(fleet: Fleet, east: FakeKube) -> None:
    """An object that goes during the rename takes its add-on along: the match is found again."""
    fleet.deploy(join(source(), trigger(), EACH))
    fleet.apply(join(source(name="seen"), trigger(origin="seen")))
    east.drop(*ObjectKey(SERVICE, "default", "one"))
    fleet.pump()

    assert uids(east).keys() == {"for-two"}
    assert [each.key.name for each in fleet.records.matches.of(EAST)] == ["two"]


@pytest.mark.parametrize(("one", "contents"), [("true", EACH), ("false", ALL)])
def test_a_renamed_trigger_passes_its_objects_on(
    fleet: Fleet, east: FakeKube, one: str, contents: str
) -> None:
    """The trigger that was applied before the old one was deleted gets the objects as they are."""
    fleet.deploy(join(source(), trigger(one=one), contents))
    before = uids(east)

    fleet.deploy(trigger("called", one=one, ref="made"))
    fleet.delete("EventTrigger", "made")

    assert uids(east) == before
    assert removed(east) == []
    assert {each.trigger for each in fleet.records.outcomes.of(EAST)} == {"called"}
    assert {each.phase for each in fleet.records.outcomes.of(EAST)} == {"Provisioned"}
    fleet.delete("EventTrigger", "called")
    assert uids(east) == {}
    assert list(fleet.records.owners.of(EAST)) == []


def test_an_object_that_no_profile_desires_is_removed_by_the_profile_that_waited_for_it(
    fleet: Fleet, east: FakeKube
) -> None:
    """A profile that waited for an object and has dropped it removes it once it is handed over."""
    fleet.deploy(join(profile(name="first"), holder("first", config("shared"))))
    fleet.deploy(join(profile(name="second"), holder("second", config("shared"))))
    fleet.deploy(holder("second", config("another")))

    fleet.delete("ClusterProfile", "first")

    assert uids(east).keys() == {"another"}
    assert {str(key) for key, _ in fleet.records.owners.of(EAST)} == {"/ConfigMap/default/another"}


def test_an_object_that_moves_between_two_profiles_keeps_its_uid(
    fleet: Fleet, east: FakeKube
) -> None:
    """An object that one profile drops and another waits for changes its owner, with new fields."""
    fleet.apply(join(profile(name="first"), holder("first", config("shared"), config("own"))))
    fleet.deploy(join(profile(name="second"), holder("second", config("shared", "by: second"))))
    before = uids(east)

    fleet.deploy(holder("first", config("own")))

    assert uids(east) == before
    shared = next(each for each in east.objects(CONFIG) if each["metadata"]["name"] == "shared")
    assert shared["data"] == {"by": "second"}
    assert shared["metadata"]["annotations"]["projectsveltos.io/owner-name"] == "second"
    assert {each.phase for each in fleet.records.outcomes.of(EAST)} == {"Provisioned"}


def guarded(folder: Path) -> Fleet:
    """Return an installation in which four of eight add-ons are too much to remove at once."""
    fleet = Fleet(folder, Settings(hold_from=8, hold_share=0.25))
    fleet.register("east", env="production")
    for number in range(8):
        fleet.write("east", service(f"number-{number}"))
    fleet.deploy(join(source(), trigger(), EACH))
    return fleet


def test_a_trigger_that_is_renamed_is_not_held_by_the_deletion_guard(tmp_path: Path) -> None:
    """Objects that change their owner are not removed, however many; all others are held."""
    fleet = guarded(tmp_path)
    kube = fleet.access.clusters[EAST]
    before = uids(kube)
    fleet.deploy(trigger("called", ref="made"))
    fleet.declare.delete([("EventTrigger", "", "made")])
    assert not fleet.declare.held
    fleet.pump()
    assert uids(kube) == before
    assert removed(kube) == []

    fleet.declare.delete([("EventTrigger", "", "called")])
    assert [each.trigger for each in fleet.declare.held] == ["called"]
    fleet.close()


def test_a_source_that_is_renamed_is_not_held_by_the_deletion_guard(tmp_path: Path) -> None:
    """A trigger that names another source in its place declares the same as before."""
    fleet = guarded(tmp_path)
    kube = fleet.access.clusters[EAST]
    before = uids(kube)
    fleet.apply(join(source(name="seen"), trigger(origin="seen")))
    assert not fleet.declare.held
    fleet.declare.delete([("EventSource", "", "watched")])
    assert not fleet.declare.held
    fleet.pump()

    assert uids(kube) == before
    fleet.close()
