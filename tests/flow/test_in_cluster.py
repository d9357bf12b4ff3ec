"""A cluster whose forwarder is a Service in it: what `register --install` brings really rings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bellhop.engine.wiring import NAME
from bellhop.fleet import timeline
from bellhop.model.gvk import GVK
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.fakes.pod import Pod
from tests.flow.conftest import EXAMPLES, until

CLUSTER = "fleet/source"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
REGISTER = ("register", "cluster", "--namespace", "fleet", "--cluster", "source")


@pytest.fixture
def stand(tmp_path: Path, source_cluster: Cluster) -> Iterator[Stand]:
    """Bellhop, and a kubeconfig of a cluster that it does not know yet."""
    with Nursery() as nursery:
        one = Stand(tmp_path / "stand", nursery)
        source_cluster.kubeconfig(one.folder / "source.kubeconfig")
        one.serve()
        yield one
        one.close()


@pytest.fixture
def pod(tmp_path: Path, source_cluster: Cluster) -> Iterator[Pod]:
    """Where the forwarder's Deployment is to run."""
    with Nursery() as nursery:
        one = Pod(source_cluster, tmp_path, nursery)
        yield one
        one.close()


def rang(stand: Stand) -> set[str]:
    """Return the names of what the ledger says to have rung."""
    lines = timeline.read(stand.records(), datetime.now(UTC) - timedelta(hours=1))
    return {entry.object.rsplit("/", 1)[1] for _, entry in lines if entry.what == "rang"}


def test_an_installed_forwarder_rings(stand: Stand, pod: Pod, source_cluster: Cluster) -> None:
    """Registered with nothing but --install, what happens is known by its ring, by no sweep."""
    stand.do(
        *REGISTER,
        "--kubeconfig",
        str(stand.folder / "source.kubeconfig"),
        "--labels",
        "env=production",
        "--install",
    )
    pod.run()
    stand.do("apply", "-f", str(EXAMPLES / "welcome"))
    stand.settle(CLUSTER)
    configuration = pod.admin.get(WEBHOOK, "", NAME)
    user = User(source_cluster.kubeconfig())
    labels = {"team": "web"}

    def one_more_rings() -> bool:
        # API servers take up to two seconds to follow a configuration.
        name = f"shop-{datetime.now(UTC):%H%M%S%f}"
        user.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        )
        return bool(rang(stand))

    until("the Service is called", one_more_rings)
    user.close()

    assert configuration
    assert "url" not in json.dumps(configuration["webhooks"][0]["clientConfig"])
    failures = stand.do("show", "failures", "-o", "json")
    assert json.loads(failures) == []
