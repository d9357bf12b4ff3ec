"""`reloader`: workloads restart when a ConfigMap or Secret that their pods read has changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, Identity, Resource
from bellhop.deploy.pod_references import RELOADED
from bellhop.errors import DeniedError
from bellhop.operations.previews import PreviewedChange, preview_now
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet, OpenFleet, service
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.fakes.share import SHARE

CONFIG, DEPLOYMENT = GVK("", "v1", "ConfigMap"), GVK("apps", "v1", "Deployment")
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


def deploys(fleet: Fleet, *objects: str, more: str = RELOADS) -> None:
    """Apply a profile that deploys objects, and let all be done."""
    fleet.deploy(join(profile(more=more), holder("own", *objects)))


def restarted(kube: FakeKube, gvk: GVK = DEPLOYMENT) -> str:
    """Return what the workload's pods are annotated with."""
    (found,) = kube.objects(gvk)
    metadata = found["spec"]["template"].get("metadata") or {}
    return str((metadata.get("annotations") or {}).get(RELOADED, ""))


def remark(fleet: Fleet) -> str:
    """Return what is said of the cluster, where all is as it should be."""
    found = fleet.status_of()
    assert found.phase == "Provisioned"
    return found.message


def written(kube: FakeKube) -> list[str]:
    return [call.name for call in kube.calls if call.verb == "apply"]


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster with a workload that reads what somebody else made there."""
    kube = fleet.register("east", env="production")
    kube.put(settings("1"))
    deploys(fleet, workload())
    kube.calls.clear()
    return kube


def test_a_change_that_a_resync_finds_restarts_it(fleet: Fleet, east: FakeKube) -> None:
    """Once; then all rests, as it did before."""
    fleet.resync()
    assert (restarted(east), written(east)) == ("", [])
    east.put(settings("2"))
    fleet.resync()
    mark = restarted(east)
    assert mark
    assert written(east) == ["web"]
    fleet.resync()
    assert (restarted(east), written(east)) == (mark, ["web"])

    east.put(settings("3"))
    fleet.resync()

    assert restarted(east) not in ("", mark)


def test_nobody_restarts_who_did_not_ask(fleet: Fleet) -> None:
    """Without the field nothing is read; and what was on is not taken away when it ends."""
    east = fleet.register("east", env="production")
    east.put(settings("1"))
    deploys(fleet, workload(), more="")
    east.put(settings("2"))
    fleet.resync()
    assert restarted(east) == ""
    deploys(fleet, workload())
    assert restarted(east) == ""
    east.put(settings("3"))
    fleet.resync()
    mark = restarted(east)
    assert mark

    deploys(fleet, workload(), config("more", "v: '1'"), more="")
    east.put(settings("4"))
    fleet.resync()

    assert restarted(east) == mark


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_every_kind_of_workload_restarts(fleet: Fleet, kind: str) -> None:
    """As Deployments do."""
    east = fleet.register("east", env="production")
    east.serve(Resource(GVK("apps", "v1", kind), f"{kind.lower()}s", namespaced=True))
    east.put(settings("1"))
    deploys(fleet, workload(kind))
    east.put(settings("2"))
    fleet.resync()

    assert restarted(east, GVK("apps", "v1", kind))


def test_a_change_of_its_own_configmap_restarts_a_workload_with_one_write(fleet: Fleet) -> None:
    """The workload is written once, after the ConfigMap."""
    east = fleet.register("east", env="production")
    deploys(fleet, config("settings", "v: '1'"), workload())
    assert restarted(east) == ""
    east.calls.clear()
    deploys(fleet, config("settings", "v: '2'"), workload())

    assert restarted(east)
    assert written(east) == ["settings", "web"]


def test_a_change_by_another_profile_restarts_a_workload_at_once(fleet: Fleet) -> None:
    """Bellhop's own writes send no event."""
    east = fleet.register("east", env="production")
    fleet.apply(join(profile(name="its"), holder("its", config("settings", "v: '1'"))))
    deploys(fleet, workload())
    fleet.deploy(holder("its", config("settings", "v: '2'")))

    assert restarted(east)


def test_an_event_restarts_it_at_once(fleet: Fleet) -> None:
    """A ConfigMap of another profile is edited; its kind sends events for the reloader."""
    east = fleet.register("east", env="production")
    fleet.apply(join(profile(name="its"), holder("its", config("settings", "v: '1'"))))
    deploys(fleet, workload())
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
    deploys(fleet, workload(), config("own", "v: '1'"), more=mode)
    east.put(settings("2"))
    fleet.resync()
    mark = restarted(east)
    assert mark
    (web,) = east.objects(DEPLOYMENT)
    fleet.send("east", {"object": east.put({**web, "spec": {"replicas": 7}})})
    fleet.pump()

    assert restarted(east) == mark
    (web,) = east.objects(DEPLOYMENT)
    assert web["spec"]["template"]["spec"]["containers"]


