"""An installation on Google's emulators, and its functions as buildpacks start them.

Pub/Sub pushes into the functions by itself; Cloud Scheduler is the caller of `tick`.
"""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bellhop.adapters.gcp.queue import DEAD
from bellhop.adapters.gcp.services import Services
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import ObjectKey
from bellhop.errors import TemporaryError, UnreachableError
from bellhop.logs import Log
from bellhop.runtime.gcp.installation import installation
from bellhop.runtime.gcp.resources import Resources, open_resources
from bellhop.state.messages import CHARTS, INBOXES
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from infra.package.programs import PLACES
from tests.functions.lab import FEEDS
from tests.functions.owner import Owner, name_cluster
from tests.functions.writes import Writes
from tests.lab.frameworks import Answer, Function, Functions
from tests.lab.google_storage import Storage
from tests.scenarios import ADDRESSES, EXAMPLES, SERVICE, TWIN, WEB
from tests.waiting import eventually

BATCH = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}

STAGES = {
    "ingest": "http",
    "evaluate": "cloudevent",
    "deploy": "cloudevent",
    "charts": "cloudevent",
    "sweep": "cloudevent",
    "schedule": "http",
}
"""The stages, and how their functions are called."""

KEYS = {
    "sealing-key": base64.b64encode(bytes(range(32))),
    "ingest-key": base64.b64encode(bytes(range(32, 64))),
}
NAME = "lab"
DEADLINE = 10
"""Seconds that Pub/Sub waits for an answer."""

PATIENCE = 60.0


class Project:
    """What Terraform would have made, in a project of its own, with `charts` or without.

    After so many `tries`, if any, Pub/Sub itself buries a message. Its emulator pushes again each
    second; under a retry policy it would lose what it is refused together with others.
    """

    def __init__(
        self,
        place: str,
        storage: Storage,
        *,
        tries: int | None = None,
        charts: bool = False,
        **settings: object,
    ) -> None:
        stored = json.loads(place)
        self.name = stored["project"]
        self.emulators: dict[str, str] = stored["emulators"]
        self._tries = tries
        self._output = io.StringIO()
        self.services = Services(self.name, emulators=self.emulators)
        inboxes = FEEDS if charts else INBOXES
        self.topics = {inbox: f"{NAME}-{inbox}" for inbox in inboxes}
        self.environment = {
            "BELLHOP_PROJECT": self.name,
            "BELLHOP_DATABASE": "(default)",
            "BELLHOP_BUCKET": f"{NAME}-{self.name}",
            "BELLHOP_TOPICS": json.dumps(self.topics),
            "BELLHOP_SECRETS": NAME,
            "BELLHOP_KEY_SECRET": f"{NAME}-sealing-key",
            "BELLHOP_INGEST_KEY_SECRET": f"{NAME}-ingest-key",
            "BELLHOP_GUARD": f"{NAME}-{self.name}-clusters",
            "BELLHOP_INGEST_URL": "https://ingest.example",
            "THREADS": "4",
            **{f"BELLHOP_{name.upper()}": str(value) for name, value in settings.items()},
        }
        storage.make(self.environment["BELLHOP_BUCKET"])
        storage.make(self.environment["BELLHOP_GUARD"])
        for name, key in KEYS.items():
            self._make_secret(f"{NAME}-{name}", key)
        self.make_topics()

    def make_topics(self) -> None:
        """Make all topics, and subscriptions of the dead ones; again where they were lost."""
        for topic in self.topics.values():
            for each in (topic, topic + DEAD):
                self._call("publisher", "create_topic", {"name": self._path("topics", each)})
            self._subscribe(topic + DEAD)

    def subscribe(self, functions: Functions) -> None:
        """Have all topics pushed into functions."""
        for inbox, topic in self.topics.items():
            place = self._path("topics", topic)
            buried = {
                "dead_letter_topic": self._path("topics", topic + DEAD),
                "max_delivery_attempts": self._tries,
            }
            self._subscribe(
                topic,
                push_config={"push_endpoint": f"{functions[FEEDS[inbox]].url}/{place}"},
                **({"dead_letter_policy": buried} if self._tries else {}),
            )

    def hold(self) -> None:
        """Have all topics keep what is published until somebody pulls it."""
        for topic in self.topics.values():
            self._subscribe(topic)

    def open(self, emulators: Mapping[str, str] | None = None, *, logs: bool = False) -> Resources:
        """Open the installation, as somebody else does beside its functions."""
        services = Services(self.name, emulators=emulators) if emulators else self.services
        return open_resources(self.environment, services, Log(self._output), reach=LOCAL, logs=logs)

    def lines(self) -> list[dict[str, Any]]:
        """Return what was logged beside the functions."""
        return [json.loads(line) for line in self._output.getvalue().splitlines()]

    def owner(self) -> Owner:
        """Return who registers clusters and declares things."""
        return Owner(installation(self.open()))

    def close(self) -> None:
        self.services.close()

    def _subscribe(self, topic: str, **more: Any) -> None:
        request = {
            "name": self._path("subscriptions", topic),
            "topic": self._path("topics", topic),
            "ack_deadline_seconds": DEADLINE,
            **more,
        }
        self._call("subscriber", "create_subscription", request)

    def _make_secret(self, secret: str, key: bytes) -> None:
        """Make a secret with a key that seals records."""
        project = f"projects/{self.name}"
        replication: dict[str, Any] = {"replication": {"automatic": {}}}
        made = {"parent": project, "secret_id": secret, "secret": replication}
        self._call("secretmanager", "create_secret", made)
        version = {"parent": f"{project}/secrets/{secret}", "payload": {"data": key}}
        self._call("secretmanager", "add_secret_version", version)
        latest = {"name": f"{project}/secrets/{secret}/versions/latest"}

        def newest() -> bool:
            # Secret Manager shows the newest version late.
            with suppress(TemporaryError):
                self._call("secretmanager", "access_secret_version", latest)
                return True
            return False

        eventually("the secret has a version", newest, patience=PATIENCE)

    def _call(self, service: str, operation: str, request: Any) -> Any:
        def done() -> tuple[Any] | None:
            # An emulator has just come back, and gRPC rests before it connects again.
            with suppress(UnreachableError):
                return (self.services.call(service, operation, request, doing="make a lab"),)
            return None

        answer = eventually(f"{service} is there", done, patience=PATIENCE, pause=0.2)
        return answer[0] if answer else None

    def _path(self, kind: str, name: str) -> str:
        return f"projects/{self.name}/{kind}/{name}"


