"""ContinuousWithDriftDetection: changes that others make to deployed objects are undone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from bellhop.api.kinds import InvalidDocuments
from bellhop.core.gvk import ObjectKey
from bellhop.deploy.watches import DriftWatches
from bellhop.errors import BellhopError
from bellhop.operations.previews import PreviewedChange, preview_now
from bellhop.state.deployment import Watch
from bellhop.state.ingest_policy import WatchedKind
from bellhop.state.messages import Apply, Resync
from tests.fakes import rig
from tests.fakes.fleet import EAST, SERVICE, Fleet, OpenFleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.fakes.share import SHARE

WATCHED = "syncMode: ContinuousWithDriftDetection"
ONE = "/ConfigMap/default/one"
IGNORED = "projectsveltos.io/driftDetectionIgnore"


def deploys(fleet: Fleet, *names: str, mode: str = WATCHED, value: str = "1") -> None:
    """Apply a profile that deploys ConfigMaps, and let all be done."""
    contents = holder("own", *(config(name, f"v: '{value}'") for name in names))
    fleet.deploy(join(profile(more=mode), contents))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster in which two objects are watched."""
    kube = fleet.register("east", env="production")
    deploys(fleet, "one", "two")
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
def test_a_change_by_others_is_corrected(
    fleet: Fleet, east: FakeKube, field: str, value: dict[str, str]
) -> None:
    """One object of the profile is read and applied, and no other."""
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


def test_a_field_that_bellhop_never_set_is_left_unchanged(fleet: Fleet, east: FakeKube) -> None:
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


def test_a_repeated_event_does_nothing(fleet: Fleet, east: FakeKube) -> None:
    """The event is late, is a duplicate, or is from before the correction."""
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    edit(fleet, changed)
    east.calls.clear()

    fleet.publisher.publish([Apply("", "", "own", EAST, touched=ONE, trace="again")])
    fleet.pump()

    assert applies(east) == []


def test_own_writes_send_no_event(fleet: Fleet, east: FakeKube) -> None:
    """The forwarder says whose they are, and nobody looks."""
    reply = fleet.send("east", {"object": there(east), "own": True})
    fleet.pump()

    assert reply.body == {"taken": 0, "dropped": 1}
    assert east.calls == []


def test_what_nobody_holds_is_dropped(fleet: Fleet, east: FakeKube) -> None:
    """The event is neither stored nor evaluated."""
    stranger = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {}}

    edit(fleet, stranger)

    assert east.calls == []
    assert list(fleet.records.observations.heads(EAST)) == []


@pytest.mark.parametrize("mode", ["", "syncMode: OneTime"])
def test_other_modes_put_nothing_back(fleet: Fleet, mode: str) -> None:
    """They send no events, and an event for another profile's sake does not concern them."""
    east = fleet.register("east", env="production")
    deploys(fleet, "one", mode=mode)
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
def test_kinds_send_events_as_long_as_a_profile_is_watched(fleet: Fleet) -> None:
    """The ingest policy has them from the first apply on; a resync drops those of no profile."""
    gate = value_of(fleet.records.gates.get(EAST))
    assert (gate.kinds, gate.held) == ((), (WatchedKind(CONFIG, "configmaps"),))

    deploys(fleet, "one", "two", mode="syncMode: Continuous")
    fleet.resync()

    assert value_of(fleet.records.gates.get(EAST)).held == ()
    assert list(fleet.records.watches.of(EAST)) == []


@pytest.mark.usefixtures("east")
def test_an_apply_keeps_their_events(fleet: Fleet) -> None:
    """A policy that is written without a resync keeps them, beside the kinds of sources."""
    fleet.apply(join(source(), trigger(), holder("made", config("made"))))

    gate = value_of(fleet.records.gates.get(EAST))
    assert gate.held == (WatchedKind(CONFIG, "configmaps"),)
    assert [each.gvk for each in gate.kinds] == [SERVICE]


