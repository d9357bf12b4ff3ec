"""Matches held when too many of a report end at once, and their release."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.events.deletion_guard import release_batch
from bellhop.settings import Settings
from bellhop.state.match import HeldDeletion
from bellhop.state.messages import CheckDeletionGuard, Evaluate, Instantiate
from tests.fakes.declared import DECLARED, HEARD, TOLD, TOLD_TEXT
from tests.fakes.fleet import POLICY, SERVICE, Fleet, OpenFleet, cloud_event, service
from tests.fakes.hooks import failing
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, source, trigger

SOURCE = "services"

GUARDED = Settings(hold_from=8, hold_share=0.25)
"""Of eight objects two may end at once."""

EACH = join(
    trigger("each", origin=SOURCE),
    holder(
        "each",
        """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: "{{ .Resource.metadata.name }}", namespace: default}
spec: {podSelector: {}}
""",
        annotations=INSTANTIATE,
    ),
)
NAMES = 'names: "{{ range .Resources }}{{ .metadata.name }} {{ end }}"'
ALL = join(
    trigger("all", origin=SOURCE, one="false"),
    holder("all", config("names", NAMES), annotations=INSTANTIATE),
)


@pytest.fixture
def fleet(open_fleet: OpenFleet) -> Fleet:
    """Open an installation that holds what ends of eight objects and more."""
    return open_fleet(GUARDED)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster in which ten Services get a policy each."""
    return began(fleet, 10)


def began(fleet: Fleet, count: int) -> FakeKube:
    kube = fleet.register("east", env="production")
    fleet.apply(selecting(), EACH)
    for number in range(count):
        kube.put(numbered_service(number))
    fleet.resync()
    assert kube.names(POLICY) == sorted(names(range(count)))
    return kube


def selecting(value: str = '"yes"', kind: str = "Service") -> str:
    labelled = f", labelFilters: [{{key: ring, operation: Equal, value: {value}}}]"
    return source(kind, name=SOURCE, more=labelled)


def numbered_service(number: int, **more: Any) -> dict[str, Any]:
    manifest = service(f"s{number}")
    manifest["metadata"]["labels"] = {"ring": "yes", **more}
    return manifest


def drop(fleet: Fleet, east: FakeKube, numbers: Iterator[int] | range) -> None:
    for number in numbers:
        fleet.drop("east", east.get(SERVICE, "default", f"s{number}") or {})
        fleet.pump()


def names(numbers: range) -> list[str]:
    return [f"s{number}" for number in numbers]


def listed(kube: FakeKube) -> str:
    return kube.data()["names"]["names"].strip()


def later(fleet: Fleet, windows: int = 1) -> None:
    for _ in range(windows):
        fleet.wait(fleet.settings.hold_window + timedelta(seconds=1))


def hold(fleet: Fleet) -> HeldDeletion | None:
    return value_of(fleet.records.holds.get("fleet/east", SOURCE))


def present_hold(fleet: Fleet) -> HeldDeletion:
    found = hold(fleet)
    assert found
    return found


def held(fleet: Fleet) -> list[str]:
    return [each.key.name for each in fleet.records.holds.staying("fleet/east", SOURCE)]


def release(fleet: Fleet) -> None:
    kept = fleet.records.holds.get("fleet/east", SOURCE)
    assert kept
    free = release_batch(kept.value, fleet.clock.now(), fleet.settings.hold_window)
    fleet.records.holds.put(free, expect=kept.token)
    fleet.publisher.publish([CheckDeletionGuard("fleet/east", SOURCE)])
    fleet.pump()


def test_withdraws_a_few_at_once(fleet: Fleet, east: FakeKube) -> None:
    """A number that is never too much of any guarded report is withdrawn without waiting."""
    drop(fleet, east, range(2))

    assert east.names(POLICY) == names(range(2, 10))
    assert hold(fleet) is None


def test_withdraws_later_what_was_not_too_much(open_fleet: OpenFleet) -> None:
    """Matches beyond the few first wait until their number is known; a share may end."""
    fleet = open_fleet(replace(GUARDED, hold_share=0.25, hold_from=4))
    east = began(fleet, 8)
    drop(fleet, east, range(2))
    assert east.names(POLICY) == names(range(1, 8))

    later(fleet, 3)
    assert east.names(POLICY) == names(range(2, 8))
    assert hold(fleet) is None
    assert held(fleet) == []


