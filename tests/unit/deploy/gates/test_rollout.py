"""Roll-outs in steps: so many clusters change at a time, and those that fail keep their place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellhop.diagnosis import profile_status
from bellhop.errors import InvalidError, UnreachableError
from bellhop.ports.store import ABSENT
from bellhop.profiles.records import Place
from bellhop.state.deployment import RolloutState
from bellhop.state.messages import Apply, Resolve
from bellhop.state.profile import Rollout
from tests.fakes import rig
from tests.fakes.fleet import Fleet, OpenFleet, service
from tests.fakes.hooks import before_next
from tests.fakes.kept import require_value
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
from tests.fakes.share import SHARE

OWN = Place("", "", "own")
NAMES = [f"c{number}" for number in range(6)]


def clusters(fleet: Fleet, number: int = 6) -> list[FakeKube]:
    return [fleet.register(name, env="production") for name in NAMES[:number]]


def written(v: str, share: str = "2", more: str = "") -> str:
    """Return a profile that changes so many clusters at a time, and its manifests."""
    paced = f"maxUpdate: {share}\n  " if share else ""
    return join(profile(more=f"{paced}{more}"), holder("own", config("own", f"v: '{v}'")))


def has(fleet: Fleet, v: str) -> list[str]:
    """Return which clusters have a version."""
    return [
        key.removeprefix("fleet/")
        for key, kube in sorted(fleet.access.clusters.items())
        if any((each.get("data") or {}).get("v") == v for each in kube.objects(CONFIG))
    ]


def at_work(fleet: Fleet) -> list[str]:
    kept = fleet.records.rotas.get(OWN)
    return sorted(kept.value.at_work) if kept else []


def phases(fleet: Fleet) -> dict[str, str]:
    return {
        name: found.value.reason or found.value.phase
        for name in NAMES
        if (found := fleet.records.outcomes.get(f"fleet/{name}", "own"))
    }


def at_once(fleet: Fleet) -> list[int]:
    """Note from now on, at each write to a cluster, how many clusters' turn it is."""
    noted: list[int] = []
    for kube in fleet.access.clusters.values():
        note_places(fleet, kube, noted)
    return noted


def note_places(fleet: Fleet, kube: FakeKube, noted: list[int]) -> None:
    apply = kube.apply

    def applying(manifest: dict[str, Any], **how: Any) -> Any:
        turns = at_work(fleet)
        assert kube.cluster in turns
        noted.append(len(turns))
        return apply(manifest, **how)

    kube.apply = applying  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("share", "number", "expected"),
    [
        ("3", 10, 3),
        ("0", 10, 1),
        ("0%", 10, 1),
        ("20%", 10, 2),
        ("21%", 10, 3),
        ("100%", 10, 10),
        ("20%", 0, 1),
        ("5000", 9000, 1000),
    ],
)
def test_so_many_places_there_are(share: str, number: int, expected: int) -> None:
    """Of a share the next whole number, at least one, and at most what a record holds."""
    assert Rollout(share=share).places(number) == expected


@pytest.mark.parametrize("share", ["2", "'30%'"])
def test_all_clusters_change_in_steps(fleet: Fleet, share: str) -> None:
    """Never more than so many at a time; nothing is left of it in the end."""
    clusters(fleet)
    noted = at_once(fleet)
    fleet.deploy(written("1", share))
    assert has(fleet, "1") == NAMES
    fleet.deploy(written("2", share))

    assert has(fleet, "2") == NAMES
    assert len(noted) == 12
    assert max(noted) <= 2
    assert at_work(fleet) == []
    assert list(fleet.store.query("queued///own")) == []


def have_refused(fleet: Fleet, *kubes: FakeKube) -> list[Callable[[], None]]:
    """Have clusters refuse the next version; return what ends that."""
    ends = [kube.refuse("own", InvalidError("no")) for kube in kubes]
    fleet.deploy(written("2"))
    return ends


def test_it_stops_where_it_fails(fleet: Fleet) -> None:
    """One that fails keeps its place, the others go on; with all places taken nothing does."""
    kubes = clusters(fleet)
    fleet.deploy(written("1"))
    ends = have_refused(fleet, kubes[0], kubes[3])

    assert has(fleet, "2") == ["c1", "c2"]
    assert at_work(fleet) == ["fleet/c0", "fleet/c3"]
    assert phases(fleet) == {
        "c0": "Invalid",
        "c1": "Provisioned",
        "c2": "Provisioned",
        "c3": "Invalid",
        "c4": "Queued",
        "c5": "Queued",
    }
    waits = fleet.status_of("own", "fleet/c5")
    assert "by maxUpdate 2 of its 6 clusters change at a time" in waits.message
    assert (waits.failures, waits.retry_at) == (0, None)

    assert rolled_out(fleet) == "2 updated, 0 updating, 2 failed, 2 waiting; 2 at a time"

    ends[1]()
    fleet.wait()
    assert has(fleet, "2") == NAMES[1:]
    assert rolled_out(fleet) == "5 updated, 0 updating, 1 failed, 0 waiting; 2 at a time"


