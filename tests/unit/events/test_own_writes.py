"""Own writes are events for the sources that ask for them; resyncs find them for all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.api.kinds import InvalidDocuments
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, source, trigger

ASKS = "{name: watched, annotations: {bellhop.dev/own-writes: ring}}"
ECHO = holder("made", config("echo-of-{{ .Resource.metadata.name }}"), annotations=INSTANTIATE)
OWN = {"projectsveltos.io/owner-name": "own", "projectsveltos.io/reason": "x"}


def seeds(name: str = "watched") -> str:
    """Return a source of the ConfigMaps that are seeds, and a trigger that echoes each."""
    seed = ", labelFilters: [{key: seed, operation: Has}]"
    watched = source("ConfigMap", more=seed).replace("{name: watched}", name)
    return join(watched, trigger(), ECHO)


def seed(name: str = "one", **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"seed": "yes"}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "annotations": annotations},
    }


def send(fleet: Fleet, manifest: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Write an object, and have it forwarded; return what ingest took."""
    stored = fleet.access.clusters["fleet/east"].put(manifest)
    reply = fleet.send("east", {"object": stored, **more})
    fleet.pump()
    return {key: reply.body[key] for key in ("taken", "dropped")}


def test_an_own_write_is_no_event(fleet: Fleet, east: FakeKube) -> None:
    """A resync finds it, and does not count it as missed; a change by others is an event."""
    fleet.deploy(seeds("{name: watched}"))
    assert send(fleet, seed(**OWN), own=True) == {"taken": 0, "dropped": 1}
    assert set(east.names()) == {"one"}

    fleet.clock.advance(timedelta(minutes=1))
    fleet.resync()
    assert set(east.names()) == {"one", "echo-of-one"}
    assert fleet.records.health.get("fleet/east").value.missed == 0

    changed = seed(**OWN)
    del changed["metadata"]["labels"]
    assert send(fleet, changed) == {"taken": 1, "dropped": 0}
    assert set(east.names()) == {"one"}


@pytest.mark.parametrize("own", [False, "true", 1, None])
def test_a_write_without_the_mark_is_an_event(fleet: Fleet, east: FakeKube, own: Any) -> None:
    """A forwarder of an earlier version says nothing."""
    fleet.deploy(seeds("{name: watched}"))

    assert send(fleet, seed(), own=own) == {"taken": 1, "dropped": 0}
    assert "echo-of-one" in east.names()


def test_a_deletion_of_an_own_object_is_an_event(fleet: Fleet, east: FakeKube) -> None:
    """Also where the event claims to be of an own write."""
    fleet.deploy(seeds("{name: watched}"))
    send(fleet, seed())
    (there,) = [each for each in east.objects(CONFIG) if each["metadata"]["name"] == "one"]
    east.drop(CONFIG, "default", "one")
    metadata = there["metadata"]
    deleted = {
        "key": "/v1/ConfigMap/default/one",
        "uid": metadata["uid"],
        "version": int(metadata["resourceVersion"]),
    }

    fleet.send("east", {"gone": deleted, "own": True})
    fleet.pump()

    assert set(east.names()) == set()


def test_a_source_may_ask_for_own_writes(fleet: Fleet, east: FakeKube) -> None:
    """As long as the source asks for it: the ingest policy follows without a resync."""
    fleet.deploy(seeds(ASKS))
    assert [each.own for each in value_of(fleet.records.gates.get("fleet/east")).kinds] == [True]
    assert send(fleet, seed(), own=True) == {"taken": 1, "dropped": 0}
    assert "echo-of-one" in east.names()

    fleet.deploy(seeds("{name: watched}"))
    assert send(fleet, seed("two"), own=True) == {"taken": 0, "dropped": 1}
    assert "echo-of-two" not in east.names()


def test_asking_for_something_else_is_refused(fleet: Fleet) -> None:
    """A misspelt wish would be ignored."""
    with pytest.raises(InvalidDocuments, match=r"bellhop\.dev/own-writes is 'yes'; it is 'ring'"):
        fleet.apply(seeds(ASKS.replace("ring", '"yes"')))