class Stand:
    """A project and its functions, at work; a stage may have emulators of its own in `doors`."""

    def __init__(
        self,
        project: Project,
        sources: Path,
        installed: Path,
        folder: Path,
        proxies: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.project = project
        self.functions = Functions(folder)
        environment = {**project.environment, **project.emulators}
        for program, place in PLACES.items():
            environment[program.variable] = str(sources / CHARTS / place)
        stages = set(STAGES) - ({CHARTS} - project.topics.keys())
        places = sources / "ingest", installed / "ingest"
        own = {
            "BELLHOP_KEY_SECRET": environment["BELLHOP_INGEST_KEY_SECRET"],
            "BELLHOP_INGEST_KEY_SECRET": "",
            **(proxies or {}).get("ingest", {}),
        }
        self._ingest = Function(*places, STAGES["ingest"], {**environment, **own})
        self._hears = False
        environment["BELLHOP_INGEST_URL"] = self.functions.add("ingest", self._ingest).url
        for stage in stages - {"ingest"}:
            places = sources / stage, installed / stage
            own = (proxies or {}).get(stage, {})
            self.functions.add(stage, Function(*places, STAGES[stage], {**environment, **own}))
        self.functions.start()
        project.subscribe(self.functions)

    def hear(self, cluster: str, body: Any, **headers: str) -> Answer:
        """Have Eventarc send an event to the function that only it may call, once that is there.

        That Google lets nobody else in is not played: its token is one that nobody here checks.
        """
        if not self._hears:
            running = self.functions.add("events", replace(self._ingest, target="hear"))
            running.start()
            running.ready()
            self._hears = True
        about = {"Content-Type": "application/json", "Authorization": "Bearer of-a-trigger"}
        path = f"/clusters/{name_cluster(cluster)}"
        sent = json.dumps(body).encode()
        return self.functions["events"].ask("POST", path, sent, {**about, **headers})

    def send(self, cluster: str, body: Any, **headers: str) -> Answer:
        """Have a cluster's sender send something."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        about = {"Content-Type": "application/json", "Authorization": f"Bearer {cluster}"}
        path = f"/clusters/{name_cluster(cluster)}"
        return self.functions["ingest"].ask("POST", path, sent, {**about, **headers})

    def tick(self) -> Answer:
        """Do as Cloud Scheduler does each minute."""
        return self.functions["schedule"].ask("POST", "/", b"{}")

    def lines(self, **fields: Any) -> list[dict[str, Any]]:
        """Return what the functions have logged, of those lines that say so."""
        return [
            line
            for line in self.functions.lines()
            if all(line.get(name) == value for name, value in fields.items())
        ]

    def wait(self, until: Callable[[], object], patience: float = PATIENCE) -> None:
        """Wait until something is so, and tick now and then."""
        tick_at = time.monotonic() + 2

        def step() -> object:
            nonlocal tick_at
            done = until()
            if not done and time.monotonic() > tick_at:
                self.tick()
                tick_at = time.monotonic() + 2
            return done

        eventually(self.words, step, patience=patience, pause=0.1)

    def words(self) -> str:
        """Quote what rests, what is dead, and the last complaints."""
        here = self.project.open()
        left: dict[str, Any] = {
            inbox: [
                f"{row.sort} {row.value}" for row in here.records.store.query(f"rest/{queue.name}")
            ]
            + [f"dead: {letter.message.body} {letter.reason}" for letter in queue.list()]
            for inbox, queue in here.queues.items()
        }
        loud = [line for line in self.lines() if line.get("severity") in {"WARNING", "ERROR"}]
        left = {inbox: several for inbox, several in left.items() if several}
        return json.dumps([left, sorted(loud, key=lambda each: str(each["time"]))[-4:]])[:4_000]

    def close(self) -> None:
        self.functions.close()


class Flow:
    """A stand between two clusters, and who works in them; what its functions write is seen."""

    def __init__(self, stand: Stand, source: Cluster, destination: Cluster, writes: Writes) -> None:
        self.stand = stand
        self.writes = writes
        self.source = Someone(source.kubeconfig())
        self.destination = Someone(destination.kubeconfig())
        self.owner = stand.project.owner()
        self.owner.register("source", source.kubeconfig(), env="production")
        self.owner.register("destination", destination.kubeconfig(), dep="eng")
        self._declared = ""

    def declare(self, example: str) -> None:
        """Declare an example of the docs instead of another one."""
        if example == self._declared:
            return
        if self._declared:
            self.owner.withdraw(_text(self._declared))
        self.owner.apply(_text(example))
        self._declared = example

    def make(self, port: int) -> None:
        """Make a balanced Service, as a user and then the cloud's controller do; both ring."""
        assert self.ring(self.source.create(balanced(port))).status == 200
        assert self.ring(self.source.give_address(WEB, "34.172.32.172")).status == 200

    def ring(self, stored: Any) -> Answer:
        """Send what was stored, as the cluster's forwarder does."""
        return self.stand.send("source", {**BATCH, "items": [{"object": stored}]})

    def settle(self, until: Callable[[], object]) -> None:
        """Wait until something is so, and then until nobody asks for anything more."""
        self.stand.wait(until)
        eventually("no function writes", self.writes.quiet, patience=60.0)

    def remove(self, key: ObjectKey = WEB) -> None:
        """Delete an object, by default the Service, and send its event."""
        stored = self.source.get(key) or {}
        self.source.delete(key)
        assert self.stand.send("source", {**BATCH, "items": [{"gone": gone(stored)}]}).status == 200

    def ports(self, key: ObjectKey) -> list[int]:
        return ports(self.destination, key)

    def there(self, port: int) -> bool:
        return self.ports(TWIN) == [port] == self.ports(ADDRESSES)

    def gone(self) -> bool:
        return not self.ports(TWIN) and not self.ports(ADDRESSES)

    def end(self) -> None:
        """See that nothing is left of a test for the next one."""
        self.writes.forgive()
        if self.source.get(WEB):
            self.remove()
            self.stand.wait(self.gone)

    def close(self) -> None:
        self.source.close()
        self.destination.close()


def _text(example: str) -> str:
    files = sorted((EXAMPLES / example).glob("*.yaml"))
    return "---\n".join(each.read_text() for each in files)


def balanced(port: int) -> dict[str, Any]:
    """Return a Service for which a cloud makes a load balancer."""
    spec = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": port}]}
    about = {"name": WEB.name, "namespace": WEB.namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def gone(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a forwarder sends of an object that it has seen deleted."""
    meta = stored["metadata"]
    version = int(meta["resourceVersion"])
    return {"key": str(ObjectKey.of(stored)), "uid": meta["uid"], "version": version}


def ports(someone: Someone, key: ObjectKey) -> list[int]:
    """Return the ports of a Service or its Endpoints; none if it is not there."""
    found = someone.get(key)
    if found is None:
        return []
    holder = found["spec"] if key.gvk == SERVICE else found["subsets"][0]
    return [port["port"] for port in holder["ports"]]