def test_holds_what_events_end(fleet: Fleet, east: FakeKube) -> None:
    """More than the share that ends at once stays, however long, and is shown once."""
    drop(fleet, east, range(6))
    later(fleet, 20)

    assert east.names(POLICY) == names(range(2, 10))
    assert held(fleet) == names(range(2, 6))
    found = present_hold(fleet)
    assert (found.cause, found.of, found.gone) == ("rings", 10, 2)
    fleet.publisher.publish([CheckDeletionGuard("fleet/east", SOURCE)])
    fleet.pump()
    assert held(fleet) == names(range(2, 6))
    assert [each.what for each in fleet.ledger()].count("held") == 1
    assert fleet.output.getvalue().count("Held a withdrawal") == 1


def test_holds_what_a_resync_finds_deleted(fleet: Fleet, east: FakeKube) -> None:
    """No more than a few of the deleted objects are withdrawn, and the hold counts them."""
    for number in range(6):
        east.drop(SERVICE, "default", f"s{number}")
    fleet.resync()
    later(fleet, 3)

    assert len(east.names(POLICY)) == 8
    found = present_hold(fleet)
    assert (found.cause, len(held(fleet))) == ("sweep", 4)


@pytest.mark.parametrize(
    "typo",
    [
        pytest.param(selecting("'no'"), id="a value that no object has"),
        pytest.param(selecting(kind="Secret"), id="another kind"),
    ],
)
def test_holds_what_a_typo_in_a_source_ends(fleet: Fleet, east: FakeKube, typo: str) -> None:
    """A selector that selects nothing takes no more than a few, and mending it ends the hold."""
    fleet.deploy(typo)
    later(fleet, 3)
    assert len(east.names(POLICY)) >= 8
    found = present_hold(fleet)
    assert found.cause == "declaration"
    assert found.held_at

    fleet.deploy(selecting())
    assert east.names(POLICY) == names(range(10))
    assert held(fleet) == []
    assert hold(fleet) is None


def test_a_source_corrected_after_a_death_has_its_matches_again(
    fleet: Fleet, east: FakeKube
) -> None:
    """A death after a match has ended, and before its object is deleted, is corrected."""
    fleet.apply(selecting(kind="Secret"))
    with failing(fleet.records.observations, "delete", SystemExit(9)), pytest.raises(SystemExit):
        fleet.pump()
    assert len(list(fleet.records.matches.of("fleet/east"))) == 9
    fleet.queues["sweep"].release()
    fleet.deploy(selecting())

    assert len(list(fleet.records.matches.of("fleet/east"))) == 10
    assert east.names(POLICY) == names(range(10))
    assert held(fleet) == []


def test_goes_on_with_new_matches_while_it_holds(fleet: Fleet, east: FakeKube) -> None:
    """New and changed matches are applied as usual; matches that end are held, too."""
    drop(fleet, east, range(6))
    later(fleet, 3)

    fleet.write("east", numbered_service(20))
    fleet.pump()
    assert "s20" in east.names(POLICY)

    later(fleet, 3)
    drop(fleet, east, range(20, 21))
    later(fleet, 3)
    assert "s20" in east.names(POLICY)
    assert held(fleet) == ["s2", "s20", *names(range(3, 6))]


def test_an_object_that_matches_again_is_not_held_any_more(fleet: Fleet, east: FakeKube) -> None:
    """It leaves the hold, and with the last one the hold ends."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    for number in range(2, 5):
        fleet.write("east", numbered_service(number))
        fleet.pump()
    assert held(fleet) == ["s5"]
    assert hold(fleet)

    fleet.write("east", numbered_service(5))
    fleet.pump()
    assert hold(fleet) is None
    assert east.names(POLICY) == names(range(2, 10))

    later(fleet)
    drop(fleet, east, range(5, 6))
    assert east.names(POLICY) == ["s2", "s3", "s4", *names(range(6, 10))]


def test_release_withdraws_what_is_held_now_and_no_more(fleet: Fleet, east: FakeKube) -> None:
    """Released matches are withdrawn; later ends are counted from zero."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    release(fleet)
    assert east.names(POLICY) == names(range(6, 10))
    assert hold(fleet) is None
    assert held(fleet) == []
    assert [each.value for each in matches(fleet) if each.value.held] == []


def matches(fleet: Fleet) -> list[Any]:
    keys = [ObjectKey(SERVICE, "default", f"s{number}") for number in range(10)]
    found = (fleet.records.matches.get("fleet/east", SOURCE, key) for key in keys)
    return [each for each in found if each]


