"""A worker is killed at any of its writes for the configuration: the end is as without that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from bellhop.configuration.origin import clear_configuration_cluster
from bellhop.core.gvk import GVK
from bellhop.errors import MissingError
from bellhop.settings import Settings
from tests.fakes import rig
from tests.fakes.fleet import service
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
from tests.fakes.mortal import FateOf, Killed
from tests.fakes.share import SHARE
from tests.unit.configuration.hub import HUB, SETTLE, Hub, find_gvk

Act = Callable[[Hub], object]

OURS, CONTENT = "projectsveltos.io", "ClusterConfiguration"
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_CHANGE = re.compile(r"--change \w+")
_STRIDE = SHARE if SHARE == 1 else 3 * SHARE
_MOST = 12
"""Deaths of a long history, unless all are played."""

_FEW = Settings(hold_from=1, hold_share=0.4)
DEFINITIONS = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def write(*texts: str) -> Act:
    return lambda hub: hub.write(*texts)


def delete(kind: str, name: str) -> Act:
    """Delete an object, if it is still there."""

    def act(hub: Hub) -> None:
        if hub.kube.get(find_gvk(kind), "", name):
            hub.delete(kind, name)

    return act


def remove_all(*names: str) -> Act:
    """Delete several profiles at once."""

    def act(hub: Hub) -> None:
        for name in names:
            found = hub.kube.get(find_gvk("ClusterProfile"), "", name)
            assert found
            hub.kube.remove(find_gvk("ClusterProfile"), "", name)
            hub.hint(found, before=int(found["metadata"]["resourceVersion"]))
        hub.fleet.pump()
        hub.fleet.wait(SETTLE, times=4)

    return act


def send_service(hub: Hub) -> None:
    hub.fleet.write("east", service("a"))
    hub.fleet.pump()


def undefine(hub: Hub) -> None:
    """Delete the definition of profiles, which then waits for its objects."""
    name = "clusterprofiles.config.projectsveltos.io"
    stored = hub.kube.get(DEFINITIONS, "", name)
    assert stored
    held = {**stored["metadata"], "finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}
    hub.kube.put({**stored, "metadata": held})
    hub.kube.remove(DEFINITIONS, "", name)
    for each in hub.kube.names(find_gvk("ClusterProfile")):
        hub.kube.remove(find_gvk("ClusterProfile"), "", each)
    hub.fleet.resync(HUB)


def own(name: str) -> str:
    return join(profile(name=name), holder(name, config(name)))


OWN = own("own")
EVENTS = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
NOBODY = profile("clusterSelector: {matchLabels: {env: nobody}}")
TAKEN = profile(more="tier: 50").replace(
    "{name: own}", "{name: own, annotations: {bellhop.dev/take-over: files}}"
)
HISTORIES: dict[str, Sequence[Act]] = {
    "applied and changed": (write(OWN), write(holder("own", config("a"), config("b")))),
    "applied and deleted": (write(OWN), delete("ClusterProfile", "own")),
    "left by a cluster": (write(OWN), write(NOBODY)),
    "refused": (write(OWN), write(profile(more="syncMode: Sometimes"))),
    "taken over": (
        lambda hub: hub.fleet.deploy(OWN),
        write(profile(more="tier: 40")),
        write(TAKEN),
    ),
    "generated": (write(EVENTS), send_service),
    "generated and deleted": (write(EVENTS), send_service, delete("EventTrigger", "made")),
    "held": (write(*map(own, "ab")), remove_all("a", "b")),
    "undefined": (write(own("a"), own("b")), undefine),
}

AT_ONCE = ("refused", "held", "undefined")
"""Histories that end otherwise if nothing was in force before their second act."""


def finish(hub: Hub) -> None:
    """Do all that is due, and what the resyncs of an hour find."""
    rig.settle(hub.fleet)
    for cluster in (HUB, "fleet/east"):
        hub.fleet.resync(cluster)
    rig.settle(hub.fleet)


def play(hub: Hub, acts: Sequence[Act], steps: int, *, at_once: bool) -> FateOf:
    """Act; the worker dies at a step, and begins again at once or only with the next act."""
    fate = FateOf("bellhop.configuration")
    rig.make_mortal(hub.fleet, fate)
    fate.doom(steps)
    for act in (*acts, finish, finish):
        try:
            act(hub)
        except Killed:
            fate.revive()
            hub.fleet.reread()
            rig.release(hub.fleet)
            if at_once:
                rig.settle(hub.fleet)
    return fate


def look(hub: Hub) -> dict[str, Any]:
    """Return all that is there in the end, without times and names that are drawn."""
    records = hub.fleet.records
    every = [each for each in hub.kube.objects() if OURS in each["apiVersion"]]
    # The content of a cluster is written empty, or not at all if nothing ever was there.
    every = [each for each in every if each["kind"] != CONTENT or each["status"]]
    uids = {each["metadata"]["uid"]: each["metadata"]["name"] for each in every}
    kinds = ("ClusterProfile", "EventTrigger", "EventSource", "ConfigMap")
    found = {
        "deployed": hub.east.data(),
        "objects": [_shorten(each, uids) for each in every],
        "manifests": {kind: sorted(records.manifests.names(kind)) for kind in kinds},
        "records": [
            [kind, name, kept.value.state, kept.value.in_force, kept.value.message]
            for kind in kinds
            for _, name, kept in records.configured.list_kind(kind)
        ],
        "written": sorted(
            f"{item.partition} {item.sort}"
            for item in hub.fleet.store.all()
            if item.partition.startswith("written/") and CONTENT not in item.sort
        ),
        "held": sorted(each.value.rule for each in records.removals.all()),
        "pending": list(records.pending.all()),
        "dead": [each for queue in hub.fleet.queues.values() for each in queue.list()],
    }
    text = _CHANGE.sub("--change ID", json.dumps(found, default=str, sort_keys=True))
    read: dict[str, Any] = json.loads(_TIMES.sub("T", text))
    return read


def _shorten(found: dict[str, Any], uids: dict[str, str]) -> dict[str, Any]:
    metadata = found["metadata"]
    annotations = metadata.get("annotations") or {}
    return {
        "key": [found["kind"], metadata.get("namespace", ""), metadata["name"]],
        "owners": [
            uids.get(each["uid"], "nobody") for each in metadata.get("ownerReferences") or []
        ],
        "finalizers": metadata.get("finalizers") or [],
        "leaving": "deletionTimestamp" in metadata,
        "labels": metadata.get("labels"),
        "held": "bellhop.dev/held" in annotations,
        "spec": {**(found.get("spec") or {}), "resources": None},
        "status": found.get("status"),
    }


@pytest.mark.parametrize("name", HISTORIES)
def test_ends_as_if_no_worker_had_died(make_hub: Callable[..., Hub], name: str) -> None:
    """It takes seconds: each death is played in an installation of its own."""
    acts = HISTORIES[name]
    settings = _FEW if name == "held" else None
    hub = make_hub(settings)
    steps = play(hub, acts, 0, at_once=True).steps
    desired = look(hub)
    assert desired["dead"] == []

    # Each history begins at another step, so that writes of all sorts are played.
    stride = _STRIDE if SHARE == 1 else max(_STRIDE, len(steps) // _MOST)
    for number in range(len(name) % stride, len(steps), stride):
        at_once = name in AT_ONCE or number // stride % 2 == 0
        hub = make_hub(settings)
        play(hub, acts, number + 1, at_once=at_once)
        assert look(hub) == desired, f"died {number} {steps[number]}, at once {at_once}"


def test_a_command_that_ends_the_configuration_is_repeated(make_hub: Callable[..., Hub]) -> None:
    """Killed at any write: the next one leaves no finalizer, no mirror and no record."""

    def end(steps: int) -> tuple[dict[str, Any], list[str]]:
        hub = make_hub()
        fate = FateOf("bellhop.configuration")
        rig.make_mortal(hub.fleet, fate)
        hub.write(OWN, EVENTS)
        send_service(hub)
        fate.doom(steps)
        for _ in range(2):
            with suppress(Killed, MissingError):
                clear_configuration_cluster(hub.fleet.installation())
            fate.revive()
            hub.fleet.reread()
        finish(hub)
        return look(hub), fate.steps

    desired, steps = end(0)
    assert desired["deployed"].keys() == {"for-a", "own"}
    assert [each["finalizers"] for each in desired["objects"]] == [[]] * 3
    assert (desired["records"], desired["written"]) == ([], [])

    for number in range(0, len(steps), _STRIDE):
        assert end(number + 1)[0] == desired, f"died {number} {steps[number]}"
