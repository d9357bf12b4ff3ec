"""All stages in one thread over the embedded adapters: events go in, a pump turns, clusters change.

The clusters are fakes and the clock stands still; store, queues and blobs are the real files.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from bellhop.adapters.kube.transport import user_of
from bellhop.adapters.kustomize.kustomizations import KubectlKustomizations
from bellhop.adapters.local.database import Database
from bellhop.adapters.local.queue import SCHEMA, SqliteQueue
from bellhop.adapters.local.store import FileBlobs, SqliteStore
from bellhop.adapters.metrics import Prometheus
from bellhop.api.kinds import parse_all, read_documents
from bellhop.catalog.cache import Catalogs
from bellhop.configuration.notifier import StatusNotifier
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.declarations.apply import ManifestWriter, WrittenManifest
from bellhop.deploy.lease import UNKNOWN
from bellhop.deploy.reconciler import ProfileReconciler
from bellhop.diagnosis import timeline
from bellhop.documents.document import Document
from bellhop.errors import MissingError
from bellhop.events.evaluator import Evaluator
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Request, Response
from bellhop.installation import Inbound, Installation
from bellhop.logs import Log
from bellhop.ports.charts import Helm
from bellhop.ports.kube import Kube
from bellhop.ports.queue import Delivery
from bellhop.ports.store import ANY, Item
from bellhop.ports.tools import Tools
from bellhop.rendering.cloud_events import BATCH
from bellhop.runtime.handlers import Handlers
from bellhop.runtime.handlers.configuration import make_status_handler
from bellhop.runtime.handlers.deploy import make_deploy_table
from bellhop.runtime.handlers.sweep import make_resync_table
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.consumer import Inbox, Stage
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.event_log import Bounds, Entry
from bellhop.state.messages import (
    CHARTS,
    INBOXES,
    Instantiate,
    Publisher,
    Resolve,
    Resync,
    WriteStatus,
)
from bellhop.state.payloads import SHORT
from bellhop.state.records import Records
from bellhop.state.schedule import Schedule
from bellhop.state.sealer import Sealer
from bellhop.state.versions import SCHEMAS
from bellhop.state.worker_pool import SEQUENTIAL, WorkerPool
from tests.fakes.charts import FakeCharts, FakeRepositories
from tests.fakes.clock import FakeClock
from tests.fakes.files import FakeFiles
from tests.fakes.kube import FakeKube

SERVICE = GVK("", "v1", "Service")
POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
EAST = "fleet/east"


@lru_cache(64)
def _read(text: str) -> Sequence[Document]:
    """Read what YAML says; histories declare the same few texts thousands of times."""
    return read_documents(text, source="test.yaml")


class CountingStore:
    """A store that counts how often it is asked, and the items that queries yield."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.counts: Counter[str] = Counter()

    def get(self, partition: str, sort: str) -> Item | None:
        self.counts["get"] += 1
        return self._store.get(partition, sort)

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        # How much a process told is written now and then: no step's cost.
        self.counts["put"] += not item.partition.startswith("ledgers")
        return self._store.put(item, expect=expect)

    def delete(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        self.counts["delete"] += 1
        return self._store.delete(partition, sort, expect=expect)

    def query(self, partition: str, **options: Any) -> Iterator[Item]:
        self.counts["query"] += 1
        for item in self._store.query(partition, **options):
            self.counts["item"] += 1
            yield item

    def all(self) -> Iterator[Item]:
        return self._store.all()


class FakeAccess:
    """Clients for the fleet's fakes.

    A client of a cluster in `versioned` goes on to lead where its credentials led when it was
    opened, until it is told of others, as real ones do; the rest lead to what is there now.
    """

    def __init__(self) -> None:
        self.clusters: dict[str, FakeKube] = {}
        self.versioned: set[str] = set()
        self._opened: dict[str, tuple[str, FakeKube]] = {}

    def open(self, cluster: str, *, version: str = "", account: str = "") -> Kube:
        kube = self._own(cluster, version)
        return kube.acting_as(account) if account else kube

    def kubeconfig(self, cluster: str, *, version: str = "", account: str = "") -> bytes:
        kube = self._own(cluster, version)
        if isinstance(kube, FakeKube):
            return json.dumps({"cluster": cluster, "account": account}).encode()
        # A test has put a client of a real API server here.
        document = kube.kubeconfig.to_dict()
        if account:
            document["users"][0]["user"]["as"] = user_of(account)
        return json.dumps(document).encode()

    def _own(self, cluster: str, version: str) -> FakeKube:
        if cluster not in self.clusters:
            raise MissingError(f"cannot open cluster '{cluster}': it has no credentials")
        if cluster not in self.versioned:
            return self.clusters[cluster]
        if cluster not in self._opened or version not in {"", self._opened[cluster][0]}:
            self._opened[cluster] = (version, self.clusters[cluster])
        return self._opened[cluster][1]


class Fleet:
    """One installation and its clusters."""

    def __init__(
        self,
        folder: Path,
        settings: Settings | None = None,
        clock: FakeClock | None = None,
        *,
        hands: WorkerPool = SEQUENTIAL,
        short: int = SHORT,
        schemas: Mapping[str, int] = SCHEMAS,
    ) -> None:
        self.folder = folder
        self.clock = clock or FakeClock()
        self.settings = settings or Settings()
        self.hands = hands
        self.store = CountingStore(SqliteStore(folder / "store.db", clock=self.clock))
        # One for all, as in the embedded mode: opening one for each takes longer than most tests.
        self._inboxes = Database(folder / "queue.db", SCHEMA)
        self.queues = {
            name: SqliteQueue(
                self._inboxes, name, clock=self.clock, attempts=self.settings.attempts
            )
            for name in (*INBOXES, CHARTS)
        }
        self.records = Records(
            self.store,
            FileBlobs(folder / "blobs"),
            Sealer(bytes(32)),
            self.clock,
            # A new installation looks for lines in every hour of it.
            Bounds(age=timedelta(days=1)),
            short=short,
            schemas=schemas,
        )
        self.access = FakeAccess()
        self.repositories = FakeRepositories(folder)
        self.charts = FakeCharts(self.access.clusters)
        self.kustomizations = KubectlKustomizations()
        self.files = FakeFiles()
        self.output = io.StringIO()
        self.catalogs = Catalogs(self.records)
        self.peers = UNKNOWN
        self._wire()

    def _wire(self) -> None:
        log = Log(self.output)
        queues, records, catalogs = self.queues, self.records, self.catalogs
        publisher = self.publisher = Publisher(queues)
        helm = Helm(self.repositories, self.charts)
        self.tools = Tools(helm, self.kustomizations, self.files)
        self.reconciler: Any = ProfileReconciler(
            catalogs,
            self.access,
            publisher,
            self.settings,
            log,
            metrics=Prometheus(LOCAL),
            peers=self.peers,
            pool=self.hands,
            tools=self.tools,
        )
        deploy = make_deploy_table(records, catalogs, publisher, self.settings, self.reconciler)
        deploy[WriteStatus] = make_status_handler(
            records, catalogs, self.access, self.settings, log, pause=timedelta(0)
        )
        follow = StatusNotifier(records, catalogs, publisher).follow
        # Tests let things happen between the steps of both.
        bound: Any = deploy
        self.instantiation: Any = bound[Instantiate].__self__
        self.resolution: Any = bound[Resolve].__self__
        self.handlers = make_resync_table(
            records, catalogs, self.access, publisher, self.settings, log
        )
        self.stages: dict[str, Stage] = {
            "evaluate": Evaluator(records, catalogs, publisher, self.settings, log),
            "deploy": Handlers("deploy", deploy, follow),
            "sweep": Handlers("sweep", self.handlers, follow),
        }
        self.inboxes = {
            name: Inbox(name, self.stages[stage], self.settings, log)
            for name, stage in {**INBOXES, CHARTS: "deploy"}.items()
        }
        self.ingest = Ingest(records, publisher, self.settings, log)
        self.declare = ManifestWriter(records, catalogs, publisher, self.settings)
        self.schedule = Schedule(records, publisher, self.settings, log)

    def register(self, name: str, *, credentials: str = "", **labels: str) -> FakeKube:
        """Add a cluster `fleet/NAME` whose token is its name."""
        key = f"fleet/{name}"
        kube = self.access.clusters.setdefault(key, FakeKube(key))
        if credentials:
            self.access.versioned.add(key)
        self.declare.register(
            Cluster(
                namespace="fleet",
                name=name,
                labels=labels,
                kubernetes=kube.version(),
                token_digest=hashlib.sha256(name.encode()).hexdigest(),
                registered_at=self.clock.now(),
                credentials=credentials,
            )
        )
        return kube

    def apply(self, *texts: str) -> list[WrittenManifest]:
        """Declare what YAML says."""
        documents = [each for text in texts for each in _read(text)]
        return self.declare.apply(parse_all(documents))

    def deploy(self, *texts: str) -> list[WrittenManifest]:
        """Declare what YAML says, and work until no message is due."""
        written = self.apply(*texts)
        self.pump()
        return written

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete one manifest, and work until no message is due."""
        self.declare.delete([(kind, namespace, name)])
        self.pump()

    def wait(self, time: timedelta = timedelta(hours=1), times: int = 1) -> None:
        """Let time pass, once or several times, and each time work until no message is due."""
        for _ in range(times):
            self.clock.advance(time)
            self.pump()

    def apply_example(self, name: str) -> list[WrittenManifest]:
        """Declare one of the examples of the docs."""
        folder = Path(__file__).parents[2] / "docs" / "examples" / name
        return self.apply(*(path.read_text() for path in sorted(folder.glob("*.yaml"))))

    def status_of(self, profile: str = "own", cluster: str = EAST) -> DeploymentStatus:
        """Return the deployment status of a profile in a cluster, which must have one."""
        found = self.records.outcomes.get(cluster, profile)
        assert found, f"'{profile}' has no status in '{cluster}'"
        return found.value

    def send(self, cluster: str, *items: Mapping[str, Any], token: str = "") -> Response:
        """Send a batch as the forwarder of a cluster does."""
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": list(items)}
        return self.post(cluster, batch, token=token)

    def post(self, cluster: str, body: Any, *, token: str = "") -> Response:
        """Send any body to ingest."""
        text = json.dumps(body).encode()
        key = cluster if "/" in cluster else f"fleet/{cluster}"
        return self.ingest.respond(Request(key, token or cluster, text))

    def tell(self, cluster: str, *events: Mapping[str, Any], token: str = "") -> Response:
        """Send CloudEvents in one batch, as a broker does."""
        text, media = json.dumps(events).encode(), BATCH
        return self.ingest.respond(Request(f"fleet/{cluster}", token or cluster, text, media))

    def write(self, cluster: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """Write an object in a cluster, and have it forwarded."""
        stored = self.access.clusters[f"fleet/{cluster}"].put(manifest)
        reply = self.send(cluster, {"object": stored})
        assert reply.status == 200
        return stored

    def drop(self, cluster: str, manifest: Mapping[str, Any]) -> None:
        """Delete an object in a cluster, and have that forwarded."""
        key = ObjectKey.of(manifest)
        self.access.clusters[f"fleet/{cluster}"].drop(*key)
        deleted = {
            "key": str(key),
            "uid": manifest["metadata"]["uid"],
            "version": int(manifest["metadata"]["resourceVersion"]),
        }
        assert self.send(cluster, {"gone": deleted}).status == 200

    def pump(self, *, limit: int = 10_000) -> int:
        """Work until no message is due; return how many were worked on."""
        worked = 0
        busy = True
        self.schedule.tick()
        while busy:
            busy = False
            for name in self.inboxes:
                deliveries = self.queues[name].receive(1, wait=timedelta(0))
                self.work(name, deliveries)
                worked += len(deliveries)
                busy = busy or bool(deliveries)
            assert worked < limit, "the messages never end"
        return worked

    def drain(self, *inboxes: str) -> int:
        """Work until nothing is due in some inboxes, each once in their order; all others wait."""
        worked = 0
        for inbox in inboxes:
            while deliveries := self.queues[inbox].receive(10, wait=timedelta(0)):
                self.work(inbox, deliveries)
                worked += len(deliveries)
        return worked

    def resync(self, cluster: str = EAST, *, full: bool = False) -> None:
        """Resync a cluster, and work until no message is due."""
        self.publisher.publish([Resync(cluster, full=full)])
        self.pump()

    def work(self, inbox: str, deliveries: Sequence[Delivery]) -> None:
        """Work on deliveries, and settle each, as a worker does."""
        for delivery, result in self.inboxes[inbox].work(deliveries):
            self.queues[inbox].settle(delivery, result)

    def ledger(self) -> list[Entry]:
        """Return the event log of today."""
        day = self.clock.now().isoformat()[:10]
        return [entry for _, entry in timeline.read_day(self.records, day)]

    def installation(self) -> Installation:
        """Return it as commands see it; nobody asks it for secrets, and nothing listens."""
        secrets: Any = None
        return Installation(
            settings=self.settings,
            records=self.records,
            catalogs=self.catalogs,
            declare=self.declare,
            secrets=secrets,
            access=self.access,
            reach=LOCAL,
            publisher=self.publisher,
            dead=dict(self.queues),
            inbound=Inbound("", ""),
            tools=self.tools,
        )

    def release(self) -> None:
        """Remove all that is held of changes of what is declared, as a user does."""
        held = {each.value.change for each in self.records.removals.all()}
        for change in sorted(held):
            self.declare.release(change)

    def reread(self) -> None:
        """Forget everything that is kept in memory, as a new process would."""
        self.catalogs = Catalogs(self.records)
        self._wire()

    def close(self) -> None:
        """Close the files."""
        self._inboxes.close()
        self.store._store.close()


OpenFleet = Callable[..., Fleet]
"""Opens an installation with other settings than those of the fixture `fleet`."""


def cloud_event(subject: str, kind: str = "built", **more: Any) -> dict[str, Any]:
    """Return a CloudEvent of a CI about a project; its id is of the subject, the kind and time."""
    event = {
        "specversion": "1.0",
        "id": f"{subject}/{kind}/{more.get('time', '')}",
        "source": "ci.example/builds",
        "type": f"example.build.{kind}",
        "subject": subject,
        "data": {"image": f"registry.example/{subject}"},
    }
    return {**event, **more}


def service(name: str, namespace: str = "default", **changes: Any) -> dict[str, Any]:
    """Return a Service as an API server would store it."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": {"sveltos": "fv"}},
        "spec": {
            "selector": {"app": name},
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}],
        },
        "status": {"loadBalancer": {}},
    }
    return {**manifest, **changes}


def with_address(manifest: dict[str, Any], ip: str = "203.0.113.7") -> dict[str, Any]:
    """Return a Service that has got a load balancer's address."""
    return {**manifest, "status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}
