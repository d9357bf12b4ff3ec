"""`bellhop serve` is killed as it writes into the cluster that holds the configuration."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.identity import MANAGER
from infra.lab.certificates import write_certificates
from infra.lab.flags import SERVED_ADDRESSES
from tests.fakes.manifests import config, holder, profile
from tests.flow.test_configuration_cluster import PROFILE, Hub
from tests.flow.test_configuration_cluster import hub as _hub
from tests.lab.http_server import HttpServer, Request, Response
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)

hub = _hub
CONFIG = PROFILE.group
SUMMARY = GVK(CONFIG, "v1beta1", "ClusterSummary")
OWN = ObjectKey(PROFILE, "", "own")
EAST = "clusterSelector: {matchLabels: {dep: eng}}"
WRITES = {
    "finalizer": ("clusterprofiles", "", "UPDATE"),
    "status": ("clusterprofiles", "status", "UPDATE"),
    "mirror": ("clustersummaries", "", "CREATE"),
    "status of the mirror": ("clustersummaries", "status", "UPDATE"),
    "deletion of the mirror": ("clustersummaries", "", "DELETE"),
}


class Killer(HttpServer):
    """An admission webhook that kills `serve` at its first write of each sort.

    It answers only then, so the API server stores what a dead process has asked for.
    """

    def __init__(self, folder: Path, kill: Callable[[], None]) -> None:
        folder.mkdir()
        self.authority = write_certificates(folder, "killer", SERVED_ADDRESSES)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
        super().__init__(tls)
        self._kill = kill
        self._lock = threading.Lock()
        self.called = False
        self.killed: list[str] = []

    def respond(self, request: Request) -> Response:
        """Allow every write, whoever lives."""
        review = json.loads(request.body)
        asked = review["request"]
        self.called = True
        by_bellhop = (asked.get("options") or {}).get("fieldManager") == MANAGER
        ours = by_bellhop or asked["operation"] == "DELETE"
        found = asked["resource"]["resource"], asked.get("subResource", ""), asked["operation"]
        with self._lock:
            sort = next((name for name, each in WRITES.items() if each == found), "")
            if sort and ours and sort not in self.killed:
                # What a dead process had asked for may come a moment later.
                with suppress(ProcessLookupError):
                    self._kill()
                    self.killed.append(sort)
        answer = {"uid": asked["uid"], "allowed": True}
        return Response.of(HTTPStatus.OK, {**review, "request": None, "response": answer})

    def manifest(self) -> dict[str, Any]:
        """Return the configuration by which an API server calls it."""
        names = {"/".join(filter(None, each[:2])) for each in WRITES.values()}
        rule = {"apiGroups": [CONFIG], "apiVersions": ["*"], "operations": ["*"]}
        authority = base64.b64encode(self.authority.encode()).decode()
        hook = {
            "name": "killer.example.com",
            "clientConfig": {"url": self.address, "caBundle": authority},
            "rules": [{**rule, "resources": sorted(names)}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "killer"},
            "webhooks": [hook],
        }


@pytest.fixture
def killer(hub: Hub, tmp_path: Path) -> Iterator[Killer]:
    """Have the API server call a killer."""
    with Killer(tmp_path / "killer", lambda: hub.stand.kill("serve")) as one:
        hub.source.create(one.manifest())

        def is_called() -> bool:
            hub.post(profile("clusterSelector: {matchLabels: {dep: nobody}}", name="probe"))
            return one.called

        eventually("the API server calls it", is_called)
        yield one


def test_ends_the_same_when_serve_is_killed_as_it_writes(hub: Hub, killer: Killer) -> None:
    """By SIGKILL, at a finalizer, a status and a mirror; nothing is lost and nothing is left."""

    def survive(what: str, done: Callable[[], object]) -> None:
        def restarted() -> bool:
            if hub.stand.processes["serve"].returncode() is not None:
                # The next one may be killed before it is ready.
                with suppress(RuntimeError):
                    hub.stand.serve()
            return bool(done())

        eventually(lambda: f"{what}; killed at {killer.killed}", restarted, patience=90)

    hub.post(profile(EAST), holder("own", config("one")))
    survive("it is deployed", hub.is_deployed("one"))
    survive("its status is written", lambda: _is_ready(hub.source.get(OWN)))
    survive("it has a summary", lambda: _owners(hub, "own") == [OWN.name])

    hub.source.delete(OWN)
    survive("it is gone", lambda: hub.source.get(OWN) is None)
    survive("its summary, too", lambda: _owners(hub, "own") == [])
    survive("nothing is deployed", hub.is_deployed())
    survive("nothing is known of it", lambda: hub.find(OWN) is None)
    assert sorted(killer.killed) == sorted(WRITES)


def _is_ready(found: dict[str, Any] | None) -> bool:
    status = (found or {}).get("status") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    return conditions.get("Ready") == "True" and "updatedClusters" in status


def _owners(hub: Hub, name: str) -> list[str]:
    """Return the owners of the summaries of a profile that have a status."""
    return [
        owner["name"]
        for each in hub.source.list(SUMMARY)
        if each["metadata"]["name"].startswith(f"{name}-") and each.get("status")
        for owner in each["metadata"]["ownerReferences"]
    ]
