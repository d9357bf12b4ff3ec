"""A SveltosCluster, applied to a real API server that holds the configuration, and its Secret.

Nothing sends events here: resyncs find changes. All runs in this process, as `serve` runs it.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from bellhop.adapters.kube.client import KubeClient
from bellhop.cli.main import cli
from bellhop.core.gvk import GVK
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.settings import Settings
from infra.lab.cluster import Cluster
from tests.fakes.manifests import config, holder, profile
from tests.unit.configuration.objects import kube_of
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)

CONFIG = GVK("", "v1", "ConfigMap")
CLUSTER = GVK("lib.projectsveltos.io", "v1beta1", "SveltosCluster")
OFTEN = Settings(sweep_interval=timedelta(seconds=3))


class Shell:
    """Commands of one installation."""

    def __init__(self, state: Path) -> None:
        self._environment = {"BELLHOP_STATE": str(state), "BELLHOP_SWEEP_INTERVAL": "3"}

    def try_to(self, line: str) -> Result:
        """Type a command, whatever comes of it."""
        return CliRunner(env=self._environment).invoke(cli, line.split())

    def type(self, line: str) -> str:
        """Type a command that succeeds; return what it prints."""
        done = self.try_to(line)
        assert done.exit_code == 0, done.output
        return done.stdout

    def list_clusters(self) -> list[str]:
        """Return the registered clusters, by name."""
        found = json.loads(self.type("get clusters -o json"))["items"]
        return [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in found]


def cluster_and_secret(kubeconfig: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a SveltosCluster of production, and its Secret."""
    cluster = {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "SveltosCluster",
        "metadata": {"namespace": "prod", "name": "eu-1", "labels": {"env": "production"}},
        "spec": {},
    }
    data = base64.b64encode(json.dumps(kubeconfig).encode()).decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": "prod", "name": "eu-1-sveltos-kubeconfig"},
        "data": {"kubeconfig": data},
    }
    return cluster, secret


@pytest.fixture
def hub(source_cluster: Cluster) -> Iterator[KubeClient]:
    """The cluster that holds the configuration."""
    client = kube_of(source_cluster)
    yield client
    client.close()


@pytest.fixture
def target(destination_cluster: Cluster) -> Iterator[KubeClient]:
    """The cluster that is registered by an object."""
    client = kube_of(destination_cluster)
    yield client
    client.close()


def test_a_sveltos_cluster_registers_a_cluster_until_it_is_deleted(
    tmp_path: Path,
    source_cluster: Cluster,
    destination_cluster: Cluster,
    hub: KubeClient,
    target: KubeClient,
) -> None:
    """In whatever order it and its Secret come; its add-ons stay."""
    shell, path = Shell(tmp_path / "state"), tmp_path / "kubeconfig"
    source_cluster.kubeconfig(path)
    cluster, secret = cluster_and_secret(destination_cluster.kubeconfig())
    with running(tmp_path / "state", OFTEN, Log(io.StringIO()), "127.0.0.1", 0):
        shell.type(f"register cluster mgmt/mgmt --no-forwarder --kubeconfig {path}")
        shell.type("install crds mgmt/mgmt")
        setting = "set configuration-cluster mgmt/mgmt"
        eventually("all kinds are served", lambda: shell.try_to(setting).exit_code == 0)
        hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
        hub.apply(cluster)
        eventually("the Secret is missed", lambda: "no Secret" in shell.type("get configuration"))
        hub.apply(secret)
        eventually("it is registered", lambda: "prod/eu-1" in shell.list_clusters())
        for text in (profile(), holder("own", config("made"))):
            for each in yaml.safe_load_all(text):
                hub.apply(each)
        eventually("the add-on is deployed", lambda: target.get(CONFIG, "default", "made"))

        refused = shell.try_to("deregister cluster prod/eu-1")
        assert (refused.exit_code, "change it there with kubectl" in refused.stderr) == (1, True)
        hub.apply({**cluster, "spec": {"paused": True}})
        eventually(
            "it is paused", lambda: "`bellhop resume`" in shell.type("describe cluster prod/eu-1")
        )
        hub.remove(CLUSTER, "prod", "eu-1")
        eventually("it is deregistered", lambda: shell.list_clusters() == ["mgmt/mgmt"])

    assert target.get(CONFIG, "default", "made")
