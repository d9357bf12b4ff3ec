"""The sender: what readers found goes to ingest at once, or as soon as ingest is there again.

`ingest_client` has how it proves itself, `batch_sender` what becomes of an item that ingest
does not take.

Beside items it says now and then that it is there, and how it is; and it asks for a look at the
whole cluster, where something may have been missed, until ingest has agreed. When an object rang
is told by ingest's clock where ours differs: nothing is refused for a time that only we believe in.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bellhop import __version__
from bellhop.forwarder.account import Account
from bellhop.forwarder.backoff import pause
from bellhop.forwarder.batch_sender import BatchSender
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.ingest_client import Answer, IngestClient
from bellhop.forwarder.instructions import Instructions
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.forwarder.workqueue import DelayingQueue
from bellhop.logs import Log

ALIVE_SECONDS = 120.0
"""How often ingest hears that we are there, and how we are, whatever rings."""

_MISSED = b'{"apiVersion":"bellhop.dev/v1","kind":"Missed"}'
_ALIVE = {"apiVersion": "bellhop.dev/v1", "kind": "Alive"}


class Sender:
    """One thread that sends; while a batch is on its way, the next one gathers.

    `instructions` tells whom to send to at present; `refused` is called when the token is refused.
    `unreadable` tells which kinds cannot be read back, with reasons, and `release` is called with
    those of them that nobody asks for, and the serial of the last hint before that was known.
    `messaging` tells what keeps us from NATS, empty for nothing. Without an `account` it is the
    token of the Secret alone that is sent.
    """

    def __init__(  # noqa: PLR0913 - the parts of one process, which know nothing of each other
        self,
        instructions: Callable[[], Instructions],
        refused: Callable[[], None],
        outbox: Outbox,
        desk: DelayingQueue,
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
        self._desk = desk
        self._counts = counts
        self._log = log
        self._uplink = IngestClient(instructions, refused, account or Account(), log)
        self._batches = BatchSender(self._uplink, outbox, self._settle, counts, log)
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
        """Have ingest look at the cluster, soon: something may have been missed."""
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
            batch = self._outbox.take(self._until_speaking())
            try:
                sent = not batch or self._batches.send(batch)
                if sent and self._outbox.is_open:
                    self._speak()
            except Exception as error:  # noqa: BLE001 - nothing may end the only sender
                self._log.error("Failed to send a batch", error)
                self._batches.fail(batch, Answer(0, "internal"))

    def _until_speaking(self) -> float:
        ask_at = self._alive_at if self._ask_at is None else self._ask_at
        return max(0.0, min(ask_at, self._alive_at) - time.monotonic())

    def _speak(self) -> None:
        """Say what is to be said by now."""
        now = time.monotonic()
        if self._ask_at is not None and self._ask_at <= now:
            self._ask()
        if self._alive_at <= now:
            self._say_alive()

    def _say_alive(self) -> None:
        """Tell ingest that we are there, and how we are, until it has heard it."""
        owed, since = self._desk.owed()
        serial, refused = self._desk.serial, self._unreadable()
        said: dict[str, Any] = {"version": __version__, "owed": owed, "since": since}
        said["messaging"] = self._messaging()
        if refused:
            said["refused"] = refused
        answer = self._uplink.post(json.dumps({**_ALIVE, **said}).encode())
        if refused and answer.taken:
            self._release(_unasked(answer.body), serial)
        self._unheard = 0 if answer.taken else self._unheard + 1
        wait = pause(self._unheard, at_least=answer.wait) if self._unheard else ALIVE_SECONDS
        self._alive_at = time.monotonic() + wait

    def _ask(self) -> None:
        """Ask for a look at the cluster; who is told to wait asks again, since it may be later."""
        self._ask_at = None
        answer = self._uplink.post(_MISSED)
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
                self._counts.took((now - datetime.fromisoformat(item.rang)).total_seconds())
        else:
            self._counts.add("dropped", len(items))
        self._desk.forget(self._outbox.settle(items))


def _unasked(body: bytes) -> list[str]:
    """Read which kinds nobody asks for from an answer."""
    try:
        return [str(kind) for kind in json.loads(body).get("unasked", ())]
    except (AttributeError, TypeError, ValueError, RecursionError):
        return []
