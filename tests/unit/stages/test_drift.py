"""ContinuousWithDriftDetection: what others change of what was brought is put back at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.api.kinds import InvalidDocuments
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.deploy.watches import DriftWatches
from bellhop.errors import BellhopError
from bellhop.operations.previews import Previewed, now
from bellhop.state.messages import Apply, Resync
from bellhop.state.record import Watch, WatchedKind
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.fakes.share import SHARE

CONFIG = GVK("", "v1", "ConfigMap")
SERVICE = GVK("", "v1", "Service")
EAST = "fleet/east"
WATCHED = "syncMode: ContinuousWithDriftDetection"
ONE = "/ConfigMap/default/one"
IGNORED = "projectsveltos.io/driftDetectionIgnore"


def brings(fleet: Fleet, *names: str, mode: str = WATCHED, value: str = "1") -> None:
    """Apply a profile that brings ConfigMaps, and let all be done."""
    contents = holder("own", *(config(name, f"v: '{value}'") for name in names))
    fleet.apply(join(profile(more=mode), contents))
    fleet.pump()


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster in which two objects are watched."""
    kube = fleet.register("east", env="production")
    brings(fleet, "one", "two")
    kube.calls.clear()
    return kube


def there(kube: FakeKube, name: str = "one") -> dict[str, Any]:
    (found,) = [each for each in kube.objects(CONFIG) if each["metadata"]["name"] == name]
    return found


def edit(fleet: Fleet, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write an object as a colleague does, have it forwarded, and let all be done."""
    stored = fleet.access.clusters[EAST].put(manifest)
    reply = fleet.send("east", {"object": stored})
    fleet.pump()
    return dict(reply.body)


def applies(kube: FakeKube) -> list[str]:
    return [call.name for call in kube.calls if call.verb == "apply"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("data", {"v": "theirs"}, id="a value"),
        pytest.param("data", {}, id="a value that is gone"),
        pytest.param("labels", {}, id="our label"),
        pytest.param("annotations", {}, id="our marks"),
    ],
)
def test_what_a_colleague_changes_is_put_back(
    fleet: Fleet, east: FakeKube, field: str, value: dict[str, str]
) -> None:
    """One object of the profile is looked at and applied, and no other."""
    before, changed = there(east), there(east)
    (changed if field == "data" else changed["metadata"])[field] = value

    assert edit(fleet, changed) == {"taken": 1, "dropped": 0}

    after = there(east)
    assert (after["data"], after["metadata"]["labels"]) == (
        before["data"],
        before["metadata"]["labels"],
    )
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert applies(east) == ["one"]


def test_what_a_colleague_deletes_is_made_again(fleet: Fleet, east: FakeKube) -> None:
    """As another life of the object, which is held from then on."""
    one = there(east)

    fleet.drop("east", one)
    fleet.pump()

    assert there(east)["data"] == {"v": "1"}
    held = value_of(fleet.records.inventories.get(EAST, "own")).held
    (uid,) = [each.uid for key, each in held.items() if key.name == "one"]
    assert uid == there(east)["metadata"]["uid"] != one["metadata"]["uid"]


def test_what_we_never_set_is_left_alone(fleet: Fleet, east: FakeKube) -> None:
    """A field of others costs one look, and no write anywhere."""
    changed = there(east)
    changed["metadata"]["labels"]["team"] = "blue"
    changed["data"]["w"] = "theirs"
    fleet.send("east")
    written = fleet.store.counts["put"]

    edit(fleet, changed)

    assert applies(east) == []
    assert [call.verb for call in east.calls].count("get") == 1
    assert there(east)["data"] == {"v": "1", "w": "theirs"}
    assert fleet.store.counts["put"] == written


def test_a_ring_that_comes_again_does_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Whether it is late, told twice, or from before the object was put back."""
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    edit(fleet, changed)
    east.calls.clear()

    fleet.publisher.publish([Apply("", "", "own", EAST, touched=ONE, trace="again")])
    fleet.pump()

    assert applies(east) == []


def test_our_own_writes_do_not_ring(fleet: Fleet, east: FakeKube) -> None:
    """The forwarder says whose they are, and nobody looks."""
    reply = fleet.send("east", {"object": there(east), "own": True})
    fleet.pump()

    assert reply.body == {"taken": 0, "dropped": 1}
    assert east.calls == []


def test_what_nobody_holds_is_dropped(fleet: Fleet, east: FakeKube) -> None:
    """It is not kept, and not judged."""
    stranger = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {}}

    edit(fleet, stranger)

    assert east.calls == []
    assert list(fleet.records.observations.heads(EAST)) == []


