"""The sender: items of readers go to ingest at once, or as soon as it is available again.

`ingest_client` authenticates, and `batch_sender` retries or drops items that ingest rejects.

The sender also sends a heartbeat with its status; and if events may have been missed, it asks for a
resync of the cluster until ingest accepts. Times of hints are those of ingest's clock, so that no
item is refused for the time of this machine's clock.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bellhop import __version__
from bellhop.forwarder.backoff import pause
from bellhop.forwarder.batch_sender import BatchSender
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.ingest_client import Account, Answer, IngestClient
from bellhop.forwarder.instructions import Instructions
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.forwarder.workqueue import DelayingQueue
from bellhop.logs import Log

ALIVE_SECONDS = 120.0
"""Seconds between two heartbeats, with or without events."""

_MISSED = b'{"apiVersion":"bellhop.dev/v1","kind":"Missed"}'
_ALIVE = {"apiVersion": "bellhop.dev/v1", "kind": "Alive"}


class Sender:
    """One thread that sends; while a batch is on its way, the next one gathers.

    `instructions` returns the present Secret; `refused` is called when the token is refused.
    `unreadable` returns kinds that cannot be read back, with reasons, and `release` is called with
    those of them that no source names, and the serial of the last hint before that was known.
    `messaging` returns why NATS does not work, empty for nothing. Without an `account` only the
    token of the Secret is sent.
    """

    def __init__(  # noqa: PLR0913 - the parts of one process, which know nothing of each other
        self,
        instructions: Callable[[], Instructions],
        refused: Callable[[], None],
        outbox: Outbox,
        queue: DelayingQueue,
        counts: Counts,
        log: Log,
        *,
        unreadable: Callable[[], Mapping[str, str]] = dict,
        release: Callable[[Sequence[str], int], None] = lambda _kinds, _serial: None,
        messaging: Callable[[], str] = lambda: "",
        account: Account | None = None,
    ) -> None:
        self._unreadable = unreadable
        self._release = release
        self._messaging = messaging
        self._outbox = outbox
        self._queue = queue
        self._counts = counts
        self._log = log
        self._ingest_client = IngestClient(instructions, refused, account or Account(), log)
        self._batches = BatchSender(self._ingest_client, outbox, self._settle, counts, log)
        # When to ask for a look at the cluster; None where there is no reason to.
        self._ask_at: float | None = None
        self._asked = 0
        self._alive_at = time.monotonic()
        self._unheard = 0
        self._thread = threading.Thread(target=self._work, name="sender", daemon=True)

    def start(self) -> None:
        """Begin to send; it ends once the outbox is closed."""
        self._thread.start()

    def alive(self) -> bool:
        """Say if it still works."""
        return self._thread.is_alive()

    def ask_for_a_look(self) -> None:
        """Have ingest resync the cluster soon: events may have been missed."""
        if self._ask_at is None:
            self._ask_at = time.monotonic()
            self._outbox.wake()

    def nudge(self) -> None:
        """Try again at once, since something changed."""
        self._batches.nudge()

    def close(self, seconds: float) -> None:
        """End after the request that is under way, which may take as long as given."""
        self._outbox.close()
        self._batches.end()
        self._thread.join(seconds)

    def _work(self) -> None:
        while self._outbox.is_open:
            batch = self._outbox.take(self._seconds_to_report())
            try:
                sent = not batch or self._batches.send(batch)
                if sent and self._outbox.is_open:
                    self._speak()
            except Exception as error:  # noqa: BLE001 - nothing may end the only sender
                self._log.error("Failed to send a batch", error)
                self._batches.fail(batch, Answer(0, "internal"))

    def _seconds_to_report(self) -> float:
        ask_at = self._alive_at if self._ask_at is None else self._ask_at
        return max(0.0, min(ask_at, self._alive_at) - time.monotonic())

    def _speak(self) -> None:
        now = time.monotonic()
        if self._ask_at is not None and self._ask_at <= now:
            self._ask()
        if self._alive_at <= now:
            self._say_alive()

    def _say_alive(self) -> None:
        """Send the heartbeat to ingest, and repeat it until it is accepted."""
        owed, since = self._queue.owed()
        serial, refused = self._queue.serial, self._unreadable()
        said: dict[str, Any] = {"version": __version__, "owed": owed, "since": since}
        said["messaging"] = self._messaging()
        if refused:
            said["refused"] = refused
        answer = self._ingest_client.post(json.dumps({**_ALIVE, **said}).encode())
        if refused and answer.taken:
            self._release(_read_unasked(answer.body), serial)
        self._unheard = 0 if answer.taken else self._unheard + 1
        wait = pause(self._unheard, at_least=answer.wait) if self._unheard else ALIVE_SECONDS
        self._alive_at = time.monotonic() + wait

    def _ask(self) -> None:
        """Ask for a resync of the cluster; if ingest asks for a pause, ask again later."""
        self._ask_at = None
        answer = self._ingest_client.post(_MISSED)
        if answer.taken:
            self._counts.add("looks_asked")
            self._asked = 0
        else:
            self._asked += 1
            self._ask_at = time.monotonic() + pause(self._asked, at_least=answer.wait)

    def _settle(self, items: list[Item], taken: bool) -> None:  # noqa: FBT001 - BatchSender calls it
        if taken:
            self._counts.add("batches")
            self._counts.add("sent", len(items))
            now = datetime.now(UTC)
            for item in items:
                self._counts.took((now - datetime.fromisoformat(item.reported_at)).total_seconds())
        else:
            self._counts.add("dropped", len(items))
        self._queue.forget(self._outbox.settle(items))


def _read_unasked(body: bytes) -> list[str]:
    """Read which kinds nobody asks for from an answer."""
    try:
        return [str(kind) for kind in json.loads(body).get("unasked", ())]
    except (AttributeError, TypeError, ValueError, RecursionError):
        return []