def test_an_object_that_a_source_selects_is_evaluated_and_corrected(fleet: Fleet) -> None:
    """One event serves both."""
    east = fleet.register("east", env="production")
    fleet.apply(join(source("ConfigMap"), trigger(), holder("made", config("made"))))
    deploys(fleet, "one")
    changed = there(east)
    changed["data"] = {"v": "theirs"}

    assert edit(fleet, changed) == {"taken": 1, "dropped": 0}

    assert there(east)["data"] == {"v": "1"}
    assert fleet.records.observations.head(EAST, ObjectKey(CONFIG, "default", "one"))


def test_a_resync_finds_what_the_push_has_missed(fleet: Fleet, east: FakeKube) -> None:
    """Drift without an event is corrected; an unchanged object costs nothing."""
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    east.put(changed)
    east.drop(CONFIG, "default", "two")

    fleet.resync()

    assert there(east)["data"] == there(east, "two")["data"] == {"v": "1"}
    assert sorted(applies(east)) == ["one", "two"]
    east.calls.clear()
    fleet.resync()
    assert applies(east) == []
    assert not [call for call in east.calls if call.name in {"one", "two"}]


def test_a_profile_that_is_watched_from_now_on_is_applied_once_more(fleet: Fleet) -> None:
    """Its fields before are unknown: former changes by others are corrected with it."""
    east = fleet.register("east", env="production")
    deploys(fleet, "one", mode="")
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    east.put(changed)

    deploys(fleet, "one")

    assert there(east)["data"] == {"v": "1"}
    east.calls.clear()
    deploys(fleet, "one")
    assert applies(east) == []


def test_an_object_with_the_ignore_annotation_is_not_corrected(
    fleet: Fleet, east: FakeKube
) -> None:
    """Sveltos' annotation counts whatever others change; a resync re-creates a deleted object.

    Only that of the manifest counts: who writes it into the cluster stops nothing.
    """
    ignored = f"{IGNORED}: ok"
    one = config("one", "v: '1'").replace("'one'", f"one, annotations: {{{ignored}}}")
    fleet.deploy(holder("own", one, config("two", "v: '1'")))
    east.calls.clear()
    send_edit(fleet, east, "theirs")
    fleet.resync()
    assert there(east)["data"] == {"v": "theirs"}
    assert applies(east) == []

    changed = there(east, "two")
    changed["metadata"]["annotations"][IGNORED] = "ok"
    changed["data"] = {"v": "theirs"}
    east.put(changed)
    fleet.resync()
    assert there(east, "two")["data"] == {"v": "1"}

    east.drop(CONFIG, "default", "one")
    fleet.resync()
    assert there(east)["data"] == {"v": "1"}


def test_a_paused_profile_puts_nothing_back(fleet: Fleet, east: FakeKube) -> None:
    """The next resync after it goes on does."""
    fleet.deploy(
        profile(more=WATCHED).replace(
            "{name: own}", '{name: own, annotations: {profile.projectsveltos.io/paused: "true"}}'
        )
    )
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    edit(fleet, changed)
    assert there(east)["data"] == {"v": "theirs"}

    deploys(fleet, "one", "two")
    fleet.clock.advance(timedelta(minutes=1))
    fleet.resync()

    assert there(east)["data"] == {"v": "1"}


def test_what_is_withdrawn_is_watched_no_more(fleet: Fleet, east: FakeKube) -> None:
    """Its deletion sends an event, and restores nothing."""
    one = there(east)
    fleet.delete("ClusterProfile", "own")
    assert east.objects(CONFIG) == []

    fleet.drop("east", one)
    fleet.resync()

    assert east.objects(CONFIG) == []
    assert list(fleet.records.watches.of(EAST)) == []


def test_a_hint_of_an_api_server_is_read_back(fleet: Fleet, east: FakeKube) -> None:
    """Its profile is notified after the read; a write that is not stored yet is waited for."""
    one = there(east)
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    fleet.post("east", review(one, changed))
    fleet.pump()
    assert applies(east) == []

    east.put(changed)
    fleet.wait(timedelta(seconds=1))

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


def send_edit(fleet: Fleet, east: FakeKube, value: str) -> None:
    """Edit an object, and have it forwarded; nobody works on it yet."""
    changed = there(east)
    changed["data"] = {"v": value}
    fleet.send("east", {"object": east.put(changed)})


def settle(fleet: Fleet) -> None:
    """Let time pass until whatever a worker holds is free, and all be done."""
    fleet.wait(fleet.settings.visibility + timedelta(seconds=1), 3)


