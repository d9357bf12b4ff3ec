"""The page on the configuration cluster: typed where a real cluster holds the configuration."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from bellhop.adapters.kube.client import KubeClient
from bellhop.cli.main import cli
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.settings import Settings
from infra.lab.cluster import Cluster
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (
    Path(__file__).parents[2] / "docs/how-to/keep-the-configuration-in-a-cluster.md"
).read_text()
COMMANDS = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILE = PAGE.partition("file=web.yaml\n")[2].partition("```")[0]


def typed(*words: str) -> str:
    """Type a command, which must not fail, and return what it prints."""
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0 or words[0] == "doctor", result.output
    return result.output


@pytest.fixture
def kube(
    tmp_path: Path, source_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubeClient]:
    """A client of mgmt/mgmt, which is registered where an installation is served."""
    monkeypatch.setenv("BELLHOP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "hub.yaml"
    source_cluster.kubeconfig(path)
    kubeconfig = sanitise(source_cluster.kubeconfig(), reach=LOCAL)
    client = KubeClient("mgmt/mgmt", kubeconfig, reach=LOCAL)
    with running(tmp_path / "state", Settings(), Log(io.StringIO()), "127.0.0.1", 0):
        typed("register", "cluster", "mgmt/mgmt", "--kubeconfig", str(path), "--no-forwarder")
        yield client
    client.close()


def test_every_command_does_what_the_page_says(kube: KubeClient) -> None:
    """Its file is in force once it is applied to the cluster, and stays when that is ended."""
    said = {}
    for line in COMMANDS:
        _, *words = shlex.split(line)
        if words[0] == "resync":
            for each in yaml.safe_load_all(FILE):
                kube.apply(each)
        said[" ".join(words[:2])] = typed(*words)
        if words == ["get", "configuration"]:
            eventually(
                lambda: typed("get", "configuration"),
                lambda: len(_in_force()) == 2,
            )

    assert "all that is needed for it is there" in said["doctor mgmt/mgmt"]
    assert _in_force() == [
        ["ClusterProfile", "web", "files"],
        ["ConfigMap", "default/web", "files"],
    ]


def _in_force() -> list[list[str]]:
    rows = (line.split() for line in typed("get", "configuration").splitlines()[1:])
    return [row[:3] for row in rows if row[3] == "yes"]
