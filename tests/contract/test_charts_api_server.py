"""Charts of profiles by Helm itself on a real API server: from declarations to what is there."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from bellhop.adapters.helm.charts import HelmCharts
from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.programs.box import never
from bellhop.adapters.programs.layer import download
from bellhop.core.gvk import GVK
from bellhop.errors import TemporaryError
from bellhop.operations.previews import preview_now
from bellhop.ports.charts import DesiredRelease, Release
from bellhop.state.messages import Apply
from tests.contract.real_cluster import EAST, read_outcome, retry
from tests.fakes.chart import packed
from tests.fakes.fleet import Fleet
from tests.fakes.releases import chart, charts

CONFIG = GVK("", "v1", "ConfigMap")


@pytest.fixture
def fleet(fleet: Fleet, tmp_path: Path) -> Fleet:
    """An installation with Helm, two versions of a chart, and a cluster."""
    fleet.charts = HelmCharts(download() / "helm")  # type: ignore[assignment]
    fleet.reread()
    for version in ("1.0.0", "1.1.0"):
        packed(tmp_path, "web", version)
    fleet.repositories.put("web", "1.0.0", "1.1.0")
    return fleet


def greeting(kube: KubeClient, name: str = "web") -> str | None:
    found = kube.get(CONFIG, "apps", f"{name}-config")
    return found["data"]["greeting"] if found else None


def test_a_release_comes_changes_and_goes(fleet: Fleet, kube: KubeClient) -> None:
    fleet.apply(charts(of=chart(values="greeting: one")))
    fleet.pump()
    assert read_outcome(fleet) == ("Provisioned", "")
    assert greeting(kube) == "one"
    kept = fleet.records.inventories.get(EAST, "p")
    assert kept
    assert {str(key) for key in kept.value.held} == {
        "helm.sh/Release/apps/web",
        "/ConfigMap/apps/web-config",
    }

    fleet.apply(charts(of=chart(version="1.1.0", values="greeting: two")))
    fleet.pump()
    assert greeting(kube) == "two"

    fleet.declare.label(EAST, {"env": "test"})
    fleet.release()
    fleet.pump()
    assert greeting(kube) is None
    assert read_outcome(fleet) == ("", "")


class RacedCharts(HelmCharts):
    """Deploys a release, of which somebody changes an object before the worker reads it."""

    def __init__(self, kube: KubeClient, *changes: dict[str, Any]) -> None:
        super().__init__(download() / "helm")
        self._kube = kube
        self._changes = list(changes)

    def deploy(
        self, kubeconfig: bytes, wanted: DesiredRelease, cancelled: Callable[[], bool] = never
    ) -> Release:
        release = super().deploy(kubeconfig, wanted, cancelled)
        if self._changes:
            assert self._kube.merge(CONFIG, "apps", "web-config", self._changes.pop())
        return release


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"greeting": "theirs"}},
        {"data": {"greeting": None}},
        {"metadata": {"labels": {"app.kubernetes.io/managed-by": "somebody"}}},
    ],
    ids=["a value", "a value removed", "a label"],
)
def test_a_change_right_after_a_deployment_is_no_baseline(
    fleet: Fleet, kube: KubeClient, change: dict[str, Any]
) -> None:
    """It is put back on the cluster's event, or by the next resync."""
    fleet.charts = RacedCharts(kube, change)  # type: ignore[assignment]
    fleet.reread()
    drift = "syncMode: ContinuousWithDriftDetection"
    fleet.apply(charts(of=chart(values="greeting: one"), more=drift))
    fleet.pump()
    fleet.publisher.publish([Apply("", "", "p", EAST, touched="/ConfigMap/apps/web-config")])
    fleet.pump()

    found = kube.get(CONFIG, "apps", "web-config")
    assert found
    assert found["data"] == {"greeting": "one"}
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    deployed = fleet.records.inventories.get(EAST, "p")
    retry(fleet)
    assert fleet.records.inventories.get(EAST, "p") == deployed


class Halted(HelmCharts):
    """Previews releases, and deploys none for now."""

    def deploy(
        self, kubeconfig: bytes, wanted: DesiredRelease, cancelled: Callable[[], bool] = never
    ) -> Release:
        del kubeconfig, wanted, cancelled
        raise TemporaryError("no release is deployed now")