def test_what_ends_while_it_is_released_stays(fleet: Fleet, east: FakeKube) -> None:
    """An object that ended after the release was asked for is held under another lot."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    kept = fleet.records.holds.get("fleet/east", SOURCE)
    assert kept
    free = release_batch(kept.value, fleet.clock.now(), fleet.settings.hold_window)
    fleet.records.holds.put(free, expect=kept.token)
    drop(fleet, east, range(6, 7))
    fleet.publisher.publish([CheckDeletionGuard("fleet/east", SOURCE)])
    fleet.pump()

    assert held(fleet) == ["s6"]
    assert "s6" in east.names(POLICY)
    assert present_hold(fleet).held_at is None


def test_a_profile_for_all_objects_has_held_ones_too(fleet: Fleet, east: FakeKube) -> None:
    """It gets new objects while others are held and deleted, in any process, for weeks."""
    fleet.deploy(ALL)
    everything = " ".join(names(range(10)))
    assert listed(east) == everything

    drop(fleet, east, range(6))
    later(fleet, 3)
    assert listed(east) == " ".join(names(range(2, 10)))
    fleet.reread()
    fleet.write("east", numbered_service(10))
    fleet.pump()
    assert listed(east) == " ".join(["s10", *names(range(2, 10))])

    # Longer than a tombstone stays.
    fleet.clock.advance(timedelta(days=8))
    fleet.reread()
    fleet.write("east", numbered_service(11))
    fleet.pump()
    assert listed(east) == " ".join(["s10", "s11", *names(range(2, 10))])

    release(fleet)
    assert listed(east) == " ".join(["s10", "s11", *names(range(6, 10))])


def test_a_profile_is_rendered_again_of_a_held_object(fleet: Fleet, east: FakeKube) -> None:
    """A changed trigger is rendered with held and deleted objects in their last state."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    fleet.reread()
    fleet.deploy(EACH.replace("namespace: default}\n    spec", "namespace: other}\n    spec"))

    assert east.names(POLICY) == names(range(2, 10))
    assert {each["metadata"]["namespace"] for each in east.objects(POLICY)} == {"other"}


def test_a_profile_for_all_objects_does_not_wait_for_evaluations(
    fleet: Fleet, east: FakeKube
) -> None:
    """A deleted object that is not evaluated yet is still in it: it may be about to be held."""
    fleet.deploy(ALL)
    for number in range(6):
        fleet.drop("east", east.get(SERVICE, "default", f"s{number}") or {})
    fleet.publisher.publish([Instantiate("all", "fleet/east")])
    fleet.reread()
    fleet.apply(ALL.replace("range .Resources", "range  .Resources"))
    for inbox in ("deploy", "apply"):
        fleet.work(inbox, fleet.queues[inbox].receive(50, wait=timedelta(0)))

    assert listed(east) == " ".join(names(range(10)))
    fleet.pump()
    assert listed(east) == " ".join(names(range(2, 10)))


def test_a_profile_for_all_objects_stays_if_a_held_one_is_lost(
    fleet: Fleet, east: FakeKube
) -> None:
    """Of what ended longer ago than a tombstone stays nothing can be made, so all of it waits."""
    fleet.deploy(ALL)
    for number in range(6):
        fleet.drop("east", east.get(SERVICE, "default", f"s{number}") or {})
    fleet.clock.advance(timedelta(days=8))
    fleet.reread()
    fleet.pump()
    assert held(fleet) == names(range(2, 6))
    later(fleet, 6)
    before = listed(east)

    fleet.write("east", numbered_service(10))
    fleet.pump()
    assert "s10" in east.names(POLICY)
    assert listed(east) == before
    release(fleet)
    later(fleet, 6)
    assert listed(east) == " ".join(["s10", *names(range(6, 10))])


def test_objects_of_a_dropped_kind_are_still_rendered(fleet: Fleet, east: FakeKube) -> None:
    """Its objects are forgotten with the kind, and what they were like is kept with the hold."""
    fleet.deploy(ALL, selecting(kind="Secret"))
    later(fleet, 3)
    kept = listed(east).split()
    assert len(kept) >= 8
    assert not fleet.records.observations.get("fleet/east", ObjectKey(SERVICE, "default", "s9"))

    fleet.reread()
    fleet.deploy(ALL.replace("{{ .metadata.name }}", "a-{{ .metadata.name }}"))
    assert listed(east).split() == [f"a-{each}" for each in kept]


