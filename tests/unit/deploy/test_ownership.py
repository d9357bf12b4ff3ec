"""Whose an object is: while tiers change, applies fail, and processes die in between."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import Identity, ObjectKey
from bellhop.deploy.ownership import Ownership
from bellhop.errors import ConflictError, InvalidError, UnreachableError
from bellhop.ports.store import ABSENT, ANY, Item
from bellhop.state.deployment import Held, Inventory, Owner
from bellhop.state.messages import Apply, Resolve
from bellhop.state.profile import Profile
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.hooks import before_next
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube

SHARED = ObjectKey(CONFIG, "default", "shared").identity


def profile(name: str, tier: int = 100, value: str = "", holder: str = "") -> str:
    """Return a ClusterProfile and its ConfigMap, which has the object `shared`."""
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  tier: {tier}
  clusterSelector: {{matchLabels: {{env: production}}}}
  policyRefs: [{{kind: ConfigMap, name: {holder or name}, namespace: default}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {holder or name}, namespace: default}}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: shared, namespace: default}}
    data: {{by: '{value or name}'}}
"""


def by(kube: FakeKube) -> str:
    """Say which profile made the object that all declare."""
    return str(next((each["data"]["by"] for each in kube.objects(CONFIG)), ""))


def conflicts(fleet: Fleet) -> set[str]:
    return {each.profile for each in fleet.records.outcomes.of(EAST) if each.reason == "Conflict"}


def test_a_tier_that_is_lowered_later_defends_what_is_held(fleet: Fleet, east: FakeKube) -> None:
    """The owner's tier counts as it is now, not as it was when it applied the object."""
    fleet.deploy(profile("first"))
    fleet.deploy(profile("first", tier=10))

    fleet.deploy(profile("second", tier=50))

    assert by(east) == "first"
    assert conflicts(fleet) == {"second"}
    annotations = east.objects(CONFIG)[0]["metadata"]["annotations"]
    assert annotations["projectsveltos.io/owner-tier"] == "10"


def test_a_tier_that_is_raised_later_lets_go_to_who_waits(fleet: Fleet, east: FakeKube) -> None:
    """A waiting profile of a lower tier than the owner's present one gets the object at once."""
    fleet.deploy(profile("first"))
    fleet.deploy(profile("second"))
    assert conflicts(fleet) == {"second"}

    fleet.deploy(profile("first", tier=200))

    assert by(east) == "second"
    assert conflicts(fleet) == {"first"}


def test_the_marks_follow_a_config_map_that_is_renamed(fleet: Fleet, east: FakeKube) -> None:
    """Equal manifests in another ConfigMap are applied again: their marks name where they are."""
    fleet.deploy(profile("first"))

    fleet.deploy(profile("first", holder="other"))

    annotations = east.objects(CONFIG)[0]["metadata"]["annotations"]
    assert annotations["projectsveltos.io/reference-name"] == "other"


def test_what_was_refused_is_nobodys(fleet: Fleet, east: FakeKube) -> None:
    """A profile whose object the API server refuses leaves no claim: another one may have it."""
    east.fail_with(InvalidError("cluster 'fleet/east' refuses 'shared'"), "apply")
    fleet.deploy(profile("first"))
    assert fleet.records.owners.get(EAST, SHARED) is None
    fleet.delete("ClusterProfile", "first")
    east.fail_with(None)

    fleet.deploy(profile("second"))

    assert by(east) == "second"
    assert conflicts(fleet) == set()


def test_a_taker_that_is_refused_gives_the_object_back(fleet: Fleet, east: FakeKube) -> None:
    """The former owner has it again, and removes it in the end; the other one waits for a retry."""
    fleet.deploy(profile("first"))
    refuse = InvalidError("cluster 'fleet/east' refuses 'shared'")
    east.fail_with(refuse, "apply")
    fleet.deploy(profile("second", tier=10))
    owner = require_value(fleet.records.owners.get(EAST, SHARED))
    assert owner.profile == "first"
    assert [each.profile for each in fleet.records.inventories.of(EAST)] == ["first"]

    east.fail_with(None)
    fleet.wait(timedelta(minutes=1))
    assert by(east) == "second"

    fleet.declare.delete([("ClusterProfile", "", name) for name in ("first", "second")])
    fleet.pump()
    assert by(east) == ""
    assert fleet.records.owners.get(EAST, SHARED) is None


