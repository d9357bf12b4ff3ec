"""Credentials that lack a right in a cluster: a refusal, and no failure that may pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.installation import Installation
from bellhop.state.deployment import Orphan
from infra.lab.cluster import Cluster
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.cli.registering import INGEST, limited

CLUSTER = "default/workload"


@pytest.fixture
def narrow(
    bellhop: Bellhop, here: Installation, kube: KubeClient, source_cluster: Cluster, tmp_path: Path
) -> Path:
    """The example deployed to a cluster whose credentials only read Services; its kubeconfig."""
    fleet.populate(here)
    rules = [{"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]}]
    path = limited(kube, source_cluster, tmp_path, rules)
    words = ("register", "cluster", CLUSTER, "--kubeconfig", str(path), "--no-forwarder")
    done = bellhop(*words)
    assert done.exit_code == 0, done.output
    orphan = Orphan("stray", "p", "u", "v1", fleet.now())
    here.records.findings.put(CLUSTER, fleet.POLICY._replace(name="orphan"), orphan)
    # Objects that are as they were applied are not asked about.
    assert bellhop("redeploy", fleet.PROFILE).exit_code == 0
    return path


def test_a_missing_right_is_a_refusal(bellhop: Bellhop, narrow: Path) -> None:
    """Each command that calls the cluster fails, and quotes what is forbidden."""
    register = f"register cluster {CLUSTER} --forwarder --kubeconfig {narrow} {' '.join(INGEST)}"
    for line, code, said in (
        ("doctor", 1, "may not"),
        (f"diff {fleet.PROFILE}", 2, "forbidden"),
        (f"delete orphans --cluster {CLUSTER}", 1, "forbidden"),
        (register, 1, "its credentials lack rights"),
    ):
        done = bellhop(*line.split())

        assert done.exit_code == code, f"{line}: {done.output}"
        assert said in done.output, line
