"""A cluster whose forwarder is a Service in it: after `register --install` it sends events."""

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
"""In which a sent event is in the event log, on a machine that is not busy."""


class InstalledForwarder:
    """A cluster that was registered with --install, and somebody who works in it."""

    def __init__(self, stand: Stand, pod: Pod, user: User) -> None:
        self.stand = stand
        self.pod = pod
        self._user = user
        self._numbers = count()

    def configuration(self) -> dict[str, Any]:
        """Read the webhook configuration of the API server."""
        return self.pod.admin.get(WEBHOOK, "", NAME) or {}

    def await_event(self, *, patience: float = 60) -> None:
        """Wait until a change now sends an event; API servers follow within two seconds."""
        made: set[str] = set()
        eventually("the Service is called", lambda: self.sends_event(made), patience=patience)

    def sends_event(self, made: set[str]) -> bool:
        """Make another change, and say whether the event log has one as sent by a webhook."""
        made.add(name := f"shop-{next(self._numbers)}")
        labels = {"team": "web"}
        metadata = {"name": name, "labels": labels}
        self._user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        deadline = time.monotonic() + ONE_MOMENT
        while time.monotonic() < deadline:
            if made & _sent_names(self.stand):
                return True
            time.sleep(0.1)
        return False


def _sent_names(stand: Stand) -> set[str]:
    """Return the names of the objects in the event log that a webhook sent."""
    lines = timeline.read_since(stand.records(), datetime.now(UTC) - timedelta(hours=1))
    return {entry.object.rsplit("/", 1)[1] for _, entry in lines if entry.what == "rang"}


@pytest.fixture
def installed(tmp_path: Path, source_cluster: Cluster) -> Iterator[InstalledForwarder]:
    """Serve, register with --install, run the pod of the installation, and apply a source."""
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
        yield InstalledForwarder(stand, pod, user)
        user.close()
        pod.close()
        stand.close()


def test_an_installed_forwarder_sends_events(installed: InstalledForwarder) -> None:
    """Registered with nothing but --install, changes are known by its events, by no resync."""
    installed.await_event()

    [webhook] = installed.configuration()["webhooks"]
    assert "url" not in webhook["clientConfig"]
    assert json.loads(installed.stand.do("show", "failures", "-o", "json")) == []


@pytest.mark.rest
def test_a_path_of_an_earlier_version_is_renewed_and_works(installed: InstalledForwarder) -> None:
    """With such a path no event comes; the next resync renews it, without a command.

    It takes a minute: new registrations are checked once a minute.
    """
    installed.await_event()
    records = installed.stand.records()
    kept = records.clusters.get(CLUSTER)
    assert kept
    old = {**kept.value.forwarder, "path": "/ring/Kq_0-Zx"}
    records.clusters.put(replace(kept.value, forwarder=old), expect=kept.token)
    records.catalog.change("clusters")
    installed.pod.admin.remove(WEBHOOK, "", NAME)
    # An API server may call for a moment who is no webhook any more.
    eventually("nothing is sent", lambda: not installed.sends_event(set()))

    installed.stand.do("resync", CLUSTER)

    # Who has just registered is looked after within a minute, and hastened by nobody.
    installed.await_event(patience=180)
