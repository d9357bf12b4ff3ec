"""Readers: read an object until it shows the result of a write, and put it into the outbox.

    read at      0   5   15   35   85   185   385   885   1885   2885   3885 ms after the first,
                 which comes some 3 ms after the hint: as the API server has needed of late
    then         the write was denied, or changed nothing

Failed reads are repeated for ever, unless a right or the kind itself is missing: an object that is
refused for an hour is dropped, and at once where ingest says that no source names its kind.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from bellhop.core.gvk import GVK
from bellhop.core.identity import version_of
from bellhop.errors import (
    BellhopError,
    DeniedError,
    MissingError,
    PermanentError,
    TemporaryError,
)
from bellhop.forwarder.backoff import pause
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.forwarder.pending import Known, ReadBackResult
from bellhop.forwarder.workqueue import DelayingQueue, QueueItem
from bellhop.logs import Log
from bellhop.ports.kube import Kube

READERS = 4
NEXT_LOOKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.0, 1.0)
"""Seconds from one look to the next."""

REFUSED_AT_MOST = 3600.0
"""Seconds for which a missing right or kind is waited for; no wall clock counts them."""

_ENDED = sys.maxsize
_SAY_AGAIN_SECONDS = 60
_AFTER_A_BUG_SECONDS = 30
_TROUBLE_SECONDS = 300
"""For so long an unreadable kind is reported, unless it was read since."""


class Readers:
    """A few threads that read objects."""

    def __init__(
        self,
        kube: Kube,
        queue: DelayingQueue,
        outbox: Outbox,
        counts: Counts,
        log: Log,
        patience: float = REFUSED_AT_MOST,
    ) -> None:
        self._kube = kube
        self._patience = patience
        self._queue = queue
        self._outbox = outbox
        self._counts = counts
        self._log = log
        self._said: dict[tuple[GVK, str], float] = {}
        self._troubles: dict[GVK, tuple[float, str]] = {}
        self._unasked: dict[GVK, int] = {}
        self._threads = [
            threading.Thread(target=self._work, name=f"reader-{number}", daemon=True)
            for number in range(READERS)
        ]

    def start(self) -> None:
        """Begin to read; it ends once queue and outbox are closed."""
        for thread in self._threads:
            thread.start()

    def alive(self) -> bool:
        """Say if all of them still work."""
        return all(thread.is_alive() for thread in self._threads)

    def refused(self) -> dict[str, str]:
        """Return which kinds could not be read back lately, each with the reason."""
        oldest = time.monotonic() - _TROUBLE_SECONDS
        return {str(gvk): said for gvk, (at, said) in [*self._troubles.items()] if at > oldest}

    def release(self, kinds: Iterable[str], serial: int) -> None:
        """Drop objects of kinds that nobody asks for, of hints up to a serial, if unreadable.

        A kind that is asked for again has later hints, and its objects are listed anyway.
        """
        for kind in kinds:
            at, _, name = kind.rpartition("/")
            gvk = GVK.parse(at, name)
            self._unasked[gvk] = serial
            self._troubles.pop(gvk, None)

    def _work(self) -> None:
        while self._outbox.wait_for_capacity():
            item = self._queue.take()
            if item is None:
                return
            try:
                self._look(item)
            except Exception as error:  # noqa: BLE001 - one odd object must not end a reader
                self._log.error("Failed to look at an object", error, object=str(item.pending.key))
                self._queue.requeue(item, _AFTER_A_BUG_SECONDS)

    def _look(self, item: QueueItem) -> None:
        pending = item.pending
        if pending.named:
            self._put_name(item)
            return
        self._counts.add("reads")
        try:
            state = self._kube.get(*pending.key)
        except BellhopError as error:
            self._counts.add("read_failures")
            self._handle_error(item, error)
            return
        self._troubles.pop(pending.key.gvk, None)
        last = item.looks >= len(NEXT_LOOKS)
        result = pending.conclude(state) if last else pending.evaluate(state)
        if result is ReadBackResult.NOT_YET:
            item.looks += 1
            item.failures, item.refused_at = 0, 0.0
            self._queue.requeue(item, NEXT_LOOKS[item.looks - 1])
        elif result is ReadBackResult.NOTHING:
            self._counts.add("nothing")
            self._release_item(item)
        else:
            self._put(item, state)

    def _put_name(self, item: QueueItem) -> None:
        """Send the name of an object of the configuration, which is read from outside."""
        pending = item.pending
        name = {"key": str(pending.key), "uid": pending.uid, "before": pending.before}
        text = json.dumps({"hint": name}, separators=(",", ":"))
        self._outbox.put(
            Item(
                *(pending.key, pending.serial, pending.reported_at, text.encode()),
                own=pending.own,
            )
        )
        self._queue.finish(item)

    def _put(self, item: QueueItem, state: dict[str, Any] | None) -> None:
        pending = item.pending
        if state is None:
            known = pending.known or Known(pending.uid, pending.before)
            deleted = {"key": str(pending.key), "uid": known.uid, "version": known.version}
            found: dict[str, Any] = {"gone": deleted}
            # No version of it comes after its end.
            self._queue.absorb(item, Known(known.uid, _ENDED))
        else:
            metadata = {**(state.get("metadata") or {})}
            metadata.pop("managedFields", None)
            found = {"object": {**state, "metadata": metadata}}
            self._queue.absorb(item, Known(str(metadata.get("uid")), version_of(metadata)))
        text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
        # A deletion is reported, even of an object that Bellhop wrote.
        own = item.pending.own and state is not None
        self._outbox.put(
            Item(pending.key, item.pending.serial, pending.reported_at, text.encode(), own=own)
        )
        self._queue.finish(item)

    def _handle_error(self, item: QueueItem, error: BellhopError) -> None:
        if item.pending.serial <= self._unasked.get(item.pending.key.gvk, 0):
            self._troubles.pop(item.pending.key.gvk, None)
            self._counts.add("nothing")
            self._release_item(item)
            return
        self._troubles[item.pending.key.gvk] = (time.monotonic(), str(error))
        item.failures += 1
        item.refused_at = item.refused_at or time.monotonic()
        waits = isinstance(error, (TemporaryError, DeniedError, MissingError))
        refused = time.monotonic() - item.refused_at
        too_long = isinstance(error, PermanentError) and refused >= self._patience
        if not waits or too_long:
            self._log.warning(
                "Dropped an object; resyncs find it",
                object=str(item.pending.key),
                error=str(error),
            )
            self._counts.add("dropped")
            self._release_item(item)
            return
        self._say(item.pending.key.gvk, error)
        given = (
            error.delay.total_seconds()
            if isinstance(error, TemporaryError) and error.delay
            else 0.0
        )
        self._queue.requeue(item, pause(item.failures, at_least=given))

    def _release_item(self, item: QueueItem) -> None:
        pending = item.pending
        # An older state of the object may still wait to be sent; the disk must not forget that.
        if not self._outbox.cover(pending.key, pending.serial):
            self._queue.forget([(pending.key, pending.serial)])
        self._queue.finish(item)

    def _say(self, gvk: GVK, error: BellhopError) -> None:
        """Log that a kind cannot be read, once a minute."""
        now = time.monotonic()
        topic = (gvk, error.code)
        if now - self._said.get(topic, float("-inf")) >= _SAY_AGAIN_SECONDS:
            self._said[topic] = now
            self._log.warning("Cannot read back changed objects, and keep trying", error=str(error))
