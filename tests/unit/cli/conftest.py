"""A command line over a state folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellhop.adapters.kube.client import KubeClient
from bellhop.cli.main import cli
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.installation import Installation
from bellhop.runtime.embedded.state import make_folder, only_one, open_state
from bellhop.settings import Settings
from infra.lab.cluster import Cluster

Bellhop = Callable[..., Result]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state folder that the command line of the test works on."""
    return tmp_path / "state"


@pytest.fixture
def bellhop(state: Path, tmp_path: Path) -> Bellhop:
    """Run a command line and return what it printed and its exit code."""
    environment = {
        "BELLHOP_STATE": str(state),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "home-state"),
    }

    def run(*arguments: str, stdin: str | None = None, **extra: str) -> Result:
        return CliRunner(env={**environment, **extra}).invoke(cli, arguments, input=stdin)

    return run


@pytest.fixture
def here(state: Path) -> Iterator[Installation]:
    """The installation as its workers see it."""
    opened = open_state(state, Settings())
    yield opened.installation
    opened.close()


@pytest.fixture
def served(state: Path) -> Iterator[None]:
    """A process that holds the state folder, as `bellhop serve` does."""
    make_folder(state)
    with only_one(state):
        yield


@pytest.fixture
def kubeconfig(source_cluster: Cluster, tmp_path: Path) -> Path:
    """The administrator's kubeconfig of a real cluster."""
    path = tmp_path / "admin.kubeconfig"
    source_cluster.kubeconfig(path)
    return path


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    """The cluster, for a look at what was done to it."""
    client = KubeClient("test", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    yield client
    client.close()


@pytest.fixture
def register(bellhop: Bellhop, kubeconfig: Path) -> Bellhop:
    """Register the cluster as prod/eu-1."""

    def run(*arguments: str, path: Path = kubeconfig, **extra: str) -> Result:
        named = ("--namespace", "prod", "--cluster", "eu-1", "--kubeconfig", str(path))
        return bellhop("register", "cluster", *named, *arguments, **extra)

    return run
