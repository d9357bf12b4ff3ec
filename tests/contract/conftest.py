"""One suite for each port, run on every provider that has it: `rig` is what a test gets of one.

A module of tests names its `PORT`. A provider is one file in `rigs`: its `Rig` declares which
`ports` it has, which `courtesies` of a queue (courtesies.py), and which fixture says `where` it
is to lie.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.settings import Settings
from infra.lab.cluster import Cluster
from tests.contract.real_cluster import EAST, open_fleet
from tests.fakes.clock import Hand
from tests.fakes.fleet import Fleet

ROOT = Path(__file__).parents[2]
RIGS = {
    path.stem: f"tests.contract.rigs.{path.stem}:Rig"
    for path in sorted((Path(__file__).parent / "rigs").glob("*.py"))
}

Other = Callable[..., "subprocess.Popen[str]"]


def load(rig_class: str) -> Any:
    """Return the class that `module:name` names."""
    module, _, name = rig_class.partition(":")
    return getattr(import_module(module), name)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "courtesy(*names): what a queue may lack, by declaration")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a module's tests on the providers that have its port, and the courtesies they need."""
    if "rig_class" in metafunc.fixturenames:
        port = metafunc.module.PORT
        needed = {
            name for mark in metafunc.definition.iter_markers("courtesy") for name in mark.args
        }
        rigs = {
            stem: name
            for stem, name in RIGS.items()
            if port in load(name).ports and needed <= set(load(name).courtesies)
        }
        assert rigs, f"{metafunc.definition.nodeid} runs on no provider"
        metafunc.parametrize("rig_class", list(rigs.values()), ids=list(rigs))


@pytest.fixture
def rig(rig_class: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    rig = load(rig_class)(str(request.getfixturevalue(load(rig_class).where)))
    yield rig
    rig.close()


@pytest.fixture
def other_process(rig: Any, rig_class: str) -> Iterator[Other]:
    """Start a role of other_process.py in another process, at the same place."""
    started: list[subprocess.Popen[str]] = []

    def start(role: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.contract.other_process", rig_class, rig.place, role]
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    """The administrator of a real cluster, as after its start."""
    client = KubeClient(EAST, sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    yield client
    client.close()


@pytest.fixture
def settings() -> Settings:
    """The settings of an installation that knows the cluster."""
    return Settings()


@pytest.fixture
def fleet(tmp_path: Path, kube: KubeClient, settings: Settings) -> Iterator[Fleet]:
    """An installation that knows the cluster."""
    with open_fleet(tmp_path, kube, settings) as one:
        yield one


@pytest.fixture
def hand() -> Hand:
    return Hand()
