"""Leases and inventories: the owner, the uid of an object, and the worker that holds the lease."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.deploy.lease import Peers
from bellhop.errors import BusyError, DeniedError
from bellhop.settings import Settings
from bellhop.state.deployment import Held, Inventory
from bellhop.state.messages import Apply, Resolve
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.hooks import after_next, before_next
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.mortal import Killed

APPLY = Apply("", "", "own", EAST)
PROFILE = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: own}
spec:
  clusterSelector: {matchLabels: {env: production}}
  policyRefs: [{kind: ConfigMap, name: own, namespace: default}]
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path, Settings(turn=timedelta(seconds=20)))


def holder(*names: str, v: str = "1") -> str:
    objects = "".join(
        "    ---\n    apiVersion: v1\n    kind: ConfigMap\n"
        f"    metadata: {{name: {name}, namespace: default}}\n    data: {{v: '{v}'}}\n"
        for name in names
    )
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: default}\n"
        f"data:\n  main.yaml: |\n{objects or '    # nothing'}"
    )


def values(east: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["data"]["v"] for each in east.objects(CONFIG)}


def held(fleet: Fleet) -> Inventory:
    return require_value(fleet.records.inventories.get(EAST, "own"))


def replaced(east: FakeKube, name: str) -> None:
    """Let somebody delete an object of ours and make his own of that name."""
    east.drop(CONFIG, "default", name)
    metadata = {"name": name, "namespace": "default"}
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "his"}})


@pytest.mark.parametrize("swept", [False, True], ids=["unseen", "seen by a sweep"])
def test_leaves_what_somebody_made_in_place_of_ours(
    fleet: Fleet, east: FakeKube, *, swept: bool
) -> None:
    """A removal is of the object that was applied, not of its name."""
    fleet.deploy(PROFILE, holder("a", "b"))
    replaced(east, "a")
    if swept:
        fleet.resync(full=True)

    fleet.delete("ClusterProfile", "own")

    assert values(east) == {"a": "his"}
    assert list(fleet.records.inventories.of(EAST)) == []
    assert fleet.records.owners.get(EAST, ObjectKey(CONFIG, "default", "a").identity) is None


@pytest.mark.parametrize("his", [True, False], ids=["somebody's", "ours"])
def test_removes_of_what_had_only_begun_what_bears_our_marks(
    fleet: Fleet, east: FakeKube, *, his: bool
) -> None:
    """After a death in the midst of applying, marks say whether the object is ours."""
    fleet.deploy(PROFILE, holder("a"))
    if his:
        replaced(east, "a")
    begun = {
        key: Held("", each.ref, version=each.version) for key, each in held(fleet).held.items()
    }
    fleet.records.inventories.put(Inventory(EAST, "own", begun))

    fleet.delete("ClusterProfile", "own")

    assert values(east) == ({"a": "his"} if his else {})


def test_removes_the_next_life_of_an_object_that_a_death_had_begun(
    fleet: Fleet, east: FakeKube
) -> None:
    """It was deleted and re-created, and the worker died before it recorded the new uid."""
    fleet.deploy(PROFILE, holder("a"))
    east.drop(CONFIG, "default", "a")
    fleet.apply(holder("a", v="2"))
    apply = east.apply

    def dies(manifest: dict[str, Any], **how: Any) -> Any:
        apply(manifest, **how)
        raise Killed

    east.apply = dies  # type: ignore[method-assign]
    with pytest.raises(Killed):
        fleet.pump()
    east.apply = apply  # type: ignore[method-assign]
    assert values(east) == {"a": "2"}

    fleet.delete("ClusterProfile", "own")
    rig.release(fleet)
    fleet.pump()

    assert values(east) == {}


def test_two_workers_do_not_work_on_one_profile_in_one_cluster(
    fleet: Fleet, east: FakeKube
) -> None:
    """While one holds the lease the other is tried again with the pauses of the queue."""
    fleet.apply(PROFILE, holder("a"))
    busy = []

    def slow() -> None:
        with pytest.raises(BusyError) as caught:
            fleet.stages["deploy"].handle(APPLY)
        busy.append(caught.value.delay)

    before_next(east, "apply", slow)
    fleet.pump()

    assert busy == [None]
    assert values(east) == {"a": "1"}
    assert held(fleet).worker == ""


def test_a_lease_ends_with_its_time(fleet: Fleet, east: FakeKube) -> None:
    """Another worker takes over the lease of a dead one when its time is up."""
    until = fleet.clock.now() + fleet.settings.visibility
    fleet.records.inventories.put(Inventory(EAST, "own", {}, "a dead worker", until))
    fleet.deploy(PROFILE, holder("a"))
    assert values(east) == {}

    fleet.wait(fleet.settings.visibility + timedelta(seconds=1))

    assert values(east) == {"a": "1"}


@pytest.mark.parametrize("alive", [True, False])
def test_a_lease_ends_with_its_process(fleet: Fleet, east: FakeKube, *, alive: bool) -> None:
    """If it is known which processes are alive, nobody waits for a dead one."""
    fleet.peers = Peers("theirs")
    fleet.reread()
    apply, workers = east.apply, []

    def watched(manifest: dict[str, Any], **how: Any) -> Any:
        workers.append(held(fleet).worker)
        return apply(manifest, **how)

    east.apply = watched  # type: ignore[method-assign]
    fleet.deploy(PROFILE, holder("a"))
    until = fleet.clock.now() + fleet.settings.visibility
    fleet.records.inventories.put(Inventory(EAST, "own", held(fleet).held, workers[0], until))

    fleet.peers = Peers("ours", lambda badge: alive and badge == "theirs")
    fleet.reread()
    fleet.deploy(PROFILE, holder("a", v="2"))

    assert values(east) == {"a": "1" if alive else "2"}


def test_two_who_believe_to_hold_it_end_right(fleet: Fleet, east: FakeKube) -> None:
    """A worker that comes back after its lease finds its write refused, and all is put right."""
    fleet.apply(PROFILE, holder("a", "b"))

    def slow() -> None:
        fleet.clock.advance(fleet.settings.visibility + timedelta(seconds=1))
        fleet.deploy(holder("b", "c", v="2"))
        assert values(east) == {"b": "2", "c": "2"}

    before_next(east, "apply", slow)
    fleet.pump()
    fleet.wait(timedelta(minutes=10))

    assert values(east) == {"b": "2", "c": "2"}
    there = held(fleet).held
    assert {key.name: bool(each.digest) for key, each in there.items()} == {"b": True, "c": True}


def test_a_profile_of_many_objects_gives_others_their_turn(fleet: Fleet, east: FakeKube) -> None:
    """After its turn a profile keeps what it has done and goes on with a message of its own."""
    names = [f"n{number}" for number in range(9)]
    fleet.apply(PROFILE, holder(*names))
    apply = east.apply

    def slow(manifest: dict[str, Any], **how: Any) -> Any:
        fleet.clock.advance(timedelta(seconds=7))
        return apply(manifest, **how)

    east.apply = slow  # type: ignore[method-assign]
    turns = []
    while deliveries := {
        inbox: found
        for inbox, queue in fleet.queues.items()
        if (found := queue.receive(1, wait=timedelta(0)))
    }:
        before = len(east.objects(CONFIG))
        for inbox, found in deliveries.items():
            fleet.work(inbox, found)
        turns.append(len(east.objects(CONFIG)) - before)

    assert [each for each in turns if each] == [3, 3, 3]
    applied = [call for call in east.calls if call.verb == "apply" and call.gvk == CONFIG]
    assert len(applied) == 9
    assert [each.phase for each in fleet.records.outcomes.of(EAST)] == ["Provisioned"]


def test_carries_out_no_older_contents_after_newer_ones(fleet: Fleet, east: FakeKube) -> None:
    """A worker that read older contents, and stalled, puts right what it applied of them."""
    fleet.deploy(PROFILE, holder("a", v="1"))
    fleet.apply(holder("a", v="2"))
    execute = fleet.reconciler
    desired = execute._features[0]._desired_state

    def render_late() -> None:
        fleet.deploy(holder("a", v="1"))

    after_next(desired, "render", render_late)
    fleet.pump()

    assert values(east) == {"a": "1"}


BUDGET = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: own, namespace: default}}
data:
  main.yaml: |
    apiVersion: policy/{version}
    kind: PodDisruptionBudget
    metadata: {{name: web, namespace: default}}
    spec: {{minAvailable: {least}}}
"""


