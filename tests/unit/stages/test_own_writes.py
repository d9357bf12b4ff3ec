"""What Bellhop applies itself rings for the sources that ask for it; sweeps find it for all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.api.kinds import InvalidDocuments
from bellhop.core.gvk import GVK
from bellhop.state.messages import Resync
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, source, trigger

CONFIG = GVK("", "v1", "ConfigMap")
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


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


def names(kube: FakeKube) -> set[str]:
    return {each["metadata"]["name"] for each in kube.objects(CONFIG)}


def send(fleet: Fleet, manifest: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Write an object, and have it forwarded; return what ingest took."""
    stored = fleet.access.clusters["fleet/east"].put(manifest)
    reply = fleet.send("east", {"object": stored, **more})
    fleet.pump()
    return {key: reply.body[key] for key in ("taken", "dropped")}


def test_what_we_apply_does_not_ring(fleet: Fleet, east: FakeKube) -> None:
    """A sweep finds it, and does not count it as missed; what others do to it rings at once."""
    fleet.apply(seeds("{name: watched}"))
    fleet.pump()
    assert send(fleet, seed(**OWN), own=True) == {"taken": 0, "dropped": 1}
    assert names(east) == {"one"}

    fleet.clock.advance(timedelta(minutes=1))
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.pump()
    assert names(east) == {"one", "echo-of-one"}
    assert fleet.records.health.get("fleet/east").value.missed == 0

    changed = seed(**OWN)
    del changed["metadata"]["labels"]
    assert send(fleet, changed) == {"taken": 1, "dropped": 0}
    assert names(east) == {"one"}


@pytest.mark.parametrize("own", [False, "true", 1, None])
def test_what_does_not_say_that_it_is_ours_rings(fleet: Fleet, east: FakeKube, own: Any) -> None:
    """A forwarder of an earlier version says nothing."""
    fleet.apply(seeds("{name: watched}"))
    fleet.pump()

    assert send(fleet, seed(), own=own) == {"taken": 1, "dropped": 0}
    assert "echo-of-one" in names(east)


def test_that_what_we_applied_is_gone_rings(fleet: Fleet, east: FakeKube) -> None:
    """Whoever says so."""
    fleet.apply(seeds("{name: watched}"))
    fleet.pump()
    send(fleet, seed())
    (there,) = [each for each in east.objects(CONFIG) if each["metadata"]["name"] == "one"]
    east.drop(CONFIG, "default", "one")
    metadata = there["metadata"]
    gone = {
        "key": "/v1/ConfigMap/default/one",
        "uid": metadata["uid"],
        "version": int(metadata["resourceVersion"]),
    }

    fleet.send("east", {"gone": gone, "own": True})
    fleet.pump()

    assert names(east) == set()


def test_a_source_may_ask_for_what_we_apply(fleet: Fleet, east: FakeKube) -> None:
    """From when it says so until it does not: the gate follows without a sweep."""
    fleet.apply(seeds(ASKS))
    fleet.pump()
    assert [each.own for each in value_of(fleet.records.gates.get("fleet/east")).kinds] == [True]
    assert send(fleet, seed(), own=True) == {"taken": 1, "dropped": 0}
    assert "echo-of-one" in names(east)

    fleet.apply(seeds("{name: watched}"))
    fleet.pump()
    assert send(fleet, seed("two"), own=True) == {"taken": 0, "dropped": 1}
    assert "echo-of-two" not in names(east)


def test_asking_for_something_else_is_refused(fleet: Fleet) -> None:
    """A misspelt wish would be ignored."""
    with pytest.raises(InvalidDocuments, match=r"bellhop\.dev/own-writes is 'yes'; it is 'ring'"):
        fleet.apply(seeds(ASKS.replace("ring", '"yes"')))
