"""The batch sender: a batch goes to ingest, and each item is settled by its own answer.

2xx                   items that the answer names as failed are dropped for 4xx, and sent again
                      after a pause for 429 and 5xx; all others are taken
400, 413, 422         the request cannot be read: its items go one by one, and the one that is
                      refused again is dropped
anything else, or no  keep everything and try again, for ever
answer
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus

from bellhop.forwarder.backoff import pause
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.ingest_client import SKEW, Answer, IngestClient
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.logs import Log

_UNREADABLE = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
_REQUEST = b'{"apiVersion":"bellhop.dev/v1","kind":"Observations","items":[%s]}'
_SAY_EVERY = 20


class BatchSender:
    """Sends the batches of one outbox, for one thread; `settle` is called with items, if taken."""

    def __init__(
        self,
        ingest_client: IngestClient,
        outbox: Outbox,
        settle: Callable[[list[Item], bool], None],
        counts: Counts,
        log: Log,
    ) -> None:
        self._ingest_client = ingest_client
        self._outbox = outbox
        self._settle = settle
        self._counts = counts
        self._log = log
        self._failures = 0
        self._taken_at = 0.0
        self._waking = threading.Event()
        self._ending = False

    def nudge(self) -> None:
        """Try again at once, since something changed."""
        self._waking.set()

    def end(self) -> None:
        """Wait no more between tries."""
        self._ending = True
        self._waking.set()

    def send(self, batch: list[Item]) -> bool:
        """Send a batch in one request; say if ingest answered for its items."""
        # What changes while a request is under way is worth another try at once.
        self._waking.clear()
        ahead = self._ingest_client.ahead
        answer = self._ingest_client.post(_REQUEST % b",".join(map(self._text, batch)))
        failures = _failures(answer, len(batch))
        if failures is None:
            self.fail(batch, answer)
            return False
        if self._failures:
            self._log.info("Ingest takes items again", failures=self._failures)
            self._failures = 0
        if taken := [item for index, item in enumerate(batch) if index not in failures]:
            self._settle(taken, True)  # noqa: FBT003 - a callable has no names
        # The times were wrong, perhaps, and nothing else.
        corrected = abs(self._ingest_client.ahead - ahead) > SKEW
        unreadable = not answer.taken and len(batch) > 1
        for index in reversed(failures):
            batch[index].alone = unreadable
            if corrected or unreadable:
                self._outbox.put_back([batch[index]])
            else:
                self._retry(batch[index], *failures[index])
        if taken:
            self._taken_at = time.monotonic()
        return True

    def fail(self, batch: list[Item], answer: Answer) -> None:
        """Keep a batch that ingest did not answer for, and wait."""
        self._outbox.put_back(batch)
        self._counts.add("send_failures")
        self._failures += 1
        if self._failures % _SAY_EVERY == 1:
            self._log.warning(
                "Ingest takes nothing; everything is kept and tried again",
                status=answer.status or None,
                why=answer.why,
                failures=self._failures,
            )
        if not self._ending:
            self._waking.wait(pause(self._failures, at_least=answer.wait))

    def _retry(self, item: Item, status: int, reason: str) -> None:
        """Keep an item that failed for another attempt, or drop it where none can help."""
        tries = item.attempts
        # While ingest takes nothing at all, a defect is none of the item's.
        its_own = status == HTTPStatus.INTERNAL_SERVER_ERROR and self._taken_at > tries.since > 0
        hopeless = its_own and (tries.are_exhausted or self._outbox.is_crowded())
        final = status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS
        about = {"object": str(item.key), "status": status, "why": reason, "bytes": len(item.body)}
        if final or hopeless:
            self._log.warning("Dropped an item that ingest refuses", **about, failed=tries.failed)
            self._settle([item], False)  # noqa: FBT003 - a callable has no names
            return
        if not tries.failed:
            self._log.warning("Ingest failed on an item; it is sent again", **about)
        tries.fail()
        self._outbox.put_back([item])

    def _text(self, item: Item) -> bytes:
        reported_at = (
            datetime.fromisoformat(item.reported_at) - self._ingest_client.ahead
        ).isoformat()
        own = b',"own":true' if item.own else b""
        return b'%s,"rang":"%s"%s}' % (item.body[:-1], reported_at.encode(), own)


def _failures(answer: Answer, size: int) -> dict[int, tuple[int, str]] | None:
    """Return status and reason of each item that failed; None if the answer is about none."""
    if answer.status in _UNREADABLE:
        return dict.fromkeys(range(size), (answer.status, answer.why))
    if not answer.taken:
        return None
    try:
        failed = json.loads(answer.body).get("failed", ())
        found = {int(each["index"]): (int(each["status"]), str(each["reason"])) for each in failed}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return found if found.keys() <= set(range(size)) else None