def test_a_raised_version_of_a_kind_updates_the_object(fleet: Fleet, east: FakeKube) -> None:
    """An API server has one object for all versions: raising the version removes nothing."""
    kinds = [GVK("policy", version, "PodDisruptionBudget") for version in ("v1beta1", "v1")]
    for kind in kinds:
        east.serve(Resource(kind, "poddisruptionbudgets", namespaced=True))
    fleet.deploy(PROFILE, BUDGET.format(version="v1beta1", least=1))
    [before] = east.objects(kinds[1])

    fleet.deploy(BUDGET.format(version="v1", least=2))

    [after] = east.objects(kinds[1])
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == {"minAvailable": 2}
    assert [key.kind for key in held(fleet).held] == ["PodDisruptionBudget"]


def test_removes_an_object_whose_version_is_served_no_more(fleet: Fleet, east: FakeKube) -> None:
    """The version in which it was applied went with an upgrade; the object is the same."""
    old, new = (GVK("policy", version, "PodDisruptionBudget") for version in ("v1beta1", "v1"))
    for kind in (old, new):
        east.serve(Resource(kind, "poddisruptionbudgets", namespaced=True))
    fleet.deploy(PROFILE, BUDGET.format(version="v1beta1", least=1))
    east.unserve(old)
    assert east.objects(new)

    fleet.delete("ClusterProfile", "own")

    assert not east.objects(new)
    assert list(fleet.records.inventories.of(EAST)) == []


