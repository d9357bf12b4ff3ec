"""A real NATS server, and a small ingest that takes CloudEvents, on both sides of a forwarder."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nats
from nats.js.api import StreamConfig

from bellhop.adapters.local.server import Server as HttpServer
from bellhop.core.gvk import GVK
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.ingest_client import Account, IngestClient
from bellhop.forwarder.instructions import Instructions
from bellhop.forwarder.nats.nats import Messaging
from bellhop.logs import Log
from bellhop.registration.forwarder_manifests import MESSAGING_NAME, MESSAGING_NAMESPACE
from infra.lab.processes import Nursery
from tests.fakes.kube import FakeKube
from tests.infra.forwarder_rig import failures
from tests.infra.sender_rig import counted
from tests.lab.nats import PROGRAM, Nats, beside
from tests.missing import find_program
from tests.waiting import eventually

SECRET = GVK("", "v1", "Secret")
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MESSAGING_NAMESPACE}}


def program() -> Path:
    """Find nats-server."""
    return beside() or find_program(PROGRAM, PROGRAM)


def happened(number: int | str, **more: Any) -> bytes:
    """Return a CloudEvent as a message has it."""
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"{number}",
        "source": "auth.example",
        "type": "login",
    }
    return json.dumps(
        {**event, "subject": f"user-{number}", "data": {"n": number}, **more}
    ).encode()


def configuration(kind: str = "nats", **given: Any) -> dict[str, Any]:
    return {kind: {"configuration": given}}


def secret(entry: Any) -> dict[str, Any]:
    text = entry if isinstance(entry, str) else json.dumps(entry)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": MESSAGING_NAMESPACE, "name": MESSAGING_NAME},
        "data": {MESSAGING_NAME: base64.b64encode(text.encode()).decode()},
    }


class Ingest:
    """Answers by a rule, and keeps the events that it took."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.requests = 0
        self.status = 200
        self.fails: Callable[[dict[str, Any]], int] = lambda _: 0
        self.answers = threading.Event()
        self.answers.set()
        self.server = HttpServer(self, host="127.0.0.1", port=0)
        self.server.start()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        items = json.loads(environ["wsgi.input"].read())["items"]
        assert environ["CONTENT_TYPE"] == "application/json"
        assert environ["HTTP_AUTHORIZATION"] == "Bearer t"
        self.requests += 1
        self.answers.wait()
        status = self.status
        failed = failures(items, lambda item: self.fails(item["event"]))
        numbers = {each["index"] for each in failed}
        if status == 200:
            self.taken += [each["event"] for at, each in enumerate(items) if at not in numbers]
        body = json.dumps({"failed": failed}).encode()
        start_response(f"{status} x", [("Content-Length", str(len(body)))])
        return [body]

    @property
    def ids(self) -> list[str]:
        return [each["id"] for each in self.taken]


class Bridge:
    """A forwarder's NATS configuration, without sources, and the servers that it works between."""

    def __init__(self, folder: Path, nursery: Nursery) -> None:
        (folder / "nats").mkdir()
        self.nats = Nats(program(), folder / "nats", nursery)
        self.ingest = Ingest()
        self.kube = FakeKube()
        self.kube.put(NAMESPACE)
        self.written = io.StringIO()
        self.counts = Counts()
        self.spool = folder / "spool"
        self.spool.mkdir()
        self.messaging = self._make()

    def _make(self) -> Messaging:
        url = self.ingest.server.url
        instructions = Instructions(f"{url}/clusters/f/e", url, "", "f/e", "t", "/p", "", b"", b"")
        log = Log(self.written)
        return Messaging(
            self.kube,
            self.spool,
            lambda: IngestClient(lambda: instructions, lambda: None, Account(), log),
            self.counts,
            log,
        )

    def configure(self, entry: Any) -> None:
        """Write the Secret; it is followed when somebody looks."""
        self.kube.put(secret(entry))

    def subscribe(self, entry: Any) -> None:
        """Have it subscribed, and wait until it is."""
        before = self.logged("Subscribed to NATS")
        self.configure(entry)
        self.messaging.start()
        eventually("it is subscribed", lambda: self.logged("Subscribed to NATS") > before)

    def core(self, *subjects: str, **more: Any) -> dict[str, Any]:
        return configuration(url=self.nats.url, subjects=subjects or ["logins"], **more)

    def stream(self, *streams: str, **more: Any) -> dict[str, Any]:
        return configuration("jetstream", url=self.nats.url, subjects=streams or ["S"], **more)

    def restart(self) -> None:
        """End the forwarder, and start it again."""
        self.end()
        self.messaging = self._make()
        self.messaging.start()

    def end(self, grace: float = 1.0) -> None:
        self.messaging.stop(grace)
        self.messaging.close(1.0)

    def close(self) -> None:
        self.ingest.answers.set()
        self.end(0.0)
        self.ingest.server.stop()

    def logged(self, sentence: str) -> int:
        return self.written.getvalue().count(sentence)

    def count(self, name: str) -> int:
        return counted(self.counts, name)

    def publish(self, *bodies: bytes, subject: str = "logins", **options: Any) -> None:
        """Publish by core NATS; what a stream is for, it keeps."""
        headers = options.pop("headers", None)

        async def publish(client: Any) -> None:
            for body in bodies:
                await client.publish(subject, body, headers=headers)

        self.do(publish, **options)

    def make_stream(self, name: str = "S", *subjects: str) -> None:
        config = StreamConfig(name=name, subjects=[*subjects] or ["logins"])
        self.do(lambda client: client.jetstream().add_stream(config))

    def consumer(self, name: str = "S") -> Any:
        return self.do(lambda client: client.jetstream().consumer_info(name, "sveltos-agent"))

    def owed(self, name: str = "S") -> int:
        """Say how many messages of a stream are not acknowledged."""
        info = self.consumer(name)
        return int(info.num_pending) + int(info.num_ack_pending)

    def do(self, what: Callable[[Any], Any], **options: Any) -> Any:
        """Do something as another client of the server."""

        async def work() -> Any:
            client = await nats.connect(self.nats.url, **options)
            try:
                found = await what(client)
                await client.flush()
                return found
            finally:
                await client.close()

        return asyncio.run(work())