MEANWHILE: dict[str, tuple[Callable[[Fleet, FakeKube], object], str]] = {
    "another edits it again": (lambda fleet, east: send_edit(fleet, east, "again"), "1"),
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
    deploys(fleet, "one")
    act, ends = MEANWHILE[what]
    send_edit(fleet, east, "theirs")

    def comes() -> None:
        with suppress(BellhopError):
            act(fleet, east)

    with interrupted(fleet.records, number, comes) as found:
        fleet.pump()
    assert found.met
    settle(fleet)
    fleet.publisher.publish([Resync(EAST)])
    settle(fleet)

    assert there(east)["data"] == {"v": ends}


@pytest.mark.rest
def test_drift_is_corrected_wherever_a_worker_dies(open_fleet: OpenFleet) -> None:
    """The message comes again, and a correction that has begun is not taken for done."""
    for steps in range(1, 60, SHARE):
        fleet = open_fleet()
        east = fleet.register("east", env="production")
        deploys(fleet, "one")
        fate = rig.make_mortal(fleet)
        send_edit(fleet, east, "theirs")
        rig.kill(fleet, fate, steps)
        settle(fleet)

        assert there(east)["data"] == {"v": "1"}, steps


@pytest.mark.parametrize("number", range(4))
def test_a_profile_that_is_watched_again_while_a_resync_deletes_its_watch(
    fleet: Fleet, number: int
) -> None:
    """The worker that deletes the watch reads again, and has it written again."""
    fleet.register("east", env="production")
    deploys(fleet, "one")
    deploys(fleet, "one", mode="syncMode: Continuous")

    with interrupted(fleet.records, number, lambda: deploys(fleet, "one")) as found:
        DriftWatches(fleet.records, fleet.publisher).kinds(EAST)
    assert found.met
    fleet.pump()

    assert [each.value.kinds for each in fleet.records.watches.of(EAST)] == [(CONFIG,)]


def test_many_watched_at_once_ask_for_one_resync(fleet: Fleet) -> None:
    """A cluster that is registered into a fleet of hundreds is not resynced hundreds of times."""
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


def test_an_unpublished_watch_is_published_by_the_next(fleet: Fleet) -> None:
    """A death after the watch was written leaves it unpublished; one resync is asked for."""
    fleet.register("east", env="production")
    deploys(fleet, "one", mode="")
    fleet.records.watches.put(Watch(EAST, "own", "", "", (CONFIG,)))

    deploys(fleet, "one")

    assert value_of(fleet.records.gates.get(EAST)).held == (WatchedKind(CONFIG, "configmaps"),)
    assert value_of(fleet.records.watches.get(EAST, "own")).told


EXCLUDED = f"""{WATCHED}
  driftExclusions: [{{paths: [/data/v], target: {{kind: ConfigMap, name: one}}}}]"""


def test_what_is_excluded_is_written_once(fleet: Fleet) -> None:
    """Others decide it from then on: no event, resync or change of the profile writes it again."""
    east = fleet.register("east", env="production")
    deploys(fleet, "one", "two", mode=EXCLUDED)
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
    deploys(fleet, "one", "two", mode=EXCLUDED, value="2")
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
    deploys(fleet, "one", mode=EXCLUDED)
    changed = there(east)
    changed["data"] = {"v": "theirs"}
    edit(fleet, changed)
    fleet.records.inventories.doubt(EAST, "own", None)

    (found,) = preview_now(fleet.installation(), "own")
    assert isinstance(found, PreviewedChange)

    assert (found.change.key.name, found.change.action) == ("one", "No Action")


def test_what_is_excluded_and_nobody_decided_stays(fleet: Fleet) -> None:
    """It is not taken away by being left out, and not changed either; a new object has it all."""
    east = fleet.register("east", env="production")
    deploys(fleet, "one", mode=EXCLUDED)
    deploys(fleet, "one", mode=EXCLUDED, value="2")
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
    """It would be ignored, or leave nothing to deploy."""
    with pytest.raises(InvalidDocuments, match=said):
        fleet.apply(profile(more=f"{WATCHED}\n  driftExclusions: [{exclusion}]"))