def test_what_cannot_be_applied_as_a_whole_takes_nothing_away(fleet: Fleet, east: FakeKube) -> None:
    """An object that a profile has dropped stays until all that it declares is there."""
    fleet.deploy(PROFILE, holder("a", "b"))
    east.fail_with(DeniedError("cluster 'fleet/east' refuses: no right to create"), "apply")

    fleet.deploy(holder("a", "c"))
    assert set(values(east)) == {"a", "b"}

    east.fail_with(None)
    fleet.wait(timedelta(minutes=1))
    assert set(values(east)) == {"a", "c"}


def overtake(fleet: Fleet, east: FakeKube, newer: str, back: str) -> None:
    """Overtake the worker that applies an object by one that deploys a newer revision.

    Before the slow one notes what it did, the profile is back at another one.
    """
    put = fleet.records.inventories.put

    def late(inventory: Inventory, *, expect: str | None = None) -> str:
        fleet.records.inventories.put = put  # type: ignore[method-assign]
        fleet.apply(back)
        fleet.stages["deploy"].handle(Resolve("own"))
        return put(inventory, expect=expect)

    def slow() -> None:
        fleet.clock.advance(fleet.settings.visibility + timedelta(seconds=1))
        fleet.deploy(newer)
        fleet.records.inventories.put = late  # type: ignore[method-assign]

    after_next(east, "apply", slow)
    fleet.pump()
    fleet.wait(timedelta(minutes=10))


def test_who_is_late_does_not_forget_what_another_applied(fleet: Fleet, east: FakeKube) -> None:
    """An object that only the quicker worker knew of is removed when it is dropped."""
    fleet.apply(PROFILE, holder("a"))

    overtake(fleet, east, newer=holder("a", "b"), back=holder("a"))

    assert values(east) == {"a": "1"}


def test_who_is_late_takes_nothing_for_as_it_applied_it(fleet: Fleet, east: FakeKube) -> None:
    """An object that two workers wrote at once may have either form, and is applied again."""
    fleet.apply(PROFILE, holder("a", v="1"))

    overtake(fleet, east, newer=holder("a", v="2"), back=holder("a", v="1"))

    assert values(east) == {"a": "1"}
