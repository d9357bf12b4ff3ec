"""A real forwarder process between a real API server and a small ingest that does as configured."""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import urllib3

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.adapters.local.server import Server
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, Resource
from bellhop.errors import BellhopError
from bellhop.registration import forwarder_manifests
from infra.lab.binaries import find
from infra.lab.cluster import Cluster
from infra.lab.port import free_port
from infra.lab.processes import Nursery, Process
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
CLUSTER = "fleet/source"
PATH = "/ring/7d4c1a9e52"
TOKEN = "token-of-the-source"  # A test's own.
HOUR = timedelta(hours=1)

CONFIG_MAP = Resource(GVK("", "v1", "ConfigMap"), "configmaps", namespaced=True)
SERVICE = Resource(GVK("", "v1", "Service"), "services", namespaced=True, subresources=("status",))
NAMESPACE = Resource(
    GVK("", "v1", "Namespace"), "namespaces", namespaced=False, subresources=("finalize", "status")
)
DEPLOYMENT = Resource(
    GVK("apps", "v1", "Deployment"),
    "deployments",
    namespaced=True,
    subresources=("scale", "status"),
)


def _scaler_versions() -> tuple[str, ...]:
    """Return the versions in which the API server of the tests serves autoscalers."""
    with suppress(BellhopError):
        if find().version >= (1, 26):
            return ("v1", "v2")
    return ("v1", "v2beta1", "v2beta2")


SCALER_VERSIONS = _scaler_versions()
SCALERS = tuple(
    Resource(
        GVK("autoscaling", version, "HorizontalPodAutoscaler"),
        "horizontalpodautoscalers",
        namespaced=True,
        subresources=("status",),
    )
    for version in (SCALER_VERSIONS[0], SCALER_VERSIONS[-1])
)
EXAMPLE = (CONFIG_MAP, SERVICE, DEPLOYMENT, NAMESPACE)
"""What the manifests in infra/base/examples show."""

WATCHED = (*EXAMPLE, *SCALERS)


class Inbox:
    """An HTTPS ingest that keeps what it takes, and admission webhooks that deny, or wait."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.events_status = HTTPStatus.OK
        self.times: list[float] = []
        self.batches: list[int] = []
        self.refused = 0
        self.asked: list[int] = []
        self.tokens = {TOKEN}
        self.status = HTTPStatus.OK
        self.fails: Callable[[dict[str, Any]], int] = lambda _: 0
        self.answers = threading.Event()
        self.answers.set()
        self.delayed: list[str] = []
        self.may_pass = threading.Event()
        self._port = free_port()
        self.identify()
        self.start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca(self) -> str:
        return self.authority.certificate_pem.decode()

    def named(self, name: str) -> list[dict[str, Any]]:
        """Return the items of all objects of a name."""
        return [item for item in self.items if _name(item) == name]

    def identify(self) -> None:
        """Have an authority that nobody knows yet, and a certificate of it from the next start."""
        now = datetime.now(UTC)
        self.authority = make_authority("an ingest", now=now, validity=HOUR)
        certificate, key = issue(self.authority, ["127.0.0.1"], now=now, validity=HOUR)
        self._identity = {"certificate_pem": certificate, "key_pem": key}

    def start(self) -> None:
        """Listen, again on the same port."""
        self._server = Server(
            self._respond, host="127.0.0.1", port=self._port, threads=8, **self._identity
        )
        self._server.start()

    def stop(self) -> None:
        """Let connections be refused."""
        self.answers.set()
        self.may_pass.set()
        self._server.stop()

    def _respond(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        if environ["PATH_INFO"] == "/deny":
            status, answer = HTTPStatus.OK, _review(json.loads(body), allowed=False)
        elif environ["PATH_INFO"] == "/delay":
            self.delayed.append(json.loads(body)["request"]["name"])
            if self.delayed[-1] != "probe":
                self.may_pass.wait()
            status, answer = HTTPStatus.OK, _review(json.loads(body), allowed=True)
        else:
            status, answer = self._take(environ, body)
        text = json.dumps(answer).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(text)))]
        start_response(f"{int(status)} x", headers)
        return [text]

    def _take(self, environ: dict[str, Any], body: bytes) -> tuple[int, dict[str, Any]]:
        arrived = time.time()
        self.answers.wait()
        assert environ["PATH_INFO"] == f"/clusters/{CLUSTER}"
        data = json.loads(body)
        assert data["apiVersion"] == "bellhop.dev/v1"
        assert data["kind"] in {"Alive", "Missed", "Observations"}
        events = [item["event"] for item in data.get("items", ()) if "event" in item]
        if events:
            self.events += events if self.events_status == HTTPStatus.OK else []
            return self.events_status, {}
        status: int = self.status
        if environ.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ") not in self.tokens:
            status = HTTPStatus.UNAUTHORIZED
        if data["kind"] == "Missed":
            self.asked.append(status)
            return status, {}
        if data["kind"] == "Alive":
            return status, {}
        if status != HTTPStatus.OK:
            self.refused += 1
            return status, {}
        failed = failures(data["items"], self.fails)
        numbers = {each["index"] for each in failed}
        taken = [item for number, item in enumerate(data["items"]) if number not in numbers]
        self.batches.append(len(taken))
        self.times += [arrived] * len(taken)
        self.items += taken
        return status, {"failed": failed}


def failures(
    items: list[dict[str, Any]], rule: Callable[[dict[str, Any]], int]
) -> list[dict[str, Any]]:
    """Return what ingest says of the items that fail by a rule, which gives 0 for the others."""
    failed = ((index, rule(item)) for index, item in enumerate(items))
    return [{"index": at, "status": status, "reason": "x"} for at, status in failed if status]


class Api:
    """Plain requests to the API server, as its administrator."""

    def __init__(self, cluster: Cluster) -> None:
        self._server = cluster.server
        self._pool = urllib3.PoolManager(
            ssl_context=ssl.create_default_context(cadata=cluster.ca_pem),
            headers={"Authorization": f"Bearer {cluster.token}"},
            retries=False,
            maxsize=8,
        )

    def ask(
        self, verb: str, path: str, body: Any = None, *, media: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        answer = self._pool.request(
            verb,
            f"{self._server}{path}",
            body=None if body is None else json.dumps(body),
            headers={**self._pool.headers, "Content-Type": media},
        )
        return answer.status, answer.json()

    def do(self, verb: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask for what must succeed; a PATCH is a merge patch."""
        media = "application/merge-patch+json" if verb == "PATCH" else "application/json"
        status, answer = self.ask(verb, path, body, media=media)
        assert status < 300, (verb, path, answer)
        return answer

    def create(self, name: str, **more: Any) -> dict[str, Any]:
        """Create a ConfigMap."""
        return self.do("POST", MAPS, config_map(name, **more))

    def close(self) -> None:
        self._pool.clear()


MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"


def config_map(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    finalizers: list[str] | None = None,
    **data: str,
) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels or {}, "finalizers": finalizers or []}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Rig:
    """The cluster wired as registration does it, and the forwarder with its own identity."""

    def __init__(self, folder: Path, cluster: Cluster, nursery: Nursery) -> None:
        self.folder = folder
        self.cluster = cluster
        self.inbox = Inbox()
        self.api = Api(cluster)
        self.admin = KubeClient("source", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
        self._nursery = nursery
        self._port, self._health_port = free_port(), free_port()
        self.authority = make_authority(
            "a cluster's forwarder", now=datetime.now(UTC), validity=HOUR
        )
        self.process: Process
        self.spool = folder / "spool"
        self.log = folder / "forwarder.log"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def grant(self) -> None:
        """Install the forwarder's rights, and a kubeconfig with the token of its account."""
        for manifest in (
            *forwarder_manifests.forwarder_rights(),
            forwarder_manifests.forwarder_role(WATCHED),
        ):
            self.admin.apply(manifest)
        token = self.admin.token_request(forwarder_manifests.NAMESPACE, forwarder_manifests.NAME)
        config = sanitise(self.cluster.kubeconfig(), reach=LOCAL).to_dict()
        config["users"][0]["user"] = {"token": token}
        (self.folder / "kubeconfig").write_text(json.dumps(config))

    def instruct(self, *, host: str = "127.0.0.1", **changes: str) -> None:
        """Write the Secret, with a new certificate each time."""
        certificate, key = issue(self.authority, [host], now=datetime.now(UTC), validity=HOUR)
        entries = {
            "ingest-url": self.inbox.url,
            "ingest-ca": self.inbox.ca,
            "cluster": CLUSTER,
            "token": TOKEN,
            "path": PATH,
            "tls.crt": certificate.decode(),
            "tls.key": key.decode(),
        }
        self.admin.apply(forwarder_manifests.forwarder_secret(entries | changes))

    def hook(self, path: str = PATH) -> None:
        """Have the API server call the webhook."""
        forwarder = {"url": self.url, "ca": self.authority.certificate_pem.decode(), "path": path}
        self.admin.apply(forwarder_manifests.webhook_configuration(WATCHED, forwarder))

    def deny(self) -> None:
        """Have another webhook deny what is labelled so."""
        self._another("deny", "denied")

    def delay(self) -> None:
        """Have another webhook keep what is labelled so waiting until `may_pass` is set."""
        self._another("delay", "delayed")
        eventually("it is called", self._is_delayed)

    def _is_delayed(self) -> bool:
        probe = config_map("probe", labels={"delayed": "yes"})
        self.api.do("POST", f"{MAPS}?dryRun=All", probe)
        return "probe" in self.inbox.delayed

    def _another(self, path: str, label: str) -> None:
        client = {
            "url": f"{self.inbox.url}/{path}",
            "caBundle": base64.b64encode(self.inbox.ca.encode()).decode(),
        }
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        webhook = {
            "name": f"{path}.example.com",
            "clientConfig": client,
            "rules": [{**rule, "operations": ["CREATE", "UPDATE", "DELETE"]}],
            "objectSelector": {"matchLabels": {label: "yes"}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        kind = "ValidatingWebhookConfiguration"
        metadata = {"name": path}
        self.admin.apply(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": metadata,
                "webhooks": [webhook],
            }
        )

    def start(self, *arguments: str) -> None:
        """Start the forwarder, again if it ended, without waiting for it."""
        argv = [
            *(sys.executable, "-m", "bellhop.forwarder"),
            *("--kubeconfig", str(self.folder / "kubeconfig")),
            *("--listen", f"127.0.0.1:{self._port}"),
            *("--health", f"127.0.0.1:{self._health_port}"),
            *("--spool", str(self.spool)),
            *arguments,
        ]
        self.process = self._nursery.start(argv, self.log, cwd=ROOT, env=_environment())

    def wait(self) -> None:
        """Wait until the forwarder is ready to be called."""
        eventually("the forwarder is ready", lambda: self.probe("/readyz")[0] == HTTPStatus.OK)

    def ready(self, *arguments: str) -> Rig:
        """Do all of it, and return once the API server calls the webhook."""
        self.grant()
        self.instruct()
        self.start(*arguments)
        self.wait()
        self.hook()
        self.await_webhook()
        return self

    def await_webhook(self) -> None:
        """Wait until a change of the configuration has reached the API server's admission."""
        for number in range(200):
            hints = self.metric("hints_total")
            self.api.create(f"ringing-{time.time_ns()}-{number}")
            if self.metric("hints_total") > hints:
                break
            time.sleep(0.01)
        eventually("all events are sent", lambda: self.metric("spooled") == 0)
        self.inbox.items.clear()
        self.inbox.times.clear()
        self.inbox.batches.clear()

    def kill(self) -> None:
        """End the forwarder as a crash would, with no chance to tidy up."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def settle(self) -> None:
        """Wait until nothing is owed."""
        eventually("nothing is owed", lambda: self.metric("spooled") == 0)

    def probe(self, path: str) -> tuple[int, str]:
        """Ask the health server; status 0 where it does not answer."""
        try:
            answer = urllib3.request(
                "GET", f"http://127.0.0.1:{self._health_port}{path}", retries=False
            )
        except urllib3.exceptions.HTTPError:
            return 0, ""
        return answer.status, answer.data.decode()

    def metric(self, name: str) -> float:
        for line in self.probe("/metrics")[1].splitlines():
            if line.startswith(f"bellhop_forwarder_{name} "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(name)

    def ring(self, body: bytes, path: str = PATH, verb: str = "POST") -> tuple[int, bytes]:
        """Call the forwarder as an API server does, or as another client."""
        context = ssl.create_default_context(cadata=self.authority.certificate_pem.decode())
        with urllib3.PoolManager(ssl_context=context, retries=False) as pool:
            answer = pool.request(verb, f"{self.url}{path}?timeout=2s", body=body)
            return answer.status, answer.data

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def close(self) -> None:
        self.inbox.stop()
        self.api.close()
        self.admin.close()


@contextmanager
def rigged(folder: Path, cluster: Cluster) -> Iterator[Rig]:
    """Make a rig, and end its processes."""
    with Nursery() as nursery:
        rig = Rig(folder, cluster, nursery)
        try:
            yield rig
        finally:
            rig.inbox.answers.set()
            nursery.close()
            rig.close()


def _environment() -> dict[str, str]:
    passed = ("PATH", "HOME", "COVERAGE_PROCESS_CONFIG")
    given = {name: os.environ[name] for name in passed if name in os.environ}
    # The forwarder of this checkout, whichever one is installed.
    return {**given, "PYTHONPATH": str(ROOT / "shared")}


def _name(item: dict[str, Any]) -> str:
    if "gone" in item:
        return str(item["gone"]["key"]).rsplit("/", 1)[1]
    return str(item["object"]["metadata"]["name"])


def _review(review: dict[str, Any], *, allowed: bool) -> dict[str, Any]:
    response = {"uid": review["request"]["uid"], "allowed": allowed}
    said = {} if allowed else {"status": {"message": "denied by the test"}}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {**response, **said},
    }
