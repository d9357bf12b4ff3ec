"""`reloader`: workloads restart when a ConfigMap or Secret that their pods read has changed."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, Identity, Resource
from bellhop.deploy.pod_references import RELOADED
from bellhop.errors import DeniedError
from bellhop.operations.previews import Previewed, now
from bellhop.state.messages import Resync
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.fakes.share import SHARE

CONFIG, DEPLOYMENT = GVK("", "v1", "ConfigMap"), GVK("apps", "v1", "Deployment")
EAST = "fleet/east"
RELOADS = "reloader: true"
READ = Identity("", "ConfigMap", "default", "settings")


def workload(kind: str = "Deployment", *, name: str = "web", optional: str = "false") -> str:
    """Return a workload whose pods have the ConfigMap `settings` as their environment."""
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, namespace: default}}
spec:
  template:
    spec:
      containers:
      - name: web
        envFrom: [{{configMapRef: {{name: settings, optional: {optional}}}}}]
"""


def settings(value: str) -> dict[str, Any]:
    metadata = {"name": "settings", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": value}}


def brings(fleet: Fleet, *objects: str, more: str = RELOADS) -> None:
    """Apply a profile that brings objects, and let all be done."""
    fleet.apply(join(profile(more=more), holder("own", *objects)))
    fleet.pump()


def sweep(fleet: Fleet) -> None:
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()


def restarted(kube: FakeKube, gvk: GVK = DEPLOYMENT) -> str:
    """Return what the workload's pods are annotated with."""
    (found,) = kube.objects(gvk)
    metadata = found["spec"]["template"].get("metadata") or {}
    return str((metadata.get("annotations") or {}).get(RELOADED, ""))


def remark(fleet: Fleet) -> str:
    """Return what is said of the cluster, where all is as it should be."""
    found = fleet.records.outcomes.get(EAST, "own")
    assert found
    assert found.value.phase == "Provisioned"
    return found.value.message


def written(kube: FakeKube) -> list[str]:
    return [call.name for call in kube.calls if call.verb == "apply"]


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster with a workload that reads what somebody else made there."""
    kube = fleet.register("east", env="production")
    kube.put(settings("1"))
    brings(fleet, workload())
    kube.calls.clear()
    return kube


def test_a_change_that_a_sweep_finds_restarts_it(fleet: Fleet, east: FakeKube) -> None:
    """Once; then all rests, as it did before."""
    sweep(fleet)
    assert (restarted(east), written(east)) == ("", [])
    east.put(settings("2"))
    sweep(fleet)
    mark = restarted(east)
    assert mark
    assert written(east) == ["web"]
    sweep(fleet)
    assert (restarted(east), written(east)) == (mark, ["web"])

    east.put(settings("3"))
    sweep(fleet)

    assert restarted(east) not in ("", mark)


def test_nobody_restarts_who_did_not_ask(fleet: Fleet) -> None:
    """Without the field nothing is read; and what was on is not taken away when it ends."""
    east = fleet.register("east", env="production")
    east.put(settings("1"))
    brings(fleet, workload(), more="")
    east.put(settings("2"))
    sweep(fleet)
    assert restarted(east) == ""
    brings(fleet, workload())
    assert restarted(east) == ""
    east.put(settings("3"))
    sweep(fleet)
    mark = restarted(east)
    assert mark

    brings(fleet, workload(), config("more", "v: '1'"), more="")
    east.put(settings("4"))
    sweep(fleet)

    assert restarted(east) == mark


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_every_kind_of_workload_restarts(fleet: Fleet, kind: str) -> None:
    """As Deployments do."""
    east = fleet.register("east", env="production")
    east.serve(Resource(GVK("apps", "v1", kind), f"{kind.lower()}s", namespaced=True))
    east.put(settings("1"))
    brings(fleet, workload(kind))
    east.put(settings("2"))
    sweep(fleet)

    assert restarted(east, GVK("apps", "v1", kind))


def test_what_the_profile_brings_itself_restarts_it_with_one_write(fleet: Fleet) -> None:
    """The workload is written after what it reads, and once."""
    east = fleet.register("east", env="production")
    brings(fleet, config("settings", "v: '1'"), workload())
    assert restarted(east) == ""
    east.calls.clear()
    brings(fleet, config("settings", "v: '2'"), workload())

    assert restarted(east)
    assert written(east) == ["settings", "web"]


def test_what_another_profile_brings_restarts_it_at_once(fleet: Fleet) -> None:
    """Though what Bellhop writes does not ring."""
    east = fleet.register("east", env="production")
    fleet.apply(join(profile(name="its"), holder("its", config("settings", "v: '1'"))))
    brings(fleet, workload())
    fleet.apply(holder("its", config("settings", "v: '2'")))
    fleet.pump()

    assert restarted(east)


def test_what_rings_restarts_it_at_once(fleet: Fleet) -> None:
    """A colleague edits what a profile brought; it is of the kinds that ring for this."""
    east = fleet.register("east", env="production")
    fleet.apply(join(profile(name="its"), holder("its", config("settings", "v: '1'"))))
    brings(fleet, workload())
    (there,) = east.objects(CONFIG)
    stored = east.put({**there, "data": {"v": "theirs"}})

    assert fleet.send("east", {"object": stored}).body["taken"] == 1
    fleet.pump()

    assert restarted(east)


def test_a_restart_is_no_drift(fleet: Fleet) -> None:
    """Drift repair leaves the annotation, and puts back what is read: that restarts nothing."""
    east = fleet.register("east", env="production")
    mode = f"{RELOADS}\n  syncMode: ContinuousWithDriftDetection"
    east.put(settings("1"))
    brings(fleet, workload(), config("own", "v: '1'"), more=mode)
    east.put(settings("2"))
    sweep(fleet)
    mark = restarted(east)
    assert mark
    (web,) = east.objects(DEPLOYMENT)
    fleet.send("east", {"object": east.put({**web, "spec": {"replicas": 7}})})
    fleet.pump()

    assert restarted(east) == mark
    (web,) = east.objects(DEPLOYMENT)
    assert web["spec"]["template"]["spec"]["containers"]


def test_what_is_gone_restarts_nothing_that_needs_it(fleet: Fleet, east: FakeKube) -> None:
    """Its pods could not start; what comes again as it was is no change, and another one is."""
    east.drop(*READ.at("v1"))
    sweep(fleet)
    assert restarted(east) == ""
    east.put(settings("1"))
    sweep(fleet)
    assert restarted(east) == ""
    east.drop(*READ.at("v1"))
    sweep(fleet)
    east.put(settings("2"))
    sweep(fleet)

    assert restarted(east)


def test_what_it_can_do_without_counts_also_when_it_comes(fleet: Fleet) -> None:
    """Pods that began without it do not see it."""
    east = fleet.register("east", env="production")
    brings(fleet, workload(optional="true"))
    assert restarted(east) == ""
    east.put(settings("1"))
    sweep(fleet)
    came = restarted(east)
    assert came
    east.drop(*READ.at("v1"))
    sweep(fleet)

    assert restarted(east) != came


def test_what_may_not_be_read_is_passed_over(fleet: Fleet, east: FakeKube) -> None:
    """Who may not know what it holds restarts nothing, brings the rest, and says so."""
    east.put(settings("2"))
    east.fail_with(DeniedError("may not"), "get")
    brings(fleet, workload(), config("more", "v: '1'"))
    assert "more" in written(east)
    assert remark(fleet).startswith(
        "no workload restarts when ConfigMap 'default/settings' changes"
    )
    east.fail_with(None)
    sweep(fleet)

    assert restarted(east)
    assert remark(fleet) == ""


def test_a_trigger_restarts_what_it_brought(fleet: Fleet) -> None:
    """By the same field."""
    east = fleet.register("east", env="production")
    east.put(settings("1"))
    fleet.apply(join(source(), trigger(more=RELOADS), holder("made", workload())))
    fleet.write("east", service("shop"))
    fleet.pump()
    east.put(settings("2"))
    sweep(fleet)

    assert restarted(east)


def test_a_preview_shows_no_restart_that_was(fleet: Fleet, east: FakeKube) -> None:
    """The annotation is a part of what is wanted: nothing would take it away."""
    east.put(settings("2"))
    sweep(fleet)
    brings(fleet, workload(), config("more", "v: '1'"), more=f"{RELOADS}\n  syncMode: DryRun")

    found = [each for each in now(fleet.installation(), "own") if isinstance(each, Previewed)]
    assert {each.change.key.name: each.change.action for each in found} == {
        "web": "No Action",
        "more": "Create",
    }


def test_a_restart_stays_for_all_that_is_written_later(fleet: Fleet, east: FakeKube) -> None:
    """Whatever else changes of a workload, its pods keep the annotation that restarted them."""
    east.put(settings("2"))
    sweep(fleet)
    mark = restarted(east)
    assert mark

    for replicas in (2, 3):
        brings(fleet, workload().replace("spec:", f"spec:\n  replicas: {replicas}", 1))

        assert written(east)[-1] == "web"
        assert restarted(east) == mark


def test_what_is_read_no_more_is_heard_of_no_more(fleet: Fleet, east: FakeKube) -> None:
    """Nor of a profile that is gone."""
    assert [each.profile for each in fleet.records.mounts.of(EAST, READ)] == ["own"]
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    sweep(fleet)

    assert list(fleet.records.mounts.of(EAST, READ)) == []
    assert list(fleet.records.watches.of(EAST)) == []
    assert not east.objects(DEPLOYMENT)


@pytest.mark.rest
def test_a_change_in_between_is_not_lost(tmp_path: Path) -> None:
    """Whenever a colleague writes again, pods end with what is there then.

    It takes seconds: it plays once for every fifth call of the store.
    """
    marks, met, number = set(), True, 0
    while met:
        fleet = Fleet(tmp_path / str(number))
        kube = fleet.register("east", env="production")
        kube.put(settings("1"))
        brings(fleet, workload())
        kube.put(settings("2"))
        with interrupted(fleet.records, number, partial(kube.put, settings("3"))) as found:
            sweep(fleet)
        met, number = found.met, number + 5
        sweep(fleet)
        if met:
            marks.add(restarted(kube))
        fleet.close()

    assert len(marks) == 1
    assert "" not in marks


@pytest.mark.rest
def test_a_death_restarts_it_once_and_in_the_end(tmp_path: Path) -> None:
    """Wherever it dies, pods read what is there; and are annotated with the same all along.

    It takes seconds: it plays a share of thirty deaths, each in an installation of its own.
    """
    marks = set()
    for steps in range(1, 60, 2 * SHARE):
        fleet = Fleet(tmp_path / str(steps))
        kube = fleet.register("east", env="production")
        kube.put(settings("1"))
        brings(fleet, workload())
        kube.put(settings("2"))
        fate = Fate()
        rig.interpose(fleet, partial(Mortal, fate=fate))
        fleet.access.clusters = {EAST: kube}
        fate.doom(steps)
        with suppress(Killed):
            sweep(fleet)
        fate.revive()
        rig.release(fleet)
        fleet.reread()
        fleet.clock.advance(rig.VISIBILITY)
        rig.tick(fleet)
        sweep(fleet)
        marks.add(restarted(kube))
        fleet.close()

    assert len(marks) == 1
    assert "" not in marks
