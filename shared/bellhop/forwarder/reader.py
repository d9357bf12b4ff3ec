"""Readers: look at an object until it shows what became of a write, and hand it to the outbox.

    look at      0   5   15   35   85   185   385   885   1885   2885   3885 ms after the first,
                 which comes some 3 ms after the hint: as the API server has needed of late
    then         the write was denied, or changed nothing

Looks that fail are repeated for ever, except where a right or the kind itself is missing: what
is refused for an hour is given up, and at once where ingest says that nobody asks for its kind.
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
"""For so long it is told that a kind could not be read, unless it could be since."""


class Readers:
    """A few threads that look at objects."""

    def __init__(
        self,
        kube: Kube,
        desk: DelayingQueue,
        outbox: Outbox,
        counts: Counts,
        log: Log,
        patience: float = REFUSED_AT_MOST,
    ) -> None:
        self._kube = kube
        self._patience = patience
        self._desk = desk
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
        """Begin to look; it ends once desk and outbox are closed."""
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
        while self._outbox.wait_for_room():
            turn = self._desk.take()
            if turn is None:
                return
            try:
                self._look(turn)
            except Exception as error:  # noqa: BLE001 - one odd object must not end a reader
                self._log.error("Failed to look at an object", error, object=str(turn.debt.key))
                self._desk.later(turn, _AFTER_A_BUG_SECONDS)

    def _look(self, turn: QueueItem) -> None:
        debt = turn.debt
        self._counts.add("reads")
        try:
            state = self._kube.get(*debt.key)
        except BellhopError as error:
            self._counts.add("read_failures")
            self._refused(turn, error)
            return
        self._troubles.pop(debt.key.gvk, None)
        last = turn.looks >= len(NEXT_LOOKS)
        sight = debt.conclude(state) if last else debt.judge(state)
        if sight is ReadBackResult.NOT_YET:
            turn.looks += 1
            turn.failures, turn.refused_at = 0, 0.0
            self._desk.later(turn, NEXT_LOOKS[turn.looks - 1])
        elif sight is ReadBackResult.NOTHING:
            self._counts.add("nothing")
            self._let_go(turn)
        else:
            self._found(turn, state)

    def _found(self, turn: QueueItem, state: dict[str, Any] | None) -> None:
        debt = turn.debt
        if state is None:
            known = debt.known or Known(debt.uid, debt.before)
            gone = {"key": str(debt.key), "uid": known.uid, "version": known.version}
            found: dict[str, Any] = {"gone": gone}
            # No version of it comes after its end.
            self._desk.absorb(turn, Known(known.uid, _ENDED))
        else:
            metadata = {**(state.get("metadata") or {})}
            metadata.pop("managedFields", None)
            found = {"object": {**state, "metadata": metadata}}
            self._desk.absorb(turn, Known(str(metadata.get("uid")), version_of(metadata)))
        text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
        # That an object ended is told, whoever wrote it before.
        own = turn.debt.own and state is not None
        self._outbox.put(Item(debt.key, turn.debt.serial, debt.rang, text.encode(), own=own))
        self._desk.finish(turn)

    def _refused(self, turn: QueueItem, error: BellhopError) -> None:
        if turn.debt.serial <= self._unasked.get(turn.debt.key.gvk, 0):
            self._troubles.pop(turn.debt.key.gvk, None)
            self._counts.add("nothing")
            self._let_go(turn)
            return
        self._troubles[turn.debt.key.gvk] = (time.monotonic(), str(error))
        turn.failures += 1
        turn.refused_at = turn.refused_at or time.monotonic()
        waits = isinstance(error, (TemporaryError, DeniedError, MissingError))
        refused = time.monotonic() - turn.refused_at
        too_long = isinstance(error, PermanentError) and refused >= self._patience
        if not waits or too_long:
            self._log.warning(
                "Dropped an object; resyncs find it",
                object=str(turn.debt.key),
                error=str(error),
            )
            self._counts.add("dropped")
            self._let_go(turn)
            return
        self._say(turn.debt.key.gvk, error)
        given = (
            error.delay.total_seconds()
            if isinstance(error, TemporaryError) and error.delay
            else 0.0
        )
        self._desk.later(turn, pause(turn.failures, at_least=given))

    def _let_go(self, turn: QueueItem) -> None:
        debt = turn.debt
        # An older state of the object may still wait to be sent; the disk must not forget that.
        if not self._outbox.cover(debt.key, debt.serial):
            self._desk.forget([(debt.key, debt.serial)])
        self._desk.finish(turn)

    def _say(self, gvk: GVK, error: BellhopError) -> None:
        """Log that a kind cannot be read, once a minute."""
        now = time.monotonic()
        topic = (gvk, error.code)
        if now - self._said.get(topic, float("-inf")) >= _SAY_AGAIN_SECONDS:
            self._said[topic] = now
            self._log.warning("Cannot read back changed objects, and keep trying", error=str(error))
