"""Write contests over an object: corrected at once at first, then after pauses that grow."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from bellhop.deploy.contention import AT_ONCE, LONGEST
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile

WATCHED = "syncMode: ContinuousWithDriftDetection"
SECOND = timedelta(seconds=1)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster in which two objects are watched."""
    kube = fleet.register("east", env="production")
    contents = (config(name, "v: '1'") for name in ("one", "two"))
    fleet.deploy(join(profile(more=WATCHED), holder("own", *contents)))
    kube.calls.clear()
    return kube


def there(kube: FakeKube, name: str = "one") -> dict[str, Any]:
    (found,) = [each for each in kube.objects(CONFIG) if each["metadata"]["name"] == name]
    return found


def value(kube: FakeKube, name: str = "one") -> str:
    return str(there(kube, name)["data"]["v"])


def write(fleet: Fleet, kube: FakeKube, name: str = "one", text: str = "theirs") -> None:
    """Write a field of ours as an operator does, and have it forwarded."""
    changed = there(kube, name)
    changed["data"]["v"] = text
    mark = {"manager": "keen-operator", "operation": "Update", "time": "2026-11-22T10:00:00Z"}
    changed["metadata"]["managedFields"] = [mark]
    fleet.send("east", {"object": kube.put(changed)})
    fleet.pump()


def contest(fleet: Fleet, kube: FakeKube, span: timedelta, step: timedelta = SECOND) -> list[float]:
    """Have an operator overwrite each correction; return the times of the corrections."""
    begun, times = fleet.clock.now(), list[float]()
    while fleet.clock.now() - begun < span:
        if value(kube) == "1":
            write(fleet, kube)
        else:
            fleet.pump()
        if value(kube) == "1":
            times.append((fleet.clock.now() - begun).total_seconds())
        fleet.clock.advance(step)
    return times


def test_pauses_grow_up_to_a_quarter_of_an_hour(fleet: Fleet, east: FakeKube) -> None:
    """Four times at once; then each pause is twice as long as the one before.

    It takes seconds: it plays twelve minutes second by second.
    """
    times = contest(fleet, east, timedelta(minutes=12))

    assert times[:AT_ONCE] == [0, 1, 2, 3]
    gaps = [round(later - sooner) for sooner, later in pairwise(times)]
    assert gaps[AT_ONCE - 1 :] == [10, 20, 40, 80, 160, 320]
    later = contest(fleet, east, timedelta(hours=2), step=LONGEST / 6)
    assert 7 <= len(later) <= 9


def test_the_status_names_the_field_manager(fleet: Fleet, east: FakeKube) -> None:
    """It names the object, the count, and what to do; a correction ends it."""
    for _ in range(AT_ONCE):
        write(fleet, east)
        assert fleet.status_of().phase == "Provisioned"

    write(fleet, east)

    said = fleet.status_of()
    assert (said.phase, said.reason) == ("Failed", "Drift")
    assert said.retry_at == fleet.clock.now() + timedelta(seconds=10)
    assert said.message == (
        "cannot keep ConfigMap 'default/one': field manager 'keen-operator' changes it as often as"
        " it is put back, 4 times in a row; it waits 10 s now; end one of the two, leave the fields"
        " out of the manifest, or annotate it with projectsveltos.io/driftDetectionIgnore"
    )
    fleet.wait(timedelta(seconds=10))
    assert value(east) == "1"
    assert fleet.status_of().phase == "Provisioned"


def test_events_during_a_pause_write_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Each costs one read, and the time of the next correction stays."""
    for _ in range(AT_ONCE + 1):
        write(fleet, east)
    due = fleet.status_of().retry_at
    east.calls.clear()
    written = fleet.store.counts["put"]

    for number in range(20):
        fleet.clock.advance(SECOND / 4)
        write(fleet, east, text=f"theirs-{number}")

    assert fleet.store.counts["put"] == written
    assert not [call for call in east.calls if call.verb == "apply"]
    assert fleet.status_of().retry_at == due


def test_other_objects_are_corrected_at_once_meanwhile(fleet: Fleet, east: FakeKube) -> None:
    """A write contest over one object of a profile concerns only that object."""
    for _ in range(AT_ONCE + 1):
        write(fleet, east)
    assert value(east) == "theirs"

    write(fleet, east, "two")

    assert value(east, "two") == "1"
    assert value(east) == "theirs"


def test_an_occasional_edit_is_no_write_contest(fleet: Fleet, east: FakeKube) -> None:
    """Eleven minutes after a correction the next one is made at once again."""
    for _ in range(3 * AT_ONCE):
        write(fleet, east)
        assert value(east) == "1"
        fleet.clock.advance(timedelta(minutes=11))


def test_who_deletes_it_again_and_again_is_slowed_too(fleet: Fleet, east: FakeKube) -> None:
    """Nobody can say who that is."""
    for _ in range(AT_ONCE + 1):
        fleet.drop("east", there(east))
        fleet.pump()

    names = {each["metadata"]["name"] for each in east.objects(CONFIG)}
    assert names == {"two"}
    assert "somebody unknown changes it" in fleet.status_of().message
    fleet.wait(timedelta(seconds=10))
    assert value(east) == "1"


def test_a_change_of_the_profile_is_applied_at_once(fleet: Fleet, east: FakeKube) -> None:
    """It is applied during a write contest, and counts as no correction."""
    for _ in range(AT_ONCE + 1):
        write(fleet, east)

    fleet.deploy(holder("own", config("one", "v: '2'"), config("two", "v: '1'")))

    assert value(east) == "2"
    held = value_of(fleet.records.inventories.get(EAST, "own")).held
    assert {key.name: each.mended for key, each in held.items()} == {"one": AT_ONCE, "two": 0}


def test_a_write_contest_stores_nothing_that_grows(fleet: Fleet, east: FakeKube) -> None:
    """After an hour there is as much in the store as after a minute, but for the event log."""

    def kept() -> int:
        return sum(1 for each in fleet.store.all() if not each.partition.startswith("ledger"))

    contest(fleet, east, timedelta(minutes=1))
    early = kept()
    contest(fleet, east, timedelta(hours=1), step=timedelta(seconds=30))

    assert kept() <= early + 1


def test_a_resync_does_not_shorten_a_pause(fleet: Fleet, east: FakeKube) -> None:
    """An object that it finds changed waits for the same time."""
    for _ in range(AT_ONCE + 1):
        write(fleet, east)
    east.calls.clear()

    fleet.resync()

    assert value(east) == "theirs"
    assert not [call for call in east.calls if call.verb == "apply"]
