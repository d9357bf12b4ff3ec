"""Who computes: one thread of the process at a time, for as long as it waits for nobody.

Every statement of SQLite lets go of Python's interpreter. Where several threads want it, another
one takes it, and the first must be woken to go on: an event of a hundred statements is a hundred
handovers, each dearer than a statement. So who works holds a baton, passes it while a cluster is
asked, and the others wait for that rather than for the interpreter.

Who works does so for a share, as messages have it. Of the shares that wait the one comes first
that has had least: a cluster's single event does not wait until another's thousand are done. This
is start-time fair queueing (Goyal, Vin and Cheng, 1996), with seconds held as what is shared.

It is a courtesy and guards nothing: who keeps it for too long loses it to the next one, and goes
on without. No thread can lock another one out, whatever it holds meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

_PATIENCE = 0.05
"""Seconds, about ten times as long as most work takes."""

_AHEAD = 0.005
"""Seconds that a share may go on with its next work while another one waits that has had less:
handing over at each piece of work would cost more than it gives."""

_FORGET = 1000
"""Shares that are remembered before those are forgotten that owe nothing."""


class _Turn(threading.local):
    """What a thread asks for, and whether it has it."""

    def __init__(self) -> None:
        self.share: str | None = None
        """For whom this thread works, within a block."""
        self.passed = False
        """Whether it waits for something within the block."""
        self.given = threading.Lock()
        self.given.acquire()
        """Released by whoever gives it the baton."""


class Baton:
    """Held by one thread at a time, and only while it computes."""

    def __init__(
        self, patience: float = _PATIENCE, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = patience
        self._seconds = seconds
        self._lock = threading.Lock()
        self._turn = _Turn()
        self._holder: threading.Lock | None = None
        self._share = ""
        self._since = 0.0
        self._waiting: dict[str, deque[threading.Lock]] = {}
        self._had: dict[str, float] = {}
        """What each share has had, in seconds of a common count; it is never below `_least`."""
        self._least = 0.0

    @property
    def mine(self) -> bool:
        """Say whether this thread holds it."""
        return self._holder is self._turn.given

    @contextmanager
    def held(self, share: str = "") -> Iterator[None]:
        """Hold it for a share until the end of the block, or until it was kept for too long."""
        if self._turn.share is not None:
            yield
            return
        self._turn.share = share
        self._take(share)
        try:
            yield
        finally:
            self._turn.share = None
            self._give()

    def lend(self) -> Callable[[], AbstractContextManager[None]]:
        """Return the block in which another thread works for this one's share."""
        return partial(self.held, self._turn.share or "")

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Let others have it within the block, in which this thread waits for something.

        A block within another one is a part of that.
        """
        if self._turn.passed or self._turn.share is None:
            yield
            return
        self._turn.passed = True
        self._give()
        try:
            yield
        finally:
            self._turn.passed = False
            self._take(self._turn.share)

    def go_on(self, share: str) -> None:
        """Go on within a block for a share, after others that wait and have had less."""
        self._turn.share = share
        with self._lock:
            if self.mine:
                self._charge()
                first = self._first()
                if first is None or self._tag(first) + _AHEAD > self._tag(share):
                    self._share = share
                    return
                self._pass_on()
        self._take(share)

    def _take(self, share: str) -> None:
        """Wait for one's turn; a holder who keeps it for too long is waited for no longer."""
        mine = self._turn.given
        with self._lock:
            if self._holder is None:
                self._begin(share, mine)
                return
            self._waiting.setdefault(share, deque()).append(mine)
        while not mine.acquire(timeout=self._patience):
            with self._lock:
                if self._holder is not mine and self._seconds() - self._since >= self._patience:
                    self._pass_on()

    def _give(self) -> None:
        with self._lock:
            if self.mine:
                self._pass_on()

    # Below, the lock is held. ------------------------------------------------------------------

    def _pass_on(self) -> None:
        """Take it from its holder and give it to the first of the share that has had least."""
        self._charge()
        self._holder = None
        share = self._first()
        if share is None:
            # Nobody was kept waiting by what it has had.
            self._least = self._tag(self._share)
            return
        waiting = self._waiting[share]
        following = waiting.popleft()
        if not waiting:
            del self._waiting[share]
        self._begin(share, following)
        following.release()

    def _begin(self, share: str, holder: threading.Lock) -> None:
        self._least = self._tag(share)
        self._holder, self._share, self._since = holder, share, self._seconds()
        if len(self._had) > _FORGET:
            self._had = {name: had for name, had in self._had.items() if had > self._least}

    def _charge(self) -> None:
        """Count for its share how long the holder has had it by now."""
        now = self._seconds()
        self._had[self._share] = self._tag(self._share) + now - self._since
        self._since = now

    def _first(self) -> str | None:
        return min(self._waiting, key=self._tag, default=None)

    def _tag(self, share: str) -> float:
        return max(self._had.get(share, 0.0), self._least)


BATON = Baton()
"""The process's own, as it has one interpreter."""