def test_what_may_have_been_applied_is_still_removed(fleet: Fleet, east: FakeKube) -> None:
    """An apply that got no answer may have worked: a refusal afterwards does not forget it."""
    apply = east.apply

    def apply_and_fall_silent(manifest: dict[str, object], **how: Any) -> None:
        apply(manifest, **how)
        raise UnreachableError("cluster 'fleet/east' does not answer")

    east.apply = apply_and_fall_silent  # type: ignore[assignment, method-assign]
    fleet.deploy(profile("first"))
    east.apply = apply  # type: ignore[method-assign]
    east.fail_with(InvalidError("cluster 'fleet/east' refuses 'shared'"), "apply")
    fleet.wait(timedelta(minutes=1))
    assert by(east) == "first"

    fleet.declare.delete([("ClusterProfile", "", "first")])
    fleet.wait(timedelta(minutes=1))

    assert by(east) == ""
    assert list(fleet.records.inventories.of(EAST)) == []


def test_a_loser_is_notified_even_if_the_winner_died_before_that(
    fleet: Fleet, east: FakeKube
) -> None:
    """The next try of the winner says again who has the object."""
    fleet.deploy(profile("first"))
    fleet.apply(profile("second", tier=10))
    publish = fleet.queues["apply"].publish

    def die(sent: object) -> None:
        if sent and "contested" in sent[0].body:  # type: ignore[index]
            raise SystemExit(9)
        publish(sent)  # type: ignore[arg-type]

    fleet.queues["apply"].publish = die  # type: ignore[method-assign, assignment]
    with pytest.raises(SystemExit):
        fleet.pump()
    fleet.queues["apply"].publish = publish  # type: ignore[method-assign]
    fleet.queues["apply"].release()
    fleet.pump()

    assert by(east) == "second"
    assert conflicts(fleet) == {"first"}


def test_those_who_wait_do_not_pile_up(fleet: Fleet, east: FakeKube) -> None:
    """An owner's record stays small among many profiles that come and go, and all try again."""
    fleet.deploy(*(profile(f"p{number:02}") for number in range(50)))
    found = require_value(fleet.records.owners.get(EAST, SHARED))
    assert len(found.waiting) == 32
    first = by(east)

    others = {f"p{number:02}" for number in range(50)} - {first}
    fleet.declare.delete(
        [("ClusterProfile", "", name) for name in sorted({first, *others} - {"p03"})]
    )
    fleet.release()
    fleet.pump()
    fleet.wait(timedelta(minutes=20))

    assert by(east) == "p03"


def test_a_slow_claim_does_not_overwrite_a_later_life_of_the_owner(
    fleet: Fleet, east: FakeKube
) -> None:
    """Between its read and its write the object was released, and taken by a lower tier."""
    fleet.deploy(profile("old", tier=100))
    kept = require_value(fleet.records.profiles.get("", "", "old"))
    mid, best = replace(kept, name="mid", tier=50), replace(kept, name="best", tier=10)
    fleet.records.profiles.put(best, expect=ABSENT)
    ownership, put = Ownership(fleet.records, fleet.publisher), fleet.records.owners.put

    def late(cluster: str, key: Identity, owner: Owner, *, expect: str | None = None) -> str:
        if owner.profile == "mid":
            fleet.records.owners.put = put  # type: ignore[method-assign]
            ownership.release(EAST, SHARED, "old")
            ownership.claim(EAST, SHARED, best)
        return put(cluster, key, owner, expect=expect)

    fleet.records.owners.put = late  # type: ignore[method-assign]
    with pytest.raises(ConflictError, match="profile 'best' of tier 10"):
        ownership.claim(EAST, SHARED, mid)

    found = require_value(fleet.records.owners.get(EAST, SHARED))
    assert found.profile == "best"
    assert [each[2] for each in found.waiting] == ["mid"]
    assert by(east) == "old"


@pytest.mark.parametrize("moment", ["before the apply", "after the apply"])
def test_who_loses_an_object_at_work_does_not_keep_its_own_form_there(
    fleet: Fleet, east: FakeKube, moment: str
) -> None:
    """Taken between claim and apply, the object is the taker's in the end."""
    apply = east.apply

    def slow(manifest: dict[str, object], **how: Any) -> object:
        east.apply = apply  # type: ignore[method-assign]
        result = apply(manifest, **how) if moment == "after the apply" else None
        fleet.deploy(profile("second", tier=10))
        assert by(east) == "second"
        return result or apply(manifest, **how)

    east.apply = slow  # type: ignore[method-assign, assignment]
    fleet.deploy(profile("first"))
    fleet.wait(timedelta(minutes=1))

    assert by(east) == "second"
    assert conflicts(fleet) == {"first"}


