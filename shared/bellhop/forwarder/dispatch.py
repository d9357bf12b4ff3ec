"""Batches of an outbox: taken by ingest, kept for another try, or given up in the end.

2xx                      taken: forget it
413, 400, 422            halve the batch; the item that is alone with it is dropped, and said
anything else, or no     keep everything and try again, for ever while nothing at all is taken. What
answer                   fails alone while others are taken is dropped in the end, and said: `trial`
                         has when
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import NamedTuple

from bellhop.forwarder.backoff import pause
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.forwarder.uplink import SKEW, Answer, Uplink
from bellhop.logs import Log

ABOUT_ITEMS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
_SAY_EVERY = 20


class Wording(NamedTuple):
    """How items are sent and spoken of: a request of some, its Content-Type, and what is logged."""

    request: Callable[[Sequence[Item]], bytes]
    media: str
    refused: str
    dropped: str
    nothing: str
    again: str


class Dispatch:
    """What one thread does with the batches of its outbox.

    `taken` and `dropped` are called with items that are done, and settle them.
    """

    def __init__(
        self,
        uplink: Uplink,
        outbox: Outbox,
        wording: Wording,
        taken: Callable[[list[Item]], None],
        dropped: Callable[[Item], None],
        counts: Counts,
        log: Log,
    ) -> None:
        self._uplink = uplink
        self._outbox = outbox
        self._wording = wording
        self._taken_items = taken
        self._dropped_item = dropped
        self._counts = counts
        self._log = log
        self._failures = 0
        # Whether the last request was one that ingest took.
        self.taking = False
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
        """Send a batch, in halves where ingest refuses it for what is in it; say if it took it."""
        # What changes while a request is under way is worth another try at once.
        self._waking.clear()
        parts = [batch]
        corrected = False
        while parts:
            part = parts.pop()
            ahead = self._uplink.ahead
            answer = self._uplink.post(self._wording.request(part), self._wording.media)
            if answer.taken:
                self._taken(part)
            elif answer.status not in ABOUT_ITEMS:
                self.failed(part, [item for each in reversed(parts) for item in each], answer)
                return False
            elif not corrected and abs(self._uplink.ahead - ahead) > SKEW:
                # The times were wrong, perhaps, and nothing else.
                corrected = True
                parts.append(part)
            elif len(part) > 1:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
            else:
                self._dropped(part[0], answer)
        return True

    def failed(self, part: list[Item], rest: list[Item], answer: Answer) -> None:
        """Keep what could not be sent; `part` is what was tried."""
        alone = part[0].trial if len(part) == 1 and part[0].trial.alone else None
        if answer.status == HTTPStatus.UNAUTHORIZED:
            alone = None  # It says something of us.
        for item in part:
            item.trial.failures += 1
        if alone and self.taking:
            self._blame(part[0], answer)
        self.taking = False
        if alone and alone.blamed:
            self._rest(part[0], answer)
            self._outbox.put_back(rest)
        else:
            self._outbox.put_back([*part, *rest])
            self._pause(answer)

    def _blame(self, item: Item, answer: Answer) -> None:
        item.trial.refuse()
        if item.trial.refusals == 1:
            self._log.warning(
                self._wording.refused,
                object=str(item.key),
                status=answer.status or None,
                why=answer.why,
            )

    def _rest(self, item: Item, answer: Answer) -> None:
        """Have an item wait that ingest refuses while it takes others, or give it up."""
        if item.trial.over or self._outbox.is_crowded():
            self._dropped(item, answer)
            return
        self._counts.add("send_failures")
        item.trial.rest(answer.wait)
        self._outbox.put_back([item])

    def _taken(self, items: list[Item]) -> None:
        self.taking = True
        if self._failures:
            self._log.info(self._wording.again, failures=self._failures)
            self._failures = 0
        self._taken_items(items)

    def _dropped(self, item: Item, answer: Answer) -> None:
        self._counts.add("send_failures")
        self._log.warning(
            self._wording.dropped,
            object=str(item.key),
            status=answer.status or None,
            bytes=len(item.body),
            refusals=item.trial.refusals or None,
        )
        self._dropped_item(item)

    def _pause(self, answer: Answer) -> None:
        self._counts.add("send_failures")
        self._failures += 1
        if self._failures % _SAY_EVERY == 1:
            self._log.warning(
                self._wording.nothing,
                status=answer.status or None,
                why=answer.why,
                failures=self._failures,
            )
        if not self._ending:
            self._waking.wait(pause(self._failures, at_least=answer.wait))
