"""A cluster whose forwarder is a Service in it: what `register --install` brings really rings."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.diagnosis import timeline
from bellhop.registration.forwarder_manifests import NAME
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.fakes.pod import Pod
from tests.flow.conftest import EXAMPLES, InProcessStand
from tests.waiting import eventually

pytestmark = pytest.mark.oldest

CLUSTER = "fleet/source"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
REGISTER = (
    *("register", "cluster", "--namespace", "fleet", "--cluster", "source"),
    *("--labels", "env=production"),
)
ONE_MOMENT = 3.0
"""In which what rang is in the ledger, even on a busy machine."""


class Ringing:
    """A cluster that was registered with --install, and somebody who works in it."""

    def __init__(self, stand: Stand, pod: Pod, user: User) -> None:
        self.stand = stand
        self.pod = pod
        self._user = user
        self._numbers = count()

    def configuration(self) -> dict[str, Any]:
        """Read what makes the API server ring."""
        return self.pod.admin.get(WEBHOOK, "", NAME) or {}

    def await_ring(self, *, patience: float = 60) -> None:
        """Wait until something that happens now rings; API servers follow within two seconds."""
        eventually(
            "the Service is called", lambda: self.rings(patience=ONE_MOMENT), patience=patience
        )

    def rings(self, *, patience: float) -> bool:
        """Have something happen, and say whether the ledger has it as rung."""
        name = f"shop-{next(self._numbers)}"
        labels = {"team": "web"}
        metadata = {"name": name, "labels": labels}
        self._user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if name in _rang(self.stand):
                return True
            time.sleep(0.1)
        return False


def _rang(stand: Stand) -> set[str]:
    """Return the names of what the ledger says to have rung."""
    lines = timeline.read(stand.records(), datetime.now(UTC) - timedelta(hours=1))
    return {entry.object.rsplit("/", 1)[1] for _, entry in lines if entry.what == "rang"}


@pytest.fixture
def ringing(tmp_path: Path, source_cluster: Cluster) -> Iterator[Ringing]:
    """Serve, register with --install, run the pod that this brings, and declare a source.

    It takes seconds: `bellhop serve`, a command and the pod start for each test.
    """
    with Nursery() as nursery:
        stand = InProcessStand(tmp_path / "stand", nursery)
        pod = Pod(source_cluster, tmp_path, nursery)
        user = User(source_cluster.kubeconfig())
        kubeconfig = stand.folder / "source.kubeconfig"
        source_cluster.kubeconfig(kubeconfig)
        stand.serve()
        stand.do(*REGISTER, "--kubeconfig", str(kubeconfig), "--install")
        pod.run()
        stand.do("apply", "-f", str(EXAMPLES / "welcome"))
        stand.settle(CLUSTER)
        yield Ringing(stand, pod, user)
        user.close()
        pod.close()
        stand.close()


def test_an_installed_forwarder_rings(ringing: Ringing) -> None:
    """Registered with nothing but --install, what happens is known by its ring, by no sweep."""
    ringing.await_ring()

    [webhook] = ringing.configuration()["webhooks"]
    assert "url" not in webhook["clientConfig"]
    assert json.loads(ringing.stand.do("show", "failures", "-o", "json")) == []


@pytest.mark.rest
def test_a_path_of_an_earlier_version_is_renewed_and_rings(ringing: Ringing) -> None:
    """With such a path no event comes; the next sweep renews it, without a command.

    It takes a minute: new registrations are checked once a minute.
    """
    ringing.await_ring()
    records = ringing.stand.records()
    kept = records.clusters.get(CLUSTER)
    assert kept
    old = {**kept.value.forwarder, "path": "/ring/Kq_0-Zx"}
    records.clusters.put(replace(kept.value, forwarder=old), expect=kept.token)
    records.catalog.change("clusters")
    ringing.pod.admin.remove(WEBHOOK, "", NAME)
    # An API server may call for a moment who is no webhook any more.
    eventually("nothing rings", lambda: not ringing.rings(patience=ONE_MOMENT))

    ringing.stand.do("resync", CLUSTER)

    # Who has just registered is looked after within a minute, and hastened by nobody.
    ringing.await_ring(patience=180)
