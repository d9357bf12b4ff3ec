"""What is held when too much of a report ends at once, and how it is let go."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.events.deletion_guard import released
from bellhop.settings import Settings
from bellhop.state.messages import CheckDeletionGuard, Evaluate, Instantiate, Resync
from bellhop.state.record import HeldDeletion
from tests.fakes.declared import DECLARED, HEARD, TOLD, TOLD_TEXT
from tests.fakes.fleet import SERVICE, Fleet, cloud_event, service
from tests.fakes.kube import FakeKube

POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
CONFIG = GVK("", "v1", "ConfigMap")
SOURCE = "services"

GUARDED = Settings(hold_from=8, hold_share=0.25)
"""Of eight objects two may end at once."""

SELECTING = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: services}}
spec:
  collectResources: true
  resourceSelectors:
  - {{group: "", version: v1, kind: {kind},
      labelFilters: [{{key: ring, operation: Equal, value: {value}}}]}}
"""

EACH = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: each}
spec:
  eventSourceName: services
  oneForEvent: true
  sourceClusterSelector: {matchLabels: {env: production}}
  policyRefs: [{kind: ConfigMap, namespace: default, name: each}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  {name: each, namespace: default, annotations: {projectsveltos.io/instantiate: ok}}
data:
  policy: |
    apiVersion: networking.k8s.io/v1
    kind: NetworkPolicy
    metadata: {name: "{{ .Resource.metadata.name }}", namespace: default}
    spec: {podSelector: {}}
"""

ALL = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: all}
spec:
  eventSourceName: services
  sourceClusterSelector: {matchLabels: {env: production}}
  policyRefs: [{kind: ConfigMap, namespace: default, name: all}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  {name: all, namespace: default, annotations: {projectsveltos.io/instantiate: ok}}
data:
  names: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: names, namespace: default}
    data:
      names: "{{ range .Resources }}{{ .metadata.name }} {{ end }}"
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Open an installation that holds what ends of eight objects and more."""
    one = Fleet(tmp_path, GUARDED)
    yield one
    one.close()


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster in which ten Services get a policy each."""
    return began(fleet, 10)


def began(fleet: Fleet, count: int) -> FakeKube:
    kube = fleet.register("east", env="production")
    fleet.apply(selecting(), EACH)
    for number in range(count):
        kube.put(ringing(number))
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.pump()
    assert policies(kube) == sorted(names(range(count)))
    return kube


def selecting(value: str = '"yes"', kind: str = "Service") -> str:
    return SELECTING.format(value=value, kind=kind)


def ringing(number: int, **more: Any) -> dict[str, Any]:
    manifest = service(f"s{number}")
    manifest["metadata"]["labels"] = {"ring": "yes", **more}
    return manifest


def drop(fleet: Fleet, east: FakeKube, numbers: Iterator[int] | range) -> None:
    for number in numbers:
        fleet.drop("east", east.get(SERVICE, "default", f"s{number}") or {})
        fleet.pump()


def names(numbers: range) -> list[str]:
    return [f"s{number}" for number in numbers]


def policies(kube: FakeKube) -> list[str]:
    return [each["metadata"]["name"] for each in kube.objects(POLICY)]


def listed(kube: FakeKube) -> str:
    (found,) = (each for each in kube.objects(CONFIG) if each["metadata"]["name"] == "names")
    return str(found["data"]["names"]).strip()


def later(fleet: Fleet, windows: int = 1) -> None:
    for _ in range(windows):
        fleet.clock.advance(fleet.settings.hold_window + timedelta(seconds=1))
        fleet.pump()


def hold(fleet: Fleet) -> HeldDeletion | None:
    kept = fleet.records.holds.get("fleet/east", SOURCE)
    return kept.value if kept else None


def held(fleet: Fleet) -> list[str]:
    return [each.key.name for each in fleet.records.holds.staying("fleet/east", SOURCE)]


def release(fleet: Fleet) -> None:
    kept = fleet.records.holds.get("fleet/east", SOURCE)
    assert kept
    free = released(kept.value, fleet.clock.now(), fleet.settings.hold_window)
    fleet.records.holds.put(free, expect=kept.token)
    fleet.publisher.publish([CheckDeletionGuard("fleet/east", SOURCE)])
    fleet.pump()


def test_withdraws_a_few_at_once(fleet: Fleet, east: FakeKube) -> None:
    """What is never too much of any report that counts goes without waiting."""
    drop(fleet, east, range(2))

    assert policies(east) == names(range(2, 10))
    assert hold(fleet) is None


def test_lets_go_later_what_was_not_too_much(tmp_path: Path) -> None:
    """What ends beyond those few waits until it is known how much it was; the share may go."""
    fleet = Fleet(tmp_path, replace(GUARDED, hold_share=0.25, hold_from=4))
    east = began(fleet, 8)
    drop(fleet, east, range(2))
    assert policies(east) == names(range(1, 8))

    later(fleet, 3)
    assert policies(east) == names(range(2, 8))
    assert hold(fleet) is None
    assert held(fleet) == []
    fleet.close()


def test_holds_what_ends_in_rings(fleet: Fleet, east: FakeKube) -> None:
    """More than the share that rings at once stays, however long, and is told once."""
    drop(fleet, east, range(6))
    later(fleet, 20)

    assert policies(east) == names(range(2, 10))
    assert held(fleet) == names(range(2, 6))
    found = hold(fleet)
    assert found
    assert (found.cause, found.of, found.gone) == ("rings", 10, 2)
    fleet.publisher.publish([CheckDeletionGuard("fleet/east", SOURCE)])
    fleet.pump()
    assert held(fleet) == names(range(2, 6))
    assert [each.what for each in fleet.ledger()].count("held") == 1
    assert fleet.output.getvalue().count("Held a withdrawal") == 1


def test_holds_what_a_sweep_finds_gone(fleet: Fleet, east: FakeKube) -> None:
    """Of what a sweep finds gone no more than a few are withdrawn, and the hold says so."""
    for number in range(6):
        east.drop(SERVICE, "default", f"s{number}")
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.pump()
    later(fleet, 3)

    assert len(policies(east)) == 8
    found = hold(fleet)
    assert found
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
    fleet.apply(typo)
    fleet.pump()
    later(fleet, 3)
    assert len(policies(east)) >= 8
    found = hold(fleet)
    assert found
    assert found.cause == "declaration"
    assert found.held_at

    fleet.apply(selecting())
    fleet.pump()
    assert policies(east) == names(range(10))
    assert held(fleet) == []
    assert hold(fleet) is None


def test_a_source_that_is_mended_after_a_death_has_its_matches_back(
    fleet: Fleet, east: FakeKube
) -> None:
    """Whoever dies after a match has ended, and before its object is forgotten, is made good."""
    keep = fleet.records.observations.delete

    def die(*_: Any) -> bool:
        fleet.records.observations.delete = keep  # type: ignore[method-assign]
        raise SystemExit(9)

    fleet.records.observations.delete = die  # type: ignore[method-assign]
    fleet.apply(selecting(kind="Secret"))
    with pytest.raises(SystemExit):
        fleet.pump()
    assert len(list(fleet.records.matches.of("fleet/east"))) == 9
    fleet.queues["sweep"].release()
    fleet.apply(selecting())
    fleet.pump()

    assert len(list(fleet.records.matches.of("fleet/east"))) == 10
    assert policies(east) == names(range(10))
    assert held(fleet) == []


def test_goes_on_with_new_matches_while_it_holds(fleet: Fleet, east: FakeKube) -> None:
    """What comes and what changes is applied as ever; what ends there is held, too."""
    drop(fleet, east, range(6))
    later(fleet, 3)

    fleet.write("east", ringing(20))
    fleet.pump()
    assert "s20" in policies(east)

    later(fleet, 3)
    drop(fleet, east, range(20, 21))
    later(fleet, 3)
    assert "s20" in policies(east)
    assert held(fleet) == ["s2", "s20", *names(range(3, 6))]


def test_a_match_that_comes_back_is_held_no_more(fleet: Fleet, east: FakeKube) -> None:
    """What matches again leaves the hold, and with the last one the hold ends."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    for number in range(2, 5):
        fleet.write("east", ringing(number))
        fleet.pump()
    assert held(fleet) == ["s5"]
    assert hold(fleet)

    fleet.write("east", ringing(5))
    fleet.pump()
    assert hold(fleet) is None
    assert policies(east) == names(range(2, 10))

    later(fleet)
    drop(fleet, east, range(5, 6))
    assert policies(east) == ["s2", "s3", "s4", *names(range(6, 10))]


def test_release_lets_go_what_is_held_now_and_no_more(fleet: Fleet, east: FakeKube) -> None:
    """What is released is withdrawn; what ends after that begins to be counted anew."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    release(fleet)
    assert policies(east) == names(range(6, 10))
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
    free = released(kept.value, fleet.clock.now(), fleet.settings.hold_window)
    fleet.records.holds.put(free, expect=kept.token)
    drop(fleet, east, range(6, 7))
    fleet.publisher.publish([CheckDeletionGuard("fleet/east", SOURCE)])
    fleet.pump()

    assert held(fleet) == ["s6"]
    assert "s6" in policies(east)
    found = hold(fleet)
    assert found
    assert found.held_at is None


def test_a_profile_for_all_is_made_of_what_is_held_too(fleet: Fleet, east: FakeKube) -> None:
    """New objects come into it while others are held and gone, in whatever process; for weeks."""
    fleet.apply(ALL)
    fleet.pump()
    everything = " ".join(names(range(10)))
    assert listed(east) == everything

    drop(fleet, east, range(6))
    later(fleet, 3)
    assert listed(east) == " ".join(names(range(2, 10)))
    fleet.reread()
    fleet.write("east", ringing(10))
    fleet.pump()
    assert listed(east) == " ".join(["s10", *names(range(2, 10))])

    # Longer than a tombstone stays.
    fleet.clock.advance(timedelta(days=8))
    fleet.reread()
    fleet.write("east", ringing(11))
    fleet.pump()
    assert listed(east) == " ".join(["s10", "s11", *names(range(2, 10))])

    release(fleet)
    assert listed(east) == " ".join(["s10", "s11", *names(range(6, 10))])


def test_a_profile_is_made_anew_of_an_object_that_is_held(fleet: Fleet, east: FakeKube) -> None:
    """A trigger that is written anew is heeded for what is held and gone, as it was last."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    fleet.reread()
    fleet.apply(EACH.replace("namespace: default}\n    spec", "namespace: other}\n    spec"))
    fleet.pump()

    assert policies(east) == names(range(2, 10))
    assert {each["metadata"]["namespace"] for each in east.objects(POLICY)} == {"other"}


def test_a_profile_for_all_waits_for_nobody_who_judges(fleet: Fleet, east: FakeKube) -> None:
    """What is gone and not judged yet is in it still: it may be about to be held."""
    fleet.apply(ALL)
    fleet.pump()
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


def test_a_profile_for_all_stays_where_nobody_knows_what_is_held(
    fleet: Fleet, east: FakeKube
) -> None:
    """Of what ended longer ago than a tombstone stays nothing can be made, so all of it waits."""
    fleet.apply(ALL)
    fleet.pump()
    for number in range(6):
        fleet.drop("east", east.get(SERVICE, "default", f"s{number}") or {})
    fleet.clock.advance(timedelta(days=8))
    fleet.reread()
    fleet.pump()
    assert held(fleet) == names(range(2, 6))
    later(fleet, 6)
    before = listed(east)

    fleet.write("east", ringing(10))
    fleet.pump()
    assert "s10" in policies(east)
    assert listed(east) == before
    release(fleet)
    later(fleet, 6)
    assert listed(east) == " ".join(["s10", *names(range(6, 10))])


def test_what_another_kind_in_a_source_ends_is_still_made_anew(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its objects are forgotten with the kind, and what they were like is kept with the hold."""
    fleet.apply(ALL, selecting(kind="Secret"))
    fleet.pump()
    later(fleet, 3)
    kept = listed(east).split()
    assert len(kept) >= 8
    assert not fleet.records.observations.get("fleet/east", ObjectKey(SERVICE, "default", "s9"))

    fleet.reread()
    fleet.apply(ALL.replace("{{ .metadata.name }}", "a-{{ .metadata.name }}"))
    fleet.pump()
    assert listed(east).split() == [f"a-{each}" for each in kept]


def test_a_trigger_that_is_deleted_takes_what_is_held_along(fleet: Fleet, east: FakeKube) -> None:
    """Once its deletion is released nothing of it stays, whatever its source holds."""
    drop(fleet, east, range(6))
    later(fleet, 3)
    fleet.declare.delete([("EventTrigger", "", "each")])
    fleet.pump()
    assert policies(east) == names(range(2, 10))

    fleet.release()
    fleet.pump()
    assert policies(east) == []
    fleet.publisher.publish([Resync("fleet/east", full=True)])
    fleet.pump()
    assert hold(fleet) is None
    assert held(fleet) == []


def test_counts_an_object_once_however_often_it_is_told_of(fleet: Fleet, east: FakeKube) -> None:
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
def test_is_switched_off_by_no_share_and_by_all_of_it(tmp_path: Path, share: float) -> None:
    """Nothing is held, and nothing is counted, where no share is too much."""
    fleet = Fleet(tmp_path, replace(GUARDED, hold_share=share))
    east = began(fleet, 10)
    drop(fleet, east, range(9))

    assert policies(east) == ["s9"]
    assert fleet.records.holds.ended("fleet/east", SOURCE, most=10) == 0
    fleet.close()


def test_holds_nothing_of_a_small_report(fleet: Fleet) -> None:
    """Where fewer objects match than the guard asks for, each goes at once."""
    east = began(fleet, 7)
    drop(fleet, east, range(7))

    assert policies(east) == []


def test_does_not_wait_where_a_few_end_all_the_time(tmp_path: Path) -> None:
    """Little of a report that ends in each window goes with the next one, and is never held."""
    fleet = Fleet(tmp_path, replace(GUARDED, hold_share=0.5, hold_from=4))
    east = began(fleet, 30)
    for begin in (0, 3, 6):
        drop(fleet, east, range(begin, begin + 3))
        for number in range(begin, begin + 3):
            fleet.write("east", ringing(100 + number))
        fleet.pump()
        assert len(policies(east)) == 31
        later(fleet)
        assert len(policies(east)) == 30
    assert hold(fleet) is None
    fleet.close()


def test_waits_for_the_rest_of_what_ends_slowly(tmp_path: Path) -> None:
    """What a declaration ends is not let go while more of it ends, though it is not too much."""
    fleet = Fleet(tmp_path, replace(GUARDED, hold_share=0.5, hold_from=4))
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
    assert policies(east) == names(range(2, 10))
    fleet.close()


def test_holds_no_cloud_events(fleet: Fleet) -> None:
    """What events take away themselves goes, however much of it at once."""
    kube = fleet.register("east", env="production")
    fleet.apply(*(DECLARED[key][0] for key in (HEARD, TOLD, TOLD_TEXT)))
    fleet.pump()
    for what, wanted in (("built", 10), ("removed", 0)):
        fleet.clock.advance(timedelta(minutes=1))
        time = fleet.clock.now().isoformat()
        told = (cloud_event(f"s{n}", type=what, time=time, data=n) for n in range(10))
        assert fleet.tell("east", *told).status < 300
        fleet.pump()
        assert len(kube.objects(CONFIG)) == wanted
    assert list(fleet.records.holds.all()) == []


def test_a_death_before_it_is_noted_is_made_good(fleet: Fleet, east: FakeKube) -> None:
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
    """An object that ends costs as many operations and rows in a report five times as large.

    It takes seconds: 240 objects are evaluated and deployed before anything is counted.
    """
    costs = []
    for count in (40, 200):
        fleet = Fleet(tmp_path / str(count), GUARDED)
        east = began(fleet, count)
        fleet.store.counts.clear()
        drop(fleet, east, range(4))
        costs.append(dict(fleet.store.counts))
        assert held(fleet) == ["s2", "s3"]
        fleet.close()

    assert costs[0] == costs[1]
