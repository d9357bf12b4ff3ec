"""Writes that go on while a cluster's registration is renewed: every one sends an event."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import urllib3

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.local.clock import SystemClock
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.diagnosis import timeline
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import NAME
from bellhop.registration.renewal import renew
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from tests.fakes.kept import value_of
from tests.fakes.renewing import renewals_due
from tests.flow.conftest import Flow
from tests.scenarios import service
from tests.waiting import eventually

CLUSTER = "fleet/source"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


class Later(SystemClock):
    """The machine's clock, a while ahead."""

    def now(self) -> datetime:
        return datetime.now(UTC) + instructions.OVERLAP + timedelta(minutes=1)


class Writer:
    """Somebody who creates one Service after the other, and remembers which."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.written: list[str] = []

    def reach(self, more: int) -> None:
        """Wait until so many more are written."""
        goal = len(self.written) + more
        eventually("more is written", lambda: len(self.written) >= goal)

    @contextmanager
    def writing(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def _write(self) -> None:
        while not self._stop.wait(0.05):
            name = f"written-{len(self.written)}"
            manifest = service(name, sveltos="no")
            # Headless: a cluster has 254 addresses, and this may go on for long.
            manifest["spec"]["clusterIP"] = "None"
            self._flow.source.create(manifest)
            self.written.append(name)


def changed(flow: Flow) -> set[str]:
    """Return the names of the objects in the event log that a webhook sent."""
    records = flow.stand.records()
    lines = timeline.read_since(records, datetime.now(UTC) - timedelta(hours=1))
    return {entry.object.rsplit("/", 1)[1] for _, entry in lines if entry.what == "rang"}


def register_again(flow: Flow) -> None:
    url = value_of(flow.stand.records().clusters.get(CLUSTER))
    assert url is not None
    flow.stand.do(
        *("register", "cluster", "--namespace", "fleet", "--cluster", "source"),
        *("--kubeconfig", str(flow.stand.folder / "source.kubeconfig")),
        *("--forwarder-url", url.forwarder["url"]),
    )


def knock(flow: Flow) -> None:
    """Have the forwarder read its Secret, which it does by itself within a minute."""
    cluster = value_of(flow.stand.records().clusters.get(CLUSTER))
    assert cluster is not None
    trust = ssl.create_default_context(cadata=cluster.forwarder["ca"])
    with urllib3.PoolManager(ssl_context=trust, retries=False) as pool:
        assert pool.request("POST", f"{cluster.forwarder['url']}/nobody").status == 404


def has_followed(flow: Flow) -> bool:
    log = (flow.stand.folder / "forwarder-source.log").read_text()
    return any(json.loads(line)["message"] == "The Secret changed" for line in log.splitlines())


def settle(flow: Flow) -> None:
    """Do what is due some minutes later."""
    later = open_state(flow.stand.state, Settings(), clock=Later())
    try:
        assert renewals_due(later.installation) == [CLUSTER]
        renew(later.installation, CLUSTER)
        assert renewals_due(later.installation) == []
    finally:
        later.close()


def wired_path(flow: Flow) -> str:
    client = KubeClient(
        "test", sanitise(flow.source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL
    )
    try:
        found = client.get(WEBHOOK, "", NAME)
    finally:
        client.close()
    assert found is not None
    url: str = found["webhooks"][0]["clientConfig"]["url"]
    return url


@pytest.mark.parametrize("restart", [False, True], ids=["forwarder runs on", "forwarder restarts"])
def test_every_write_sends_an_event_while_a_registration_is_renewed(
    flow: Flow, *, restart: bool
) -> None:
    """Before the forwarder has read its new Secret, after it, and when the old path has ended."""
    flow.apply("network-policy")
    writer = Writer(flow)
    old_path = wired_path(flow)
    with writer.writing():
        writer.reach(10)
        register_again(flow)
        flow.stand.settle(CLUSTER)
        writer.reach(20)
        assert wired_path(flow) == old_path
        knock(flow)
        eventually("the forwarder follows", lambda: has_followed(flow))
        writer.reach(20)
    if restart:
        # While it is away nothing can send events: nobody writes meanwhile.
        flow.stand.kill("forwarder-source")
        flow.stand.forward("source")
    again = Writer(flow)
    again.written = list(writer.written)
    with again.writing():
        again.reach(10)
        settle(flow)
        flow.stand.settle(CLUSTER)
        assert wired_path(flow) != old_path
        again.reach(20)

    eventually("all are there", lambda: set(again.written) <= changed(flow))
