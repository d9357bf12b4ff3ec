"""Renames of sources, triggers and profiles: their objects stay the same objects."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.settings import Settings
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.kube import FakeKube
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

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"
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


def drain(fleet: Fleet, *inboxes: str) -> None:
    """Work until nothing is due in some inboxes, as if all others were slow."""
    while worked := [fleet.queues[name].receive(1, wait=timedelta(0)) for name in inboxes]:
        for name, deliveries in zip(inboxes, worked, strict=True):
            fleet.work(name, deliveries)
        if not any(worked):
            return


def removed(kube: FakeKube) -> list[str]:
    return [call.name for call in kube.calls if call.verb == "remove"]


@pytest.mark.parametrize(("one", "contents"), [("true", EACH), ("false", ALL)])
def test_a_source_that_is_renamed_with_its_trigger_keeps_the_objects(
    fleet: Fleet, east: FakeKube, one: str, contents: str
) -> None:
    """The new source counts as matching what the old one did until it has been evaluated."""
    fleet.apply(join(source(), trigger(one=one), contents))
    fleet.pump()
    before = uids(east)
    assert before

    fleet.apply(join(source(name="seen"), trigger(one=one, origin="seen")))
    fleet.declare.delete([("EventSource", "", "watched")])
    drain(fleet, "deploy", "apply")
    fleet.pump()

    assert uids(east) == before
    assert removed(east) == []


def test_a_renamed_source_that_asks_for_less_withdraws_the_rest_once_evaluated(
    fleet: Fleet, east: FakeKube
) -> None:
    """What the new source does not match is withdrawn by its evaluation, and nothing else is."""
    labelled = service("three")
    labelled["metadata"]["labels"] = {"keep": "yes"}
    fleet.apply(join(source(), trigger(), EACH))
    fleet.write("east", labelled)
    fleet.pump()
    before = uids(east)
    assert len(before) == 3

    narrow = source(name="seen", more=", labelFilters: [{key: keep, operation: Has}]")
    fleet.apply(join(narrow, trigger(origin="seen")))
    drain(fleet, "deploy", "apply")
    assert uids(east) == before

    fleet.pump()
    assert uids(east) == {"for-three": before["for-three"]}


def test_a_source_in_force_already_is_given_no_matches_of_another(
    fleet: Fleet, east: FakeKube
) -> None:
    """What a source that is in force matches is known: a trigger that joins it changes nothing."""
    none = source(name="none", more=", labelFilters: [{key: absent, operation: Has}]")
    fleet.apply(join(source(), trigger(), EACH))
    fleet.apply(join(none, trigger("other", origin="none", ref="made")))
    fleet.pump()

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
    fleet.apply(join(source(), trigger(), EACH))
    fleet.pump()

    fleet.apply(join(tenant, trigger(origin="seen")))

    assert fleet.records.matches.count(EAST, "seen") == 0
    assert uids(east)


def test_a_renamed_source_of_an_object_that_is_gone_ends_with_it(
    fleet: Fleet, east: FakeKube
) -> None:
    """An object that goes during the rename takes its add-on along: the match is found again."""
    fleet.apply(join(source(), trigger(), EACH))
    fleet.pump()
    fleet.apply(join(source(name="seen"), trigger(origin="seen")))
    east.drop(*ObjectKey(SERVICE, "default", "one"))
    fleet.pump()

    assert uids(east).keys() == {"for-two"}
    assert [each.key.name for each in fleet.records.matches.of(EAST)] == ["two"]


@pytest.mark.parametrize(("one", "contents"), [("true", EACH), ("false", ALL)])
def test_a_trigger_that_is_renamed_hands_its_objects_over(
    fleet: Fleet, east: FakeKube, one: str, contents: str
) -> None:
    """The trigger that was applied before the old one was deleted gets the objects as they are."""
    fleet.apply(join(source(), trigger(one=one), contents))
    fleet.pump()
    before = uids(east)

    fleet.apply(trigger("called", one=one, ref="made"))
    fleet.pump()
    fleet.declare.delete([("EventTrigger", "", "made")])
    fleet.pump()

    assert uids(east) == before
    assert removed(east) == []
    assert {each.trigger for each in fleet.records.outcomes.of(EAST)} == {"called"}
    assert {each.phase for each in fleet.records.outcomes.of(EAST)} == {"Provisioned"}
    fleet.declare.delete([("EventTrigger", "", "called")])
    fleet.pump()
    assert uids(east) == {}
    assert list(fleet.records.owners.of(EAST)) == []


def test_an_object_that_nobody_wants_any_more_is_removed_by_who_waited_for_it(
    fleet: Fleet, east: FakeKube
) -> None:
    """A profile that waited for an object and wants others by now removes what it was handed."""
    fleet.apply(join(profile(name="first"), holder("first", config("shared"))))
    fleet.pump()
    fleet.apply(join(profile(name="second"), holder("second", config("shared"))))
    fleet.pump()
    fleet.apply(holder("second", config("another")))
    fleet.pump()

    fleet.declare.delete([("ClusterProfile", "", "first")])
    fleet.pump()

    assert uids(east).keys() == {"another"}
    assert {str(key) for key, _ in fleet.records.owners.of(EAST)} == {"/ConfigMap/default/another"}


def test_an_object_that_moves_between_two_profiles_keeps_its_uid(
    fleet: Fleet, east: FakeKube
) -> None:
    """What one profile holds no more and another one waits for is handed over, with new fields."""
    fleet.apply(join(profile(name="first"), holder("first", config("shared"), config("own"))))
    fleet.apply(join(profile(name="second"), holder("second", config("shared", "by: second"))))
    fleet.pump()
    before = uids(east)

    fleet.apply(holder("first", config("own")))
    fleet.pump()

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
    fleet.apply(join(source(), trigger(), EACH))
    fleet.pump()
    return fleet


def test_a_trigger_that_is_renamed_is_not_held_by_the_deletion_guard(tmp_path: Path) -> None:
    """What is handed over is not removed, however much it is; what nobody waits for is held."""
    fleet = guarded(tmp_path)
    kube = fleet.access.clusters[EAST]
    before = uids(kube)
    fleet.apply(trigger("called", ref="made"))
    fleet.pump()
    fleet.declare.delete([("EventTrigger", "", "made")])
    assert not fleet.declare.held
    fleet.pump()
    assert uids(kube) == before
    assert removed(kube) == []

    fleet.declare.delete([("EventTrigger", "", "called")])
    assert [each.trigger for each in fleet.declare.held] == ["called"]
    fleet.close()


def test_a_source_that_is_renamed_is_not_held_by_the_deletion_guard(tmp_path: Path) -> None:
    """A trigger that names another source in its place wants what it wanted before."""
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