@pytest.mark.parametrize("mode", ["", "syncMode: OneTime"])
def test_other_modes_put_nothing_back(fleet: Fleet, mode: str) -> None:
    """Nothing rings for them, and a ring for another profile's sake does not concern them."""
    east = fleet.register("east", env="production")
    brings(fleet, "one", mode=mode)
    gate = value_of(fleet.records.gates.get(EAST))
    assert gate.held == ()
    assert list(fleet.records.watches.of(EAST)) == []
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    east.put(changed)

    fleet.publisher.publish([Apply("", "", "own", EAST, touched=ONE)])
    fleet.pump()

    assert there(east)["data"] == {"v": "theirs"}


@pytest.mark.usefixtures("east")
def test_kinds_ring_as_long_as_a_profile_is_watched(fleet: Fleet) -> None:
    """The gate knows them from the first apply on; a sweep lets go of those of no profile."""
    gate = value_of(fleet.records.gates.get(EAST))
    assert (gate.kinds, gate.held) == ((), (WatchedKind(CONFIG, "configmaps"),))

    brings(fleet, "one", "two", mode="syncMode: Continuous")
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()

    assert value_of(fleet.records.gates.get(EAST)).held == ()
    assert list(fleet.records.watches.of(EAST)) == []


@pytest.mark.usefixtures("east")
def test_a_declaration_keeps_them_ringing(fleet: Fleet) -> None:
    """A gate that is written without a sweep still lets them in, beside what sources ask for."""
    fleet.apply(join(source(), trigger(), holder("made", config("made"))))

    gate = value_of(fleet.records.gates.get(EAST))
    assert gate.held == (WatchedKind(CONFIG, "configmaps"),)
    assert [each.gvk for each in gate.kinds] == [SERVICE]


def test_what_sources_ask_for_as_well_is_evaluated_and_put_back(fleet: Fleet) -> None:
    """One ring serves both."""
    east = fleet.register("east", env="production")
    fleet.apply(join(source("ConfigMap"), trigger(), holder("made", config("made"))))
    brings(fleet, "one")
    changed = there(east)
    changed["data"] = {"v": "theirs"}

    assert edit(fleet, changed) == {"taken": 1, "dropped": 0}

    assert there(east)["data"] == {"v": "1"}
    assert fleet.records.observations.head(EAST, ObjectKey(CONFIG, "default", "one"))


def test_a_sweep_finds_what_the_push_has_missed(fleet: Fleet, east: FakeKube) -> None:
    """What was changed and never rang is put back; what is as it was costs nothing."""
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    east.put(changed)
    east.drop(CONFIG, "default", "two")

    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()

    assert there(east)["data"] == there(east, "two")["data"] == {"v": "1"}
    assert sorted(applies(east)) == ["one", "two"]
    east.calls.clear()
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    assert applies(east) == []
    assert not [call for call in east.calls if call.name in {"one", "two"}]


def test_a_profile_that_is_watched_from_now_on_is_applied_once_more(fleet: Fleet) -> None:
    """Nobody knows which of its fields were ours: what others did before is put back with it."""
    east = fleet.register("east", env="production")
    brings(fleet, "one", mode="")
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    east.put(changed)

    brings(fleet, "one")

    assert there(east)["data"] == {"v": "1"}
    east.calls.clear()
    brings(fleet, "one")
    assert applies(east) == []


def test_what_is_marked_so_is_left_alone(fleet: Fleet, east: FakeKube) -> None:
    """By Sveltos' annotation, whatever others do to it and whoever tells; a sweep brings it back.

    Only that of the manifest counts: who writes it into the cluster stops nothing.
    """
    ignored = f"{IGNORED}: ok"
    one = config("one", "v: '1'").replace("'one'", f"one, annotations: {{{ignored}}}")
    fleet.apply(holder("own", one, config("two", "v: '1'")))
    fleet.pump()
    east.calls.clear()
    ring(fleet, east, "theirs")
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    assert there(east)["data"] == {"v": "theirs"}
    assert applies(east) == []

    changed = there(east, "two")
    changed["metadata"]["annotations"][IGNORED] = "ok"
    changed["data"] = {"v": "theirs"}
    east.put(changed)
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    assert there(east, "two")["data"] == {"v": "1"}

    east.drop(CONFIG, "default", "one")
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    assert there(east)["data"] == {"v": "1"}


def test_a_paused_profile_puts_nothing_back(fleet: Fleet, east: FakeKube) -> None:
    """The next sweep after it goes on does."""
    fleet.apply(
        profile(more=WATCHED).replace(
            "{name: own}", '{name: own, annotations: {profile.projectsveltos.io/paused: "true"}}'
        )
    )
    fleet.pump()
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    edit(fleet, changed)
    assert there(east)["data"] == {"v": "theirs"}

    brings(fleet, "one", "two")
    fleet.clock.advance(timedelta(minutes=1))
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()

    assert there(east)["data"] == {"v": "1"}


