"""Threads that feed one inbox: as many as may work, and others in place of those that wait.

A thread whose cluster accepts a call and never answers is of no use for as long as that lasts. So
threads that have been at one message for a while are not counted: where nobody is free, another
is started in their place, up to a limit, and ends once it has had nothing to do for a while. More
threads help only who waits: where this process keeps a core busy, none are added.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from bellhop.frozen import frozen
from bellhop.logs import Log

STUCK = 0.05
"""Seconds at one message after which a thread does not count."""

_TICK = 0.025
_BUSY = 0.9
"""Share of a core from which on threads are in each other's way."""


@frozen
class Size:
    """How many threads there are: `few` at all times, `most` where the others are stuck."""

    few: int
    most: int


Feed = Callable[[Callable[[], None], float], bool]
"""Takes messages, waiting up to so many seconds, calls the function when it has some, and works
on them; says whether there were any."""


class Pool:
    """Threads that call `feed` until they are told to stop."""

    def __init__(self, name: str, feed: Feed, size: Size, log: Log, *, wait: float = 5.0) -> None:
        self._name = name
        self._feed = feed
        self._size = size
        self._log = log
        self._wait = wait
        self.idle = 10.0
        """Seconds without a message after which a thread that was added ends."""

        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._since: dict[threading.Thread, float] = {}
        self._started = 0
        self._watch = threading.Thread(target=self._look_on, name=f"{name}-watch")

    def start(self) -> None:
        """Begin to work."""
        with self._changed:
            for _ in range(self._size.few):
                self._add()
        if self._size.most > self._size.few:
            self._watch.start()

    def end(self) -> None:
        """Begin nothing more."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Finish what is in hand and end."""
        self.end()
        with self._changed:
            threads = list(self._threads)
        if self._watch.is_alive():
            self._watch.join()
        for thread in threads:
            thread.join()

    @property
    def size(self) -> int:
        """Say how many threads there are now."""
        with self._changed:
            return len(self._threads)

    def _add(self) -> None:
        self._started += 1
        thread = threading.Thread(target=self._work, name=f"{self._name}-{self._started}")
        thread.start()
        self._threads.add(thread)

    def _work(self) -> None:
        me, last = threading.current_thread(), time.monotonic()
        while not self._stopping.is_set():
            try:
                worked = self._feed(self._begin, self._wait)
            except Exception as error:  # noqa: BLE001 - a worker outlives whatever it meets
                self._log.error("Failed between messages", error)
                self._stopping.wait(1.0)
                worked = True
            with self._changed:
                self._since.pop(me, None)
                if worked:
                    last = time.monotonic()
                elif time.monotonic() - last > self.idle and len(self._threads) > self._size.few:
                    break
        with self._changed:
            self._threads.discard(me)

    def _begin(self) -> None:
        with self._changed:
            self._since[threading.current_thread()] = time.monotonic()
            if len(self._since) == len(self._threads):
                self._changed.notify_all()

    def _look_on(self) -> None:
        """Add threads while nobody is free and some are stuck."""
        while not self._stopping.is_set():
            with self._changed:
                while len(self._since) < len(self._threads) and not self._stopping.is_set():
                    self._changed.wait()
            begun, used = time.monotonic(), time.process_time()
            if self._stopping.wait(_TICK):
                return
            busy = (time.process_time() - used) / (time.monotonic() - begun)
            if busy < _BUSY:
                self._relieve()

    def _relieve(self) -> None:
        """Put somebody in the place of each that is stuck, where nobody is free."""
        with self._changed:
            if len(self._since) < len(self._threads):
                return
            late = time.monotonic() - STUCK
            stuck = sum(since < late for since in self._since.values())
            wanted = min(self._size.few + stuck, self._size.most)
            try:
                for _ in range(wanted - len(self._threads)):
                    self._add()
            except RuntimeError as error:
                # The machine has no more to give; those there are go on.
                self._log.error("Cannot start another thread", error)
