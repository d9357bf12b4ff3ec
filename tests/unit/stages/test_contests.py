"""Two who fight over an object: put back at once at first, then after pauses that grow."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.deploy.contention import AT_ONCE, LONGEST
from bellhop.state.messages import Resync
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"
WATCHED = "syncMode: ContinuousWithDriftDetection"
SECOND = timedelta(seconds=1)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster in which two objects are watched."""
    kube = fleet.register("east", env="production")
    brought = (config(name, "v: '1'") for name in ("one", "two"))
    fleet.apply(join(profile(more=WATCHED), holder("own", *brought)))
    fleet.pump()
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


def fight(fleet: Fleet, kube: FakeKube, span: timedelta, step: timedelta = SECOND) -> list[float]:
    """Have an operator write its way whenever it finds ours; say when it was put back."""
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


def outcome(fleet: Fleet) -> Any:
    return value_of(fleet.records.outcomes.get(EAST, "own"))


def test_pauses_grow_up_to_a_quarter_of_an_hour(fleet: Fleet, east: FakeKube) -> None:
    """Four times at once; then each pause is twice as long as the one before.

    It takes seconds: it plays twelve minutes second by second.
    """
    times = fight(fleet, east, timedelta(minutes=12))

    assert times[:AT_ONCE] == [0, 1, 2, 3]
    gaps = [round(later - sooner) for sooner, later in pairwise(times)]
    assert gaps[AT_ONCE - 1 :] == [10, 20, 40, 80, 160, 320]
    later = fight(fleet, east, timedelta(hours=2), step=LONGEST / 6)
    assert 7 <= len(later) <= 9


def test_it_is_said_who_fights(fleet: Fleet, east: FakeKube) -> None:
    """With the object, how often it was, and what to do; once it is put back all is well."""
    for _ in range(AT_ONCE):
        write(fleet, east)
        assert outcome(fleet).phase == "Provisioned"

    write(fleet, east)

    said = outcome(fleet)
    assert (said.phase, said.reason) == ("Failed", "Drift")
    assert said.retry_at == fleet.clock.now() + timedelta(seconds=10)
    assert said.message == (
        "cannot keep ConfigMap 'default/one': field manager 'keen-operator' changes it as often as"
        " it is put back, 4 times in a row; it waits 10 s now; end one of the two, leave the fields"
        " out of the manifest, or annotate it with projectsveltos.io/driftDetectionIgnore"
    )
    fleet.clock.advance(timedelta(seconds=10))
    fleet.pump()
    assert value(east) == "1"
    assert outcome(fleet).phase == "Provisioned"


def test_rings_while_it_waits_write_nothing(fleet: Fleet, east: FakeKube) -> None:
    """However many there are: a look each, and the time at which it is put back stays."""
    for _ in range(AT_ONCE + 1):
        write(fleet, east)
    due = outcome(fleet).retry_at
    east.calls.clear()
    written = fleet.store.counts["put"]

    for number in range(20):
        fleet.clock.advance(SECOND / 4)
        write(fleet, east, text=f"theirs-{number}")

    assert fleet.store.counts["put"] == written
    assert not [call for call in east.calls if call.verb == "apply"]
    assert outcome(fleet).retry_at == due


def test_others_are_put_back_at_once_meanwhile(fleet: Fleet, east: FakeKube) -> None:
    """A fight over one object of a profile is that object's alone."""
    for _ in range(AT_ONCE + 1):
        write(fleet, east)
    assert value(east) == "theirs"

    write(fleet, east, "two")

    assert value(east, "two") == "1"
    assert value(east) == "theirs"


def test_who_edits_now_and_then_is_no_fighter(fleet: Fleet, east: FakeKube) -> None:
    """Eleven minutes after it was put back it is put back at once again."""
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
    assert "somebody unknown changes it" in outcome(fleet).message
    fleet.clock.advance(timedelta(seconds=10))
    fleet.pump()
    assert value(east) == "1"


def test_what_is_meant_anew_waits_for_nobody(fleet: Fleet, east: FakeKube) -> None:
    """A change of the profile is applied in the midst of a fight, and counts as no blow."""
    for _ in range(AT_ONCE + 1):
        write(fleet, east)

    fleet.apply(holder("own", config("one", "v: '2'"), config("two", "v: '1'")))
    fleet.pump()

    assert value(east) == "2"
    held = value_of(fleet.records.inventories.get(EAST, "own")).held
    assert {key.name: each.mended for key, each in held.items()} == {"one": AT_ONCE, "two": 0}


def test_a_fight_keeps_nothing_that_grows(fleet: Fleet, east: FakeKube) -> None:
    """After an hour there is as much in the store as after a minute, but for the ledger."""

    def kept() -> int:
        return sum(1 for each in fleet.store.all() if not each.partition.startswith("ledger"))

    fight(fleet, east, timedelta(minutes=1))
    early = kept()
    fight(fleet, east, timedelta(hours=1), step=timedelta(seconds=30))

    assert kept() <= early + 1


def test_a_sweep_does_not_hasten_it(fleet: Fleet, east: FakeKube) -> None:
    """What it finds waits for the same time."""
    for _ in range(AT_ONCE + 1):
        write(fleet, east)
    east.calls.clear()

    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()

    assert value(east) == "theirs"
    assert not [call for call in east.calls if call.verb == "apply"]