def test_what_is_withdrawn_is_watched_no_more(fleet: Fleet, east: FakeKube) -> None:
    """Its deletion rings, and brings nothing back."""
    one = there(east)
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    assert east.objects(CONFIG) == []

    fleet.drop("east", one)
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()

    assert east.objects(CONFIG) == []
    assert list(fleet.records.watches.of(EAST)) == []


def test_an_api_server_that_rings_ingest_itself_has_it_looked_at(
    fleet: Fleet, east: FakeKube
) -> None:
    """A hint is confirmed before its profile is told; one that is not stored yet is waited for."""
    one = there(east)
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    fleet.post("east", review(one, changed))
    fleet.pump()
    assert applies(east) == []

    east.put(changed)
    fleet.clock.advance(timedelta(seconds=1))
    fleet.pump()

    assert there(east)["data"] == {"v": "1"}
    assert applies(east) == ["one"]


def review(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return what an API server asks before it stores an update."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "a",
            "operation": "UPDATE",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "namespace": "default",
            "name": new["metadata"]["name"],
            "oldObject": old,
            "object": new,
            "options": {"fieldManager": "kubectl-edit"},
        },
    }


def ring(fleet: Fleet, east: FakeKube, value: str) -> None:
    """Edit an object, and have it forwarded; nobody works on it yet."""
    changed = there(east)
    changed["data"] = {"v": value}
    fleet.send("east", {"object": east.put(changed)})


def settled(fleet: Fleet) -> None:
    """Let time pass until whatever a worker holds is free, and all be done."""
    for _ in range(3):
        fleet.clock.advance(fleet.settings.visibility + timedelta(seconds=1))
        fleet.pump()


MEANWHILE: dict[str, tuple[Callable[[Fleet, FakeKube], object], str]] = {
    "another edits it again": (lambda fleet, east: ring(fleet, east, "again"), "1"),
    "the profile wants something else": (lambda fleet, _: fleet.apply(TWO), "2"),
    "another worker has the same message": (
        lambda fleet, _: fleet.stages["deploy"].handle(Apply("", "", "own", EAST, touched=ONE)),
        "1",
    ),
    "it is deleted": (lambda _, east: east.drop(CONFIG, "default", "one"), "1"),
    "the cluster is swept": (
        lambda fleet, _: fleet.stages["sweep"].handle(Resync(EAST)),
        "1",
    ),
}
TWO = holder("own", config("one", "v: '2'"))


@pytest.mark.parametrize("number", range(0, 30, 3))
@pytest.mark.parametrize("what", MEANWHILE)
def test_whoever_comes_between_it_ends_as_it_is_declared(
    fleet: Fleet, what: str, number: int
) -> None:
    """At each call of the store that putting it back takes, and what follows from it."""
    east = fleet.register("east", env="production")
    brings(fleet, "one")
    act, ends = MEANWHILE[what]
    ring(fleet, east, "theirs")

    def comes() -> None:
        with suppress(BellhopError):
            act(fleet, east)

    with interrupted(fleet.records, number, comes) as found:
        fleet.pump()
    assert found.met
    settled(fleet)
    fleet.publisher.publish([Resync(EAST)])
    settled(fleet)

    assert there(east)["data"] == {"v": ends}


@pytest.mark.rest
@pytest.mark.parametrize("offset", range(4)[::SHARE])
def test_wherever_it_dies_it_is_put_back(tmp_path: Path, offset: int) -> None:
    """The message comes again, and what was begun is not taken for done."""
    for steps in range(1 + offset, 60, 4):
        fleet = Fleet(tmp_path / f"{offset}-{steps}")
        east, fate = fleet.register("east", env="production"), Fate()
        brings(fleet, "one")
        rig.interpose(fleet, lambda name, port, fate=fate: Mortal(name, port, fate))
        fleet.access.clusters = {EAST: east}
        ring(fleet, east, "theirs")
        fate.doom(steps)
        with suppress(Killed):
            fleet.pump()
        fate.revive()
        rig.release(fleet)
        settled(fleet)

        assert there(east)["data"] == {"v": "1"}, steps
        fleet.close()


@pytest.mark.parametrize("number", range(4))
def test_a_profile_that_is_watched_again_while_a_sweep_lets_go_of_it(
    fleet: Fleet, number: int
) -> None:
    """Who takes the watch away looks again, and has it written anew."""
    fleet.register("east", env="production")
    brings(fleet, "one")
    brings(fleet, "one", mode="syncMode: Continuous")

    with interrupted(fleet.records, number, lambda: brings(fleet, "one")) as found:
        DriftWatches(fleet.records, fleet.publisher).kinds(EAST)
    assert found.met
    fleet.pump()

    assert [each.value.kinds for each in fleet.records.watches.of(EAST)] == [(CONFIG,)]


