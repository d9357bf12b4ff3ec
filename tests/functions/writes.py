"""What functions write on Google, and a signal to the process that writes.

What is written is served, and its answer held back until the signal is sent: a process that is
killed then has done it and never learns so. gunicorn forks another one, as Cloud Run starts
another instance.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Self

from tests.lab.frameworks import Running
from tests.lab.google_front import Front

_WRITES = frozenset({"Commit", "Publish"})
_QUIET = 2.0
"""Seconds; longer than a failed worker rests before it tries again."""

Happens = Callable[[int, bytes], None]
"""Is called with the process that has written, and the write as it went over the wire."""


class Writes:
    """Stands before Firestore and Pub/Sub, and sees what is written."""

    def __init__(self, emulators: Mapping[str, str]) -> None:
        self.firestore = Front(emulators["FIRESTORE_EMULATOR_HOST"], watches=self._served)
        self._pubsub = Front(emulators["PUBSUB_EMULATOR_HOST"], watches=self._served)
        self._seen: list[tuple[Running, Happens]] = []
        self._last = time.monotonic()
        self._end = ExitStack()

    @property
    def emulators(self) -> Mapping[str, str]:
        """Return the addresses to write to, by the names of the emulators' variables."""
        return {
            "FIRESTORE_EMULATOR_HOST": self.firestore.address,
            "PUBSUB_EMULATOR_HOST": self._pubsub.address,
        }

    @contextmanager
    def seen(self, function: Running, happens: Happens) -> Iterator[None]:
        """Report each write of a function, before it is answered."""
        one = function, happens
        self._seen.append(one)
        try:
            yield
        finally:
            self._seen.remove(one)

    def quiet(self) -> bool:
        """Say whether nobody has asked for a while."""
        return time.monotonic() > self._last + _QUIET

    def forgive(self) -> None:
        """Forget the failures that were asked for and did not happen yet."""
        for each in (self.firestore, self._pubsub):
            each.forgive()

    def __enter__(self) -> Self:
        for each in (self.firestore, self._pubsub):
            self._end.enter_context(each)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    def _served(self, operation: str, peer: str, written: bytes) -> None:
        self._last = time.monotonic()
        if operation not in _WRITES:
            return
        for function, happens in tuple(self._seen):
            process = function.asker(peer)
            if process:
                happens(process, written)


class Deaths:
    """Kills a process at its first write, who comes after it at its second, and so on.

    So whoever begins again gets further than the one before, until one ends, or `most` have died.
    """

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._writes: Counter[int] = Counter()
        self.count = 0

    def __call__(self, process: int, _: bytes) -> None:
        with self._lock:
            self._writes[process] += 1
            if self.count == self._most or self._writes[process] <= self.count:
                return
            self.count += 1
        os.kill(process, signal.SIGKILL)

    def __repr__(self) -> str:
        return f"{self.count} deaths"


class Halt:
    """Halts who writes first what has some bytes in it, until the end of the context."""

    def __init__(self, part: bytes) -> None:
        self._lock = threading.Lock()
        self._part = part
        self.halted = 0
        self.others: Counter[int] = Counter()
        """The writes of others since then."""

    def __call__(self, process: int, written: bytes) -> None:
        with self._lock:
            if self.halted:
                self.others[process] += 1
                return
            if self._part not in written:
                return
            self.halted = process
        os.kill(process, signal.SIGSTOP)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.halted:
            os.kill(self.halted, signal.SIGCONT)