def test_a_deleted_configmap_restarts_nothing_that_needs_it(fleet: Fleet, east: FakeKube) -> None:
    """Its pods could not start. A ConfigMap that is created again unchanged is no change."""
    east.drop(*READ.at("v1"))
    fleet.resync()
    assert restarted(east) == ""
    east.put(settings("1"))
    fleet.resync()
    assert restarted(east) == ""
    east.drop(*READ.at("v1"))
    fleet.resync()
    east.put(settings("2"))
    fleet.resync()

    assert restarted(east)


def test_what_it_can_do_without_counts_also_when_it_comes(fleet: Fleet) -> None:
    """Pods that began without it do not see it."""
    east = fleet.register("east", env="production")
    deploys(fleet, workload(optional="true"))
    assert restarted(east) == ""
    east.put(settings("1"))
    fleet.resync()
    came = restarted(east)
    assert came
    east.drop(*READ.at("v1"))
    fleet.resync()

    assert restarted(east) != came


def test_what_may_not_be_read_is_passed_over(fleet: Fleet, east: FakeKube) -> None:
    """A denied read restarts nothing; the rest is deployed, and the status says so."""
    east.put(settings("2"))
    east.fail_with(DeniedError("may not"), "get")
    deploys(fleet, workload(), config("more", "v: '1'"))
    assert "more" in written(east)
    assert remark(fleet).startswith(
        "no workload restarts when ConfigMap 'default/settings' changes"
    )
    east.fail_with(None)
    fleet.resync()

    assert restarted(east)
    assert remark(fleet) == ""


def test_a_trigger_restarts_what_it_deployed(fleet: Fleet) -> None:
    """By the same field."""
    east = fleet.register("east", env="production")
    east.put(settings("1"))
    fleet.apply(join(source(), trigger(more=RELOADS), holder("made", workload())))
    fleet.write("east", service("shop"))
    fleet.pump()
    east.put(settings("2"))
    fleet.resync()

    assert restarted(east)


def test_a_preview_shows_no_restart_that_was(fleet: Fleet, east: FakeKube) -> None:
    """The annotation is a part of the desired state: nothing would remove it."""
    east.put(settings("2"))
    fleet.resync()
    deploys(fleet, workload(), config("more", "v: '1'"), more=f"{RELOADS}\n  syncMode: DryRun")

    found = [
        each
        for each in preview_now(fleet.installation(), "own")
        if isinstance(each, PreviewedChange)
    ]
    assert {each.change.key.name: each.change.action for each in found} == {
        "web": "No Action",
        "more": "Create",
    }


def test_a_restart_stays_for_all_that_is_written_later(fleet: Fleet, east: FakeKube) -> None:
    """Pods keep the annotation that restarted them when other fields of a workload change."""
    east.put(settings("2"))
    fleet.resync()
    mark = restarted(east)
    assert mark

    for replicas in (2, 3):
        deploys(fleet, workload().replace("spec:", f"spec:\n  replicas: {replicas}", 1))

        assert written(east)[-1] == "web"
        assert restarted(east) == mark


def test_a_deleted_profile_is_in_no_reload_index(fleet: Fleet, east: FakeKube) -> None:
    """Nor of a profile that is deleted."""
    assert [each.profile for each in fleet.records.mounts.of(EAST, READ)] == ["own"]
    fleet.delete("ClusterProfile", "own")
    fleet.resync()

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
        deploys(fleet, workload())
        kube.put(settings("2"))
        with interrupted(fleet.records, number, partial(kube.put, settings("3"))) as found:
            fleet.resync()
        met, number = found.met, number + 5
        fleet.resync()
        if met:
            marks.add(restarted(kube))
        fleet.close()

    assert len(marks) == 1
    assert "" not in marks


@pytest.mark.rest
def test_a_death_restarts_it_once_and_in_the_end(open_fleet: OpenFleet) -> None:
    """In the end pods read the present values, and have one annotation all along.

    It takes seconds: it plays a share of thirty deaths, each in an installation of its own.
    """
    marks = set()
    for steps in range(1, 60, 2 * SHARE):
        fleet = open_fleet()
        kube = fleet.register("east", env="production")
        kube.put(settings("1"))
        deploys(fleet, workload())
        kube.put(settings("2"))
        rig.kill(fleet, rig.make_mortal(fleet), steps, fleet.resync)
        fleet.clock.advance(rig.VISIBILITY)
        rig.tick(fleet)
        fleet.resync()
        marks.add(restarted(kube))

    assert len(marks) == 1
    assert "" not in marks
