"""The page on migrating: typed beside a management cluster of Sveltos, whose objects all stay."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.settings import Settings
from infra.lab.binaries import Binaries
from infra.lab.cluster import Cluster
from tests.docs.typed import type_page
from tests.fakes.sveltos import OWNED, Sveltos

pytest_plugins = ["tests.kube_fixtures"]

PAGE = (Path(__file__).parents[2] / "docs/how-to/migrate-from-sveltos.md").read_text()
HUB = PAGE.partition("```yaml file=hub.yaml\n")[2].partition("```")[0]
OBJECTS = (
    (GVK("", "v1", "ConfigMap"), "default", "web"),
    (GVK("", "v1", "ResourceQuota"), "shop", "pods"),
)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def client(cluster: Cluster) -> KubeClient:
    return KubeClient(cluster.name, sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)


@pytest.fixture
def east(destination_cluster: Cluster) -> Iterator[KubeClient]:
    """The cluster that both tools deploy to, with a namespace of a team."""
    kube = client(destination_cluster)
    labels = {"team": "web"}
    kube.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}
    )
    yield kube
    kube.close()


@pytest.fixture
def sveltos(
    source_cluster: Cluster, destination_cluster: Cluster, east: KubeClient, folder: Path
) -> Iterator[Sveltos]:
    """A management cluster with what the page says, deployed."""
    hub = client(source_cluster)
    source_cluster.kubeconfig(folder / "hub.kubeconfig")
    played = Sveltos(hub, east, "shop")
    played.install()
    for namespace in ("fleet", "projectsveltos"):
        hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for each in registered(destination_cluster):
        hub.apply(each)
    (folder / "hub.yaml").write_text(HUB)
    type_shell("kubectl --kubeconfig hub.kubeconfig apply -f hub.yaml", folder)
    played.reconcile()
    yield played
    hub.close()


def registered(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Yield what `sveltosctl register cluster` makes of a cluster."""
    place = {"namespace": "fleet", "name": "east"}
    yield {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "SveltosCluster",
        "metadata": {**place, "labels": {"env": "production"}},
    }
    value = base64.b64encode(json.dumps(cluster.kubeconfig()).encode()).decode()
    place["name"] = "east-sveltos-kubeconfig"
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": place, "data": {"kubeconfig": value}}


@pytest.fixture
def folder(
    tmp_path: Path, control_plane_binaries: Binaries, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The reader's folder, with kubectl on the path."""
    kubectl = control_plane_binaries.kubectl
    assert kubectl, "the page needs kubectl"
    monkeypatch.setenv("BELLHOP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", f"{kubectl.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def type_shell(line: str, folder: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-ec", line], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def lives(east: KubeClient) -> list[str]:
    """Return the uids of what is deployed."""
    found = [east.get(*each) for each in OBJECTS]
    return [each["metadata"]["uid"] if each else "" for each in found]


def owners(east: KubeClient) -> list[str]:
    """Return which profiles the objects are marked with."""
    found = [east.get(*each) or {} for each in OBJECTS]
    return [each["metadata"].get("annotations", {}).get(OWNED[1], "") for each in found]


@pytest.mark.rest
def test_every_object_stays_from_sveltos_to_bellhop_and_back(
    sveltos: Sveltos, east: KubeClient, folder: Path
) -> None:
    """A reader types the page while Sveltos works on; no object is deleted or re-created."""
    before = lives(east)
    assert owners(east) == ["web", "sveltos-quota"]
    first, *rest = _SHELL.split(PAGE)
    with running(folder / "state", Settings(), Log(io.StringIO()), "127.0.0.1", 0):
        type_page(first, folder)
        for shell, typed in zip(rest[::2], rest[1::2], strict=True):
            type_shell(shell, folder)
            sveltos.reconcile()
            assert lives(east) == before, shell
            type_page(typed, folder)
            sveltos.reconcile()
            assert lives(east) == before, typed

    assert owners(east)[0] == "web"
    assert owners(east)[1].startswith("quota-")