def rolled_out(fleet: Fleet) -> str:
    [status] = profile_status.read_statuses(fleet.installation(), "")
    return profile_status.describe_rollout(fleet.installation(), status)


def test_the_progress_of_a_rollout_is_reported(fleet: Fleet) -> None:
    """A cluster with a place that has not failed is updating; nothing is said without maxUpdate."""
    clusters(fleet)
    fleet.apply(written("1"))
    for message in fleet.queues["deploy"].receive(9, wait=timedelta(0)):
        fleet.work("deploy", [message])
    rota = RolloutState(("fleet/c0", "fleet/c1"))
    fleet.records.rotas.put(OWN, rota, expect=ABSENT)
    assert rolled_out(fleet) == "0 updated, 2 updating, 0 failed, 4 waiting; 2 at a time"

    fleet.deploy(written("1", ""))
    assert rolled_out(fleet) == ""


def test_a_new_revision_takes_over_the_places(fleet: Fleet) -> None:
    """Those that failed are the first to have it, and the others follow."""
    kubes = clusters(fleet)
    fleet.deploy(written("1"))
    for end in have_refused(fleet, kubes[4], kubes[5]):
        end()
    assert at_work(fleet) == ["fleet/c4", "fleet/c5"]
    noted = at_once(fleet)
    fleet.apply(written("3"))
    fleet.wait()

    assert has(fleet, "3") == NAMES
    assert noted[0] == 2
    assert max(noted) == 2


@pytest.mark.parametrize("how", ["label", "deregister"])
def test_a_cluster_that_leaves_gives_its_place_back(fleet: Fleet, how: str) -> None:
    """A waiting cluster gets it; if all leave, no rollout state is left."""
    kubes = clusters(fleet)
    fleet.deploy(written("1"))
    have_refused(fleet, kubes[0], kubes[1])
    assert has(fleet, "2") == []
    if how == "label":
        fleet.declare.label("fleet/c0", {"env": "test"})
    else:
        fleet.declare.deregister("fleet/c0")
    fleet.pump()
    assert has(fleet, "2") == NAMES[2:]
    assert at_work(fleet) == ["fleet/c1"]

    fleet.delete("ClusterProfile", "own")
    assert fleet.records.rotas.get(OWN) is None


def test_a_cluster_that_is_away_keeps_its_place(fleet: Fleet) -> None:
    """It goes on once it answers, and so does who waits."""
    kubes = clusters(fleet, 3)
    fleet.deploy(written("1", "1"))
    kubes[0].fail_with(UnreachableError("cannot reach it"))
    fleet.deploy(written("2", "1"))
    assert has(fleet, "2") == []

    kubes[0].fail_with(None)
    fleet.wait(times=3)
    assert has(fleet, "2") == NAMES[:3]


def test_drift_of_the_present_revision_is_corrected_without_a_place(fleet: Fleet) -> None:
    """It needs none, also where all places are taken."""
    kubes = clusters(fleet)
    fleet.deploy(written("1"))
    have_refused(fleet, kubes[0], kubes[3])
    assert has(fleet, "2") == ["c1", "c2"]
    kubes[1].drop(CONFIG, "default", "own")
    touched = "/ConfigMap/default/own"
    fleet.publisher.publish([Apply("", "", "own", "fleet/c1", contested=touched)])
    fleet.wait()

    assert has(fleet, "2") == ["c1", "c2"]


def test_all_go_on_once_nothing_is_asked_for(fleet: Fleet) -> None:
    """Without the field all change at once, and it may come back."""
    kubes = clusters(fleet)
    fleet.deploy(written("1"))
    have_refused(fleet, kubes[0], kubes[1])
    fleet.deploy(written("2", ""))
    assert has(fleet, "2") == NAMES[2:]

    fleet.apply(written("3"))
    for kube in kubes[:2]:
        kube.apply = FakeKube.apply.__get__(kube)  # type: ignore[method-assign]
    fleet.wait()
    assert has(fleet, "3") == NAMES


@pytest.mark.parametrize("deleted", [False, True])
def test_nothing_is_left_of_turns_that_are_no_more(fleet: Fleet, *, deleted: bool) -> None:
    """No place and no waiter is recorded, though one cluster still fails, or all are deleted."""
    kubes = clusters(fleet)
    fleet.deploy(written("1"))
    have_refused(fleet, kubes[0], kubes[1])
    assert len(noted_turns(fleet)) == 5
    fleet.apply(written("2", ""))
    if deleted:
        fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert noted_turns(fleet) == []


def noted_turns(fleet: Fleet) -> list[str]:
    kept = (each.partition for each in fleet.store.all())
    return [each for each in kept if each.startswith(("rota/", "queued/"))]


