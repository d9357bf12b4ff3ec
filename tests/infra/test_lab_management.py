"""Two servers and Bellhop, as suites of Sveltos expect them; a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bellhop.core.gvk import GVK
from infra.demo.user import User
from infra.lab.binaries import Binaries
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
CLUSTERS = GVK("lib.projectsveltos.io", "v1beta1", "SveltosCluster")
DEPLOYMENTS = GVK("apps", "v1", "Deployment")
DEFINITIONS = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def lab(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[subprocess.Popen[str]]:
    """The command, whose output is read and which is ended by a signal."""
    if control_plane_binaries.controller_manager is None:
        pytest.skip("there is no controller manager")
    with subprocess.Popen(
        [sys.executable, "-m", "infra.lab", "management"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        yield process
        process.kill()


def test_runs_until_it_is_ended(tmp_path: Path, lab: subprocess.Popen[str]) -> None:
    """It prints two kubeconfigs, for servers that are as the suites look for them."""
    assert lab.stdout
    paths = [Path(lab.stdout.readline().strip()) for _ in range(2)]
    users = [User(yaml.safe_load(path.read_text())) for path in paths]
    hub, workload = users
    found = {each["metadata"]["namespace"]: each for each in hub.list(CLUSTERS)}

    assert [path.name for path in paths] == ["mgmt.kubeconfig", "clusterapi-workload.kubeconfig"]
    assert {name: each["metadata"]["name"] for name, each in found.items()} == {
        "mgmt": "mgmt",
        "default": "clusterapi-workload",
    }
    assert found["default"]["metadata"]["labels"] == {"cluster-name": "clusterapi-workload"}
    assert workload.names(DEFINITIONS) == []
    assert hub.names(DEPLOYMENTS, "projectsveltos") == ["addon-controller", "event-manager"]

    for each in users:
        each.close()
    lab.send_signal(signal.SIGTERM)
    assert lab.wait(60 * PATIENCE) == 130
    assert list(tmp_path.iterdir()) == []