@pytest.mark.parametrize("taken", ["before it is read", "before it is written"])
def test_a_write_under_way_puts_nothing_back_of_who_took_the_object(
    fleet: Fleet, east: FakeKube, taken: str
) -> None:
    """Of two who are known to want it: who has lost it by then is refused, not put right later."""
    fleet.deploy(profile("first"))
    fleet.deploy(profile("second", tier=200))
    assert conflicts(fleet) == {"second"}
    which = "get" if taken == "before it is read" else "apply"
    call, apply = getattr(east, which), east.apply
    seen: list[str] = []

    def noted(*args: Any, **how: Any) -> object:
        try:
            return apply(*args, **how)
        finally:
            seen.append(by(east))

    def slow(*args: object, **how: Any) -> object:
        east.apply = noted  # type: ignore[method-assign, assignment]
        if which == "get":
            east.get = call  # type: ignore[method-assign]
        fleet.deploy(profile("second", tier=10))
        return noted(*args, **how) if which == "apply" else call(*args, **how)

    setattr(east, which, slow)
    fleet.deploy(profile("first", value="once more"))
    fleet.wait(timedelta(minutes=1))

    assert {*seen, by(east)} == {"second"}
    assert conflicts(fleet) == {"first"}


def test_who_is_not_disputed_reads_nothing_before_it_writes(fleet: Fleet, east: FakeKube) -> None:
    """To look first takes a call, and is for those whom somebody waits for."""
    fleet.deploy(profile("first"))
    east.calls.clear()

    fleet.deploy(profile("first", value="once more"))

    assert by(east) == "once more"
    assert [each.verb for each in east.calls if each.verb in {"get", "apply"}] == ["apply"]


def test_who_takes_an_object_while_it_is_removed_has_it(fleet: Fleet, east: FakeKube) -> None:
    """Removed after it changed hands, the object is applied again for its new owner."""
    fleet.deploy(profile("first"))

    def slow() -> None:
        fleet.deploy(profile("second", tier=10))
        assert by(east) == "second"

    before_next(east, "remove", slow)
    fleet.delete("ClusterProfile", "first")
    assert by(east) == "second", "nobody waits for a resync"
    fleet.wait(timedelta(minutes=5))

    assert by(east) == "second"
    assert conflicts(fleet) == set()


def test_who_died_at_an_object_of_another_is_not_unsure_for_ever(
    fleet: Fleet, east: FakeKube
) -> None:
    """It may have applied it: the owner is notified of that once, and it is held no more."""
    fleet.deploy(profile("first", tier=10))
    put = fleet.store.put

    def dies(item: Item, *, expect: str | None = ANY) -> Item:
        if item.partition == f"owner/{EAST}":
            raise KeyboardInterrupt
        return put(item, expect=expect)

    fleet.store.put = dies  # type: ignore[method-assign]
    fleet.apply(profile("second"))
    with pytest.raises(KeyboardInterrupt):
        fleet.pump()
    fleet.store.put = put  # type: ignore[method-assign]
    fleet.wait(timedelta(minutes=5), 5)
    applied = sum(call.verb == "apply" for call in east.calls)
    fleet.wait(timedelta(hours=1))

    assert (by(east), conflicts(fleet)) == ("first", {"second"})
    assert [each.profile for each in fleet.records.inventories.of(EAST)] == ["first"]
    assert sum(call.verb == "apply" for call in east.calls) == applied


def test_what_is_held_and_nobodys_is_removed(fleet: Fleet, east: FakeKube) -> None:
    """A claim that was forgotten while its object was applied keeps the object from nobody."""
    fleet.deploy(profile("first"))
    fleet.records.owners.forget(EAST)

    fleet.delete("ClusterProfile", "first")

    assert by(east) == ""
    assert list(fleet.records.inventories.of(EAST)) == []


def take_over(fleet: Fleet, east: FakeKube) -> None:
    """Let `second` own the object of `first`, which has not been notified yet."""
    fleet.deploy(profile("first"))
    fleet.apply(profile("second", tier=10))
    fleet.stages["deploy"].handle(Resolve("second"))
    fleet.stages["deploy"].handle(Apply("", "", "second", EAST))
    assert by(east) == "second"


def unsure(fleet: Fleet) -> None:
    """Leave an inventory as a worker of `first` does that dies while it is at the object."""
    kept = fleet.records.inventories.get(EAST, "first")
    begun = {SHARED: Held("", "", version="v1")}
    expect = kept.token if kept else ABSENT
    fleet.records.inventories.put(Inventory(EAST, "first", begun), expect=expect)


def test_what_another_has_by_now_is_not_removed(fleet: Fleet, east: FakeKube) -> None:
    """A profile that is removed before it learns of a lost object leaves that unchanged."""
    take_over(fleet, east)

    fleet.declare.delete([("ClusterProfile", "", "first")])
    fleet.stages["deploy"].handle(Resolve("first"))
    fleet.stages["deploy"].handle(Apply("", "", "first", EAST))

    assert by(east) == "second"
    assert [each.profile for each in fleet.records.inventories.of(EAST)] == ["second"]


