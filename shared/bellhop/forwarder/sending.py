"""The sender: what readers found goes to ingest at once, or as soon as ingest is there again.

2xx                      taken: forget it
413, 400, 422            halve the batch; the item that is alone with it is dropped, and said
401                      read the Secret again: the token may have been changed
anything else, or no     keep everything and try again, for ever: it says something about the
answer                   way to ingest, not about an item
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import urllib3

from bellhop.forwarder.backoff import pause
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.desk import Desk
from bellhop.forwarder.instructions import Instructions
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.logs import Log

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 15.0
PATIENCE_SECONDS = 60.0
"""The longest Retry-After that is honoured."""

_HEAD = b'{"apiVersion":"bellhop.dev/v1","kind":"Observations","items":['
_TAIL = b"]}"
_ABOUT_ITEMS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
_SAY_EVERY = 20


class _Answer(NamedTuple):
    """How ingest answered; status 0 where it did not."""

    status: int
    why: str
    wait: float = 0.0


class Sender:
    """One thread that sends; while a batch is on its way, the next one gathers.

    `instructions` tells whom to send to at present; `doubt` is called when the token is refused.
    """

    def __init__(
        self,
        instructions: Callable[[], Instructions],
        doubt: Callable[[], None],
        outbox: Outbox,
        desk: Desk,
        counts: Counts,
        log: Log,
    ) -> None:
        self._instructions = instructions
        self._doubt = doubt
        self._outbox = outbox
        self._desk = desk
        self._counts = counts
        self._log = log
        self._line: _Line | None = None
        self._failures = 0
        self._waking = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="sender", daemon=True)

    def start(self) -> None:
        """Begin to send; it ends once the outbox is closed."""
        self._thread.start()

    def alive(self) -> bool:
        """Say if it still works."""
        return self._thread.is_alive()

    def nudge(self) -> None:
        """Try again at once, since something changed."""
        self._waking.set()

    def close(self, seconds: float) -> None:
        """End after the request that is under way, which may take as long as given."""
        self._ending = True
        self._outbox.close()
        self._waking.set()
        self._thread.join(seconds)

    def _work(self) -> None:
        while batch := self._outbox.take():
            try:
                self._send(batch)
            except Exception as error:  # noqa: BLE001 - nothing may end the only sender
                self._log.error("Failed to send a batch", error)
                self._outbox.put_back(batch)
                self._pause(_Answer(0, "internal"))

    def _send(self, batch: list[Item]) -> None:
        """Send a batch, in halves where ingest refuses it for what is in it."""
        parts = [batch]
        while parts:
            part = parts.pop()
            answer = self._post(part)
            if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                self._taken(part)
            elif answer.status not in _ABOUT_ITEMS:
                self._outbox.put_back([item for each in [part, *reversed(parts)] for item in each])
                self._pause(answer)
                return
            elif len(part) > 1:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
            else:
                self._dropped(part[0], answer)

    def _post(self, items: list[Item]) -> _Answer:
        instructions = self._instructions()
        if self._line is None or self._line.instructions is not instructions:
            self._line = _Line(instructions)
        return self._line.post(_HEAD + b",".join(item.body for item in items) + _TAIL)

    def _taken(self, items: list[Item]) -> None:
        if self._failures:
            self._log.info("Ingest takes items again", failures=self._failures)
            self._failures = 0
        self._counts.add("batches")
        self._counts.add("sent", len(items))
        now = datetime.now(UTC)
        for item in items:
            self._counts.took((now - datetime.fromisoformat(item.rang)).total_seconds())
        self._desk.forget(self._outbox.settle(items))

    def _dropped(self, item: Item, answer: _Answer) -> None:
        self._counts.add("send_failures")
        self._counts.add("dropped")
        self._log.warning(
            "Dropped what ingest refuses; sweeps look at it",
            object=str(item.key),
            status=answer.status,
            bytes=len(item.body),
        )
        self._desk.forget(self._outbox.settle([item]))

    def _pause(self, answer: _Answer) -> None:
        self._counts.add("send_failures")
        self._failures += 1
        if self._failures % _SAY_EVERY == 1:
            self._log.warning(
                "Ingest takes nothing; everything is kept and tried again",
                status=answer.status or None,
                why=answer.why,
                failures=self._failures,
            )
        self._waking.clear()
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._doubt()
        if not self._ending:
            self._waking.wait(pause(self._failures, at_least=answer.wait))


class _Line:
    """The connection to ingest as one set of instructions has it."""

    def __init__(self, instructions: Instructions) -> None:
        self.instructions = instructions
        options: dict[str, Any] = {}
        if instructions.ingest_url.startswith("https:"):
            authority = instructions.ingest_ca or None
            options["ssl_context"] = ssl.create_default_context(cadata=authority)
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=1,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS),
            **options,
        )
        self._headers = {
            "Authorization": f"Bearer {instructions.token}",
            "Content-Type": "application/json",
            "User-Agent": "bellhop-forwarder",
        }

    def post(self, body: bytes) -> _Answer:
        try:
            response = self._pool.request(
                "POST",
                self.instructions.ingest_url,
                body=body,
                headers=self._headers,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return _Answer(0, type(error).__name__)
        wait = response.headers.get("Retry-After", "")
        seconds = float(wait) if wait.isascii() and wait.isdigit() else 0.0
        return _Answer(response.status, response.reason or "", min(seconds, PATIENCE_SECONDS))
