"""Charts that never become ready, before the real workers of the embedded mode."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import parse_all, read_documents
from bellhop.deploy.lease import UNKNOWN
from bellhop.errors import TemporaryError
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.ports.charts import DesiredRelease, Helm, Release
from bellhop.ports.tools import Tools
from bellhop.runtime.embedded.state import open_state
from bellhop.runtime.embedded.workers import Workers, make_stages
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.charts import FakeCharts, FakeRepositories
from tests.fakes.clock import START
from tests.fakes.fleet import FakeAccess
from tests.fakes.kube import FakeKube
from tests.fakes.releases import chart, charts
from tests.unit.deploy.features.charts.test_readiness import deployment, waited
from tests.waiting import eventually

EAST = "fleet/east"


class HangingCharts(FakeCharts):
    """A Helm that waits as long as what it deploys is not ready, until the test is over."""

    def __init__(self, access: FakeAccess) -> None:
        super().__init__(access.clusters)
        self.over = threading.Event()

    def deploy(
        self,
        kubeconfig: bytes,
        desired: DesiredRelease,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Release:
        release = super().deploy(kubeconfig, desired, cancelled)
        options = desired.options
        if desired.name in self.workloads and (options.wait or options.atomic):
            self.over.wait()
            raise TemporaryError("timed out")
        return release


@pytest.fixture
def charts_that_hang() -> Iterator[tuple[FakeAccess, HangingCharts]]:
    access = FakeAccess()
    access.clusters[EAST] = FakeKube(EAST)
    helm = HangingCharts(access)
    yield access, helm
    helm.over.set()


def apply(here: Installation, *texts: str) -> None:
    documents = (read_documents(text, source="test.yaml") for text in texts)
    here.declare.apply(parse_all([each for found in documents for each in found]))


def outcome(here: Installation, name: str) -> DeploymentStatus | None:
    kept = here.records.outcomes.get(EAST, name)
    return kept.value if kept else None


def is_in(here: Installation, name: str, phase: str) -> bool:
    found = outcome(here, name)
    return found is not None and found.phase == phase


def test_eight_charts_that_never_become_ready_delay_nothing(
    tmp_path: Path, charts_that_hang: tuple[FakeAccess, HangingCharts]
) -> None:
    """In their own cluster: another chart is deployed, and one of them withdrawn, meanwhile."""
    access, helm = charts_that_hang
    repositories = FakeRepositories(tmp_path)
    repositories.put("web", "1.0.0")
    embedded = open_state(tmp_path / "state", Settings())
    tools = Tools(Helm(repositories, helm))
    here = replace(embedded.installation, access=access, tools=tools)
    token = hashlib.sha256(b"east").hexdigest()
    labels = {"env": "production"}
    here.declare.register(Cluster("fleet", "east", labels, "v1.20.2", token, START))
    names = [f"never{number}" for number in range(8)]
    helm.workloads |= {name: deployment(name) for name in names}
    half = [", atomic: true" if number % 2 else "" for number in range(8)]
    log = Log(io.StringIO())
    workers = Workers(embedded, {"deploy": make_stages(here, UNKNOWN, log)["deploy"]}, log)
    workers.start()
    try:
        apply(here, *(waited(more, name=x, profile=x) for x, more in zip(names, half, strict=True)))
        eventually("all are begun", lambda: all(outcome(here, each) for each in names[::2]))
        apply(here, charts("good", of=chart(name="good")))
        eventually("the good one is deployed", lambda: is_in(here, "good", "Provisioned"))
        here.declare.delete([("ClusterProfile", "", "never0")])
        for each in {each.value.change for each in here.records.removals.all()}:
            here.declare.release(each)
        eventually("one is withdrawn", lambda: outcome(here, "never0") is None)
        assert all(is_in(here, each, "Provisioning") for each in names[2::2])
        assert not helm.over.is_set()
    finally:
        helm.over.set()
        workers.stop()
        embedded.close()