def test_a_profile_that_learns_of_a_lost_object_notifies_no_owner(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is sure not to have it: its new owner has no reason to apply it again."""
    take_over(fleet, east)
    east.calls.clear()

    fleet.pump()

    assert conflicts(fleet) == {"first"}
    assert [each.profile for each in fleet.records.inventories.of(EAST)] == ["second"]
    assert [call for call in east.calls if call.verb == "apply"] == []


def test_a_worker_that_may_have_removed_an_object_notifies_its_owner(
    fleet: Fleet, east: FakeKube
) -> None:
    """The new owner re-creates an object that a dead worker was removing."""
    take_over(fleet, east)
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "first")])
    fleet.stages["deploy"].handle(Resolve("first"))
    unsure(fleet)
    east.drop(*SHARED.at("v1"))

    fleet.stages["deploy"].handle(Apply("", "", "first", EAST))
    fleet.pump()

    assert by(east) == "second"


def test_a_worker_that_may_have_overwritten_an_object_notifies_its_owner(
    fleet: Fleet, east: FakeKube
) -> None:
    """The new owner corrects an object that a dead worker applied late."""
    take_over(fleet, east)
    fleet.pump()
    unsure(fleet)
    [there] = east.objects(CONFIG)
    east.put({**there, "data": {"by": "first"}})

    fleet.stages["deploy"].handle(Apply("", "", "first", EAST))
    fleet.pump()

    assert by(east) == "second"


def wanting(name: str, tier: int = 100) -> Profile:
    """Return a profile that may take objects."""
    return Profile(name, "", "", "", (), (EAST,), "", tier=tier)


def test_of_two_who_find_an_object_nobodys_one_has_it(fleet: Fleet) -> None:
    """The second write fails, and its profile waits."""
    ownership, get = Ownership(fleet.records, fleet.publisher), fleet.records.owners.get
    fleet.records.profiles.put(wanting("quick"), expect=ABSENT)

    def slow(cluster: str, key: Identity) -> object:
        fleet.records.owners.get = get  # type: ignore[method-assign]
        found = get(cluster, key)
        ownership.claim(EAST, SHARED, wanting("quick"))
        return found

    fleet.records.owners.get = slow  # type: ignore[method-assign, assignment]
    with pytest.raises(ConflictError, match="profile 'quick' of tier 100 has it"):
        ownership.claim(EAST, SHARED, wanting("slow"))

    owner = get(EAST, SHARED)
    assert owner
    assert (owner.value.profile, owner.value.waiting) == ("quick", (("", "", "slow"),))


def test_a_late_release_leaves_an_object_to_its_owner(fleet: Fleet) -> None:
    """A profile releases only its own claim."""
    ownership = Ownership(fleet.records, fleet.publisher)
    ownership.claim(EAST, SHARED, wanting("first"))

    ownership.release(EAST, SHARED, "second")

    owner = require_value(fleet.records.owners.get(EAST, SHARED))
    assert owner.profile == "first"


def test_who_gives_an_object_up_learns_that_another_took_it_meanwhile(fleet: Fleet) -> None:
    """A stale owner record is read again."""
    ownership = Ownership(fleet.records, fleet.publisher)
    ownership.claim(EAST, SHARED, wanting("first"))
    known = ownership.read(EAST, SHARED)
    ownership.claim(EAST, SHARED, wanting("second", tier=10))

    assert not ownership.release(EAST, SHARED, "first", known)

    owner = require_value(fleet.records.owners.get(EAST, SHARED))
    assert owner.profile == "second"


def test_the_next_owner_notifies_the_waiters_of_a_dead_one(fleet: Fleet) -> None:
    """A claim that was released by a worker that died before it notified anybody is taken over."""
    ownership = Ownership(fleet.records, fleet.publisher)
    untold = Owner("", "", "", 0, (), (("", "", "waits"),))
    fleet.records.owners.put(EAST, SHARED, untold)

    ownership.claim(EAST, SHARED, wanting("next"))

    [delivery] = fleet.queues["apply"].receive(9, wait=timedelta(0))
    assert (delivery.message.body["profile"], "contested" in delivery.message.body) == (
        "waits",
        True,
    )
    owner = require_value(fleet.records.owners.get(EAST, SHARED))
    assert owner.tell == ()


def test_who_finds_a_lease_taken_meanwhile_applies_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Between the look at an inventory and the lease on it another worker may take that."""
    get = fleet.records.inventories.get
    until = fleet.clock.now() + timedelta(minutes=2)

    def slow(cluster: str, name: str) -> object:
        fleet.records.inventories.get = get  # type: ignore[method-assign]
        found = get(cluster, name)
        fleet.records.inventories.put(Inventory(EAST, name, {}, "another", until))
        return found

    fleet.records.inventories.get = slow  # type: ignore[method-assign, assignment]
    fleet.deploy(profile("first"))

    kept = get(EAST, "first")
    assert kept
    assert (kept.value.worker, by(east)) == ("another", "")