def test_many_that_are_watched_at_once_ask_for_one_sweep(fleet: Fleet) -> None:
    """A cluster that is registered into a fleet of hundreds is not swept hundreds of times."""
    fleet.register("east", env="production")
    fleet.pump()
    for number in range(20):
        name = f"own-{number}"
        fleet.apply(join(profile(name=name, more=WATCHED), holder(name, config(name))))
    asked = 0
    for _ in range(200):
        for inbox in ("deploy", "apply"):
            fleet.work(inbox, fleet.queues[inbox].receive(1, wait=timedelta(0)))
    while deliveries := fleet.queues["sweep"].receive(10, wait=timedelta(0)):
        asked += sum(each.message.body == {"do": "sweep", "cluster": EAST} for each in deliveries)

    assert len(list(fleet.records.watches.of(EAST))) == 20
    assert asked == 1


def test_a_watch_that_nobody_was_told_of_is_told_by_the_next(fleet: Fleet) -> None:
    """Who dies after it wrote the watch leaves it untold; a sweep is asked for once."""
    fleet.register("east", env="production")
    brings(fleet, "one", mode="")
    fleet.records.watches.put(Watch(EAST, "own", "", "", (CONFIG,)))

    brings(fleet, "one")

    assert value_of(fleet.records.gates.get(EAST)).held == (WatchedKind(CONFIG, "configmaps"),)
    assert value_of(fleet.records.watches.get(EAST, "own")).told


EXCLUDED = f"""{WATCHED}
  driftExclusions: [{{paths: [/data/v], target: {{kind: ConfigMap, name: one}}}}]"""


def test_what_is_excluded_is_written_once(fleet: Fleet) -> None:
    """Another decides it from then on: no ring, sweep or change of the profile writes it again."""
    east = fleet.register("east", env="production")
    brings(fleet, "one", "two", mode=EXCLUDED)
    assert there(east)["data"] == {"v": "1"}
    for name in ("one", "two"):
        changed = there(east, name)
        changed["data"] = {"v": "theirs"}
        edit(fleet, changed)
    assert (there(east)["data"], there(east, "two")["data"]) == ({"v": "theirs"}, {"v": "1"})

    east.calls.clear()
    changed = there(east)
    changed["data"] = {"v": "theirs again"}
    edit(fleet, changed)
    assert applies(east) == []
    brings(fleet, "one", "two", mode=EXCLUDED, value="2")
    assert (there(east)["data"], there(east, "two")["data"]) == ({"v": "theirs again"}, {"v": "2"})

    changed = there(east)
    changed["metadata"]["labels"] = {}
    edit(fleet, changed)
    assert there(east)["metadata"]["labels"] == {"projectsveltos.io/reason": "Resources"}
    assert there(east)["data"] == {"v": "theirs again"}
    held = value_of(fleet.records.inventories.get(EAST, "own")).held
    assert {key.name: each.mended for key, each in held.items()} == {"one": 1, "two": 1}


def test_a_preview_shows_nothing_of_what_is_excluded(fleet: Fleet) -> None:
    """It would not be written, and is as it is wanted."""
    east = fleet.register("east", env="production")
    brings(fleet, "one", mode=EXCLUDED)
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    edit(fleet, changed)
    fleet.records.inventories.doubt(EAST, "own", None)

    (found,) = now(fleet.installation(), "own")
    assert isinstance(found, Previewed)

    assert (found.change.key.name, found.change.action) == ("one", "No Action")


def test_what_is_excluded_and_nobody_decided_stays(fleet: Fleet) -> None:
    """It is not taken away by being left out, and not changed either; a new object has it all."""
    east = fleet.register("east", env="production")
    brings(fleet, "one", mode=EXCLUDED)
    brings(fleet, "one", mode=EXCLUDED, value="2")
    assert there(east)["data"] == {"v": "1"}

    fleet.drop("east", there(east))
    fleet.pump()

    assert there(east)["data"] == {"v": "2"}


@pytest.mark.parametrize(
    ("exclusion", "said"),
    [
        pytest.param("{paths: [spec/replicas]}", "'spec/replicas' is not a path", id="no pointer"),
        pytest.param("{paths: [/metadata/name]}", "'/metadata/name' is not a path", id="the name"),
        pytest.param("{paths: [/metadata]}", "'/metadata' is not a path", id="all that names it"),
        pytest.param("{paths: [/a/b], target: {name: '('}}", "missing \\)", id="no expression"),
    ],
)
def test_an_exclusion_that_excludes_nothing_is_refused(
    fleet: Fleet, exclusion: str, said: str
) -> None:
    """It would be ignored, or leave nothing to bring."""
    with pytest.raises(InvalidDocuments, match=said):
        fleet.apply(profile(more=f"{WATCHED}\n  driftExclusions: [{exclusion}]"))