def test_what_is_excluded_stays_as_others_decided(fleet: Fleet, kube: KubeClient) -> None:
    """No event and no upgrade writes it again; an object that is re-created has the chart's."""
    more = """syncMode: ContinuousWithDriftDetection
  driftExclusions: [{paths: [/data/greeting], target: {kind: ConfigMap, name: web-.*}}]"""
    fleet.apply(charts(of=chart(values="greeting: one"), more=more))
    fleet.pump()
    assert kube.merge(CONFIG, "apps", "web-config", {"data": {"greeting": "theirs"}})
    touched = Apply("", "", "p", EAST, touched="/ConfigMap/apps/web-config")
    deployed = fleet.records.inventories.get(EAST, "p")
    fleet.publisher.publish([touched])
    fleet.pump()
    assert fleet.records.inventories.get(EAST, "p") == deployed

    helm = fleet.charts
    fleet.charts = Halted(download() / "helm")  # type: ignore[assignment]
    fleet.reread()
    fleet.apply(charts(of=chart(values="greeting: two", version="1.1.0"), more=more))
    fleet.pump()
    diffs = [each.change.diff for each in preview_now(fleet.installation(), "p")]
    assert "+  greeting: theirs" in "".join(diffs)
    fleet.charts = helm
    fleet.reread()
    retry(fleet)
    assert greeting(kube) == "theirs"
    assert read_outcome(fleet) == ("Provisioned", "")
    assert kube.merge(CONFIG, "apps", "web-config", {"data": {"greeting": "later"}})
    fleet.publisher.publish([touched])
    fleet.pump()
    assert greeting(kube) == "later"

    kube.remove(CONFIG, "apps", "web-config")
    fleet.publisher.publish([touched])
    fleet.pump()
    assert greeting(kube) == "two"


def test_a_release_is_compared_with_its_cluster(fleet: Fleet, kube: KubeClient) -> None:
    """Nothing differs after a deployment; a changed and a deleted object do, and no more."""
    fleet.apply(charts(of=chart(values="greeting: one")))
    fleet.pump()

    def compared() -> dict[str, str]:
        found = list(preview_now(fleet.installation(), "p", live=True))
        return {each.change.key.name: each.change.action for each in found}

    assert compared() == {"web": "No Action"}
    assert kube.merge(CONFIG, "apps", "web-config", {"data": {"greeting": "theirs"}})
    assert compared() == {"web": "Update", "web-config": "Update"}
    kube.remove(CONFIG, "apps", "web-config")
    assert compared() == {"web": "Update", "web-config": "Create"}


def helm_process() -> int | None:
    """Return the Helm of this process that is upgrading a release."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"\0upgrade\0" in (place / "cmdline").read_bytes():
                return int(place.name)
    return None


class Killer:
    """Kills the next Helm that upgrades a release, so many seconds after it was begun."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._kill)
        self.found = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _kill(self) -> None:
        while not self._over.wait(0.002):
            process = helm_process()
            if process:
                self.found = True
                self._over.wait(self._delay)
                # The program has taken the place of its shell, or has ended already.
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                return


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.2, 0.4, 0.8])
def test_a_helm_that_is_killed_harms_no_release(
    fleet: Fleet, kube: KubeClient, delay: float
) -> None:
    """Whenever in an upgrade it is: the next try recovers what it left, and ends it."""
    fleet.apply(charts(of=chart(values="greeting: one")))
    fleet.pump()
    with Killer(delay) as killer:
        fleet.apply(charts(of=chart(values="greeting: two", version="1.1.0")))
        fleet.pump()
    assert killer.found
    assert greeting(kube) in ("one", "two")
    for _ in range(3):
        retry(fleet)
    assert greeting(kube) == "two"
    assert read_outcome(fleet) == ("Provisioned", "")
    release = fleet.charts.release(fleet.access.kubeconfig(EAST), "apps", "web")
    assert release
    assert (release.status, release.version) == ("deployed", "1.1.0")


def test_a_tenant_without_rights_gets_the_reason(fleet: Fleet, kube: KubeClient) -> None:
    labels = (
        "labels: {projectsveltos.io/serviceaccount-name: bot,"
        " projectsveltos.io/serviceaccount-namespace: team}"
    )
    fleet.apply(charts().replace("{name: p}", "{name: p, " + labels + "}"))
    fleet.pump()
    assert "system:serviceaccount:team:bot" in read_outcome(fleet)[1]
    assert greeting(kube) is None