def test_what_triggers_make_changes_in_steps(fleet: Fleet) -> None:
    """One profile for an event, to all clusters that are selected."""
    clusters(fleet)
    everywhere = "destinationClusterSelector: {matchLabels: {env: production}}"
    made = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.deploy(join(source(), trigger(more=f"{everywhere}\n  maxUpdate: 1"), made))
    fleet.access.clusters["fleet/c2"].refuse("for-web", InvalidError("no"))
    fleet.write("c0", service("web"))
    fleet.pump()

    there = [name for name in NAMES if fleet.access.clusters[f"fleet/{name}"].objects(CONFIG)]
    assert len(there) < len(NAMES)
    assert "c2" not in there
    [head] = fleet.records.profiles.heads("made")
    kept = require_value(fleet.records.rotas.get(Place("made", "fleet/c0", head.name)))
    assert kept.at_work == ("fleet/c2",)


def test_what_is_tried_dry_takes_no_turns(fleet: Fleet) -> None:
    """It touches nothing, and reports all at once."""
    clusters(fleet)
    fleet.deploy(written("1", "1", "syncMode: DryRun"))
    assert set(phases(fleet).values()) == {"DryRun"}


def resolve(fleet: Fleet, v: str) -> None:
    """Apply a version that goes to one cluster at a time, and ask none for it."""
    fleet.apply(written(v, "1"))
    fleet.stages["deploy"].handle(Resolve("own"))


def test_two_who_let_in_at_once_let_in_no_more_than_there_are_places(fleet: Fleet) -> None:
    """The worker whose write fails reads again, and finds the place taken."""
    clusters(fleet, 2)
    resolve(fleet, "1")
    put = fleet.records.rotas.put

    def late(*args: Any, **how: Any) -> str:
        fleet.records.rotas.put = put  # type: ignore[method-assign]
        put(OWN, RolloutState(("fleet/c1",)), expect=ABSENT)
        return put(*args, **how)

    fleet.records.rotas.put = late  # type: ignore[method-assign]
    fleet.stages["deploy"].handle(Apply("", "", "own", "fleet/c0"))

    assert at_work(fleet) == ["fleet/c1"]
    assert phases(fleet) == {"c0": "Queued"}
    assert has(fleet, "1") == []


def test_a_cluster_has_its_turn_for_what_came_meanwhile(fleet: Fleet) -> None:
    """The former revision counts no more: others wait until it has the newer one."""
    clusters(fleet, 2)
    resolve(fleet, "1")
    fleet.records.rotas.put(OWN, RolloutState(("fleet/c1",)), expect=ABSENT)
    fleet.records.queued.begin(OWN, ["fleet/c0"])

    def late() -> None:
        resolve(fleet, "2")

    before_next(fleet.records.outcomes, "put", late)
    fleet.stages["deploy"].handle(Apply("", "", "own", "fleet/c1"))

    assert has(fleet, "2") == ["c1"]
    assert at_work(fleet) == ["fleet/c0"]


def test_what_a_cluster_costs_does_not_grow_with_those_that_wait(fleet: Fleet) -> None:
    """A worker that finishes lets in the next, and looks at no other."""

    def takes(number: int) -> float:
        for each in range(number):
            fleet.register(f"n{number}-{each}", env=f"e{number}")
        selected = f"clusterSelector: {{matchLabels: {{env: e{number}}}}}"
        name = f"p{number}"
        fleet.apply(
            join(
                profile(selected, name=name, more="maxUpdate: 1"),
                holder(name, config(name)),
            )
        )
        for message in fleet.queues["deploy"].receive(99, wait=timedelta(0)):
            fleet.work("deploy", [message])
        before = fleet.store.counts.total()
        fleet.pump()
        return (fleet.store.counts.total() - before) / number

    few = takes(8)
    assert takes(24) < few * 1.1


@pytest.mark.rest
@pytest.mark.parametrize("again", [False, True])
def test_survives_death_at_every_step(open_fleet: OpenFleet, *, again: bool) -> None:
    """A worker that finishes, lets in or notifies may die: all change, never too many at once.

    It takes seconds: each death is played in an installation of its own.
    """
    steps, died = 0, True
    while died:
        steps += 7 * SHARE
        fleet = open_fleet()
        clusters(fleet, 4)
        fleet.deploy(written("1", "1"))
        fate = rig.make_mortal(fleet)
        fleet.apply(written("2", "1"))
        died = rig.kill(fleet, fate, steps)
        if again and died:
            rig.kill(fleet, fate, 3 * steps)
        for _ in range(4):
            fleet.pump()
            fleet.clock.advance(rig.VISIBILITY)
        assert has(fleet, "2") == NAMES[:4], steps
        assert fleet.records.rotas.get(OWN) is None, steps
    assert steps > 50
