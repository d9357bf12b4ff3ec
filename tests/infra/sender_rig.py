"""A sender with its outbox and queue, and an ingest that does as configured."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from bellhop.adapters.local.server import Server
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.instructions import Instructions
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.forwarder.pending import Journal
from bellhop.forwarder.sender import Sender
from bellhop.forwarder.workqueue import DelayingQueue
from bellhop.ingest.admission import Hint
from bellhop.logs import Log
from tests.infra.forwarder_rig import failures

CONFIG = GVK("", "v1", "ConfigMap")


class Ingest:
    """Answers by a rule, and keeps what it took."""

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.asked: list[float] = []
        self.alive: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        self.ahead = timedelta(0)
        self.rule: Callable[[dict[str, Any]], int] = lambda _: 200
        self.fails: Callable[[dict[str, Any]], int] = lambda _: 0
        self.unread = 0
        self.wait = ""
        self.body = b"{}"
        self.tokens: list[str] = []
        """By what items came; what is asked besides comes when it comes."""
        self.denied: set[str] = set()
        self.server = Server(self, host="127.0.0.1", port=0)
        self.server.start()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = json.loads(environ["wsgi.input"].read())
        token = environ["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
        status = 401 if token in self.denied else self.rule(body)
        answer = self.body
        if body["kind"] == "Missed":
            self.asked.append(time.monotonic())
        elif body["kind"] == "Alive":
            self.alive.append(body)
        else:
            self.tokens.append(token)
            self.batches.append(body["items"])
            answer = self._take(body["items"], answer) if status == 200 else answer
        date = format_datetime(datetime.now(UTC) + self.ahead, usegmt=True)
        headers = [("Date", date), ("Content-Length", str(len(answer)))]
        headers += [("Retry-After", self.wait)] if self.wait else []
        start_response(f"{status} x", headers)
        return [answer]

    def _take(self, items: list[dict[str, Any]], answer: bytes) -> bytes:
        """Take items but for those that fail; the first `unread` answers are lost."""
        failed = failures(items, self.fails)
        numbers = {each["index"] for each in failed}
        self.taken += [each for number, each in enumerate(items) if number not in numbers]
        if self.unread:
            self.unread -= 1
            return b"<html>gateway</html>"
        return json.dumps({"failed": failed}).encode() if failed else answer


class Office:
    """A sender with its outbox and queue."""

    def __init__(self, folder: Path, url: str = "", token: str = "t") -> None:
        self.ingest = Ingest()
        url = url or self.ingest.server.url
        self.written = io.StringIO()
        log = Log(self.written)
        self.counts = Counts()
        self.refused: list[bool] = []
        self.unreadable: dict[str, str] = {}
        self.released: list[tuple[list[str], int]] = []
        self.unsubscribed = ""
        self.outbox = Outbox()
        self.spool = Journal(folder)
        self.queue = DelayingQueue(self.spool, log)
        instructions = Instructions(
            f"{url}/clusters/fleet/east",
            url,
            "",
            "fleet/east",
            token,
            "/p",
            "",
            b"",
            b"",
        )
        self.sender = Sender(
            lambda: instructions,
            lambda: self.refused.append(True),
            self.outbox,
            self.queue,
            self.counts,
            log,
            unreadable=lambda: self.unreadable,
            release=lambda kinds, serial: self.released.append((list(kinds), serial)),
            messaging=lambda: self.unsubscribed,
        )

    def put(
        self,
        name: str,
        reported_at: datetime | None = None,
        content: str = "",
        *,
        own: bool = False,
    ) -> None:
        """Have an object owed, and read already."""
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        manifest |= {"data": content} if content else {}
        self.put_body(name, json.dumps({"object": manifest}).encode(), reported_at, own=own)

    def put_body(
        self, name: str, body: bytes, reported_at: datetime | None = None, *, own: bool = False
    ) -> None:
        """Have an object owed, as it was read."""
        key = ObjectKey(CONFIG, "default", name)
        when = (reported_at or datetime.now(UTC)).isoformat()
        self.queue.add(Hint(key, "", 0), when)
        self.outbox.put(Item(key, self.queue._serial, when, body, own=own))

    def names(self) -> set[str]:
        return {name_of(item) for item in self.ingest.taken}

    def said(self, sentence: str) -> list[dict[str, Any]]:
        """Return the log lines that begin so."""
        lines = map(json.loads, self.written.getvalue().splitlines())
        return [line for line in lines if line["message"].startswith(sentence)]

    def count(self, name: str) -> int:
        return counted(self.counts, name)

    def close(self) -> None:
        self.sender.close(10)
        self.ingest.server.stop()
        self.spool.close()


def name_of(item: dict[str, Any]) -> str:
    return str(item["object"]["metadata"]["name"])


def counted(counts: Counts, name: str) -> int:
    """Return what a forwarder's metrics say of one counter."""
    [line] = [
        each
        for each in counts.text({}).splitlines()
        if each.startswith(f"bellhop_forwarder_{name}_total ")
    ]
    return int(line.rsplit(" ", 1)[1])