def test_a_deleted_trigger_withdraws_what_is_held(fleet: Fleet, east: FakeKube) -> None:
    """Once its deletion is released nothing of it stays, whatever its source holds."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    fleet.delete("EventTrigger", "each")
    assert east.names(POLICY) == names(range(2, 10))

    fleet.release()
    fleet.pump()
    assert east.names(POLICY) == []
    fleet.resync(full=True)
    assert hold(fleet) is None
    assert held(fleet) == []


def test_counts_an_object_once_for_any_number_of_events(fleet: Fleet, east: FakeKube) -> None:
    """A message that comes again, at once or much later, ends nothing a second time."""
    drop(fleet, east, range(2))
    again = [Evaluate("fleet/east", f"/v1/Service/default/s{n}") for n in (0, 1, 0, 1)]
    fleet.publisher.publish(again)
    fleet.pump()
    assert fleet.records.holds.ended("fleet/east", SOURCE, most=10) == 2

    drop(fleet, east, range(2, 6))
    later(fleet, 3)
    fleet.publisher.publish([*again, Evaluate("fleet/east", "/v1/Service/default/s3")])
    fleet.pump()
    assert held(fleet) == names(range(2, 6))


@pytest.mark.parametrize("share", [0.0, 1.0, 2.0])
def test_is_switched_off_by_no_share_and_by_all_of_it(open_fleet: OpenFleet, share: float) -> None:
    """Nothing is held, and nothing is counted, where no share is too much."""
    fleet = open_fleet(replace(GUARDED, hold_share=share))
    east = began(fleet, 10)
    drop(fleet, east, range(9))

    assert east.names(POLICY) == ["s9"]
    assert fleet.records.holds.ended("fleet/east", SOURCE, most=10) == 0


def test_holds_nothing_of_a_small_report(fleet: Fleet) -> None:
    """If fewer objects match than the guard requires, each is withdrawn at once."""
    east = began(fleet, 7)
    drop(fleet, east, range(7))

    assert east.names(POLICY) == []


def test_does_not_wait_where_a_few_end_all_the_time(open_fleet: OpenFleet) -> None:
    """Little of a report that ends in each window goes with the next one, and is never held."""
    fleet = open_fleet(replace(GUARDED, hold_share=0.5, hold_from=4))
    east = began(fleet, 30)
    for begin in (0, 3, 6):
        drop(fleet, east, range(begin, begin + 3))
        for number in range(begin, begin + 3):
            fleet.write("east", numbered_service(100 + number))
        fleet.pump()
        assert len(east.names(POLICY)) == 31
        later(fleet)
        assert len(east.names(POLICY)) == 30
    assert hold(fleet) is None


def test_waits_for_the_rest_of_what_ends_slowly(open_fleet: OpenFleet) -> None:
    """Matches that a changed source ends are not withdrawn while more of them end."""
    fleet = open_fleet(replace(GUARDED, hold_share=0.5, hold_from=4))
    east = began(fleet, 10)
    fleet.apply(selecting("'no'"))
    keys = [str(ObjectKey(SERVICE, "default", name)) for name in names(range(10))]
    for key in keys[:3]:
        fleet.stages["evaluate"].handle(Evaluate("fleet/east", key))
    for key in keys[3:]:
        fleet.clock.advance(fleet.settings.hold_window + timedelta(seconds=1))
        fleet.schedule.tick()
        fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))
        fleet.stages["evaluate"].handle(Evaluate("fleet/east", key))
    fleet.pump()
    later(fleet, 3)

    assert held(fleet) == names(range(2, 10))
    assert east.names(POLICY) == names(range(2, 10))


def test_holds_no_cloud_events(fleet: Fleet) -> None:
    """CloudEvents that end by themselves are withdrawn, in any number at once."""
    kube = fleet.register("east", env="production")
    fleet.deploy(*(DECLARED[key][0] for key in (HEARD, TOLD, TOLD_TEXT)))
    for what, expected in (("built", 10), ("removed", 0)):
        fleet.clock.advance(timedelta(minutes=1))
        time = fleet.clock.now().isoformat()
        events = (cloud_event(f"s{n}", type=what, time=time, data=n) for n in range(10))
        assert fleet.tell("east", *events).status < 300
        fleet.pump()
        assert len(kube.objects(CONFIG)) == expected
    assert list(fleet.records.holds.all()) == []


def test_a_death_before_a_hold_is_recorded_is_corrected(fleet: Fleet, east: FakeKube) -> None:
    """A match that says that it is held, and that nothing lists, is listed by who comes next."""
    drop(fleet, east, range(5))
    fleet.records.holds.forget("fleet/east")
    assert held(fleet) == []

    fleet.publisher.publish([Evaluate("fleet/east", "/v1/Service/default/s3")])
    fleet.pump()
    assert held(fleet) == ["s3"]
    assert hold(fleet)


@pytest.mark.rest
def test_costs_the_same_however_much_matches(tmp_path: Path) -> None:
    """An object that ends costs as many operations and rows in a report five times as large."""
    costs = []
    for count in (20, 100):
        fleet = Fleet(tmp_path / str(count), GUARDED)
        east = began(fleet, count)
        fleet.store.counts.clear()
        drop(fleet, east, range(4))
        costs.append(dict(fleet.store.counts))
        assert held(fleet) == ["s2", "s3"]
        fleet.close()

    assert costs[0] == costs[1]
