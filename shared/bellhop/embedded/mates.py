"""Processes that work beside the one that leads: started by it, replaced when they die.

    leads ── starts ──► mate: feeds the same inboxes, over the same files
      │                   │
      │ ends, however ────┤ its end of a pipe closes: the mate ends at once, as if killed
      │ is told to end ──►│ SIGTERM: it finishes what is in hand
      │                   │
      └─ gives back what it held, starts another ◄── dies

A mate is a Python of its own, never a fork: SQLite's locks do not outlive one.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from bellhop.embedded.living import Living
from bellhop.logs import Log

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
"""Seconds before another one is started in place of one that died; each is twice as long, until
one has lived for the longest."""

_MODULE = "bellhop.embedded.mate"


class Mates:
    """So many processes, until they are told to end; `release` gives back what one held."""

    def __init__(
        self, state: Path, count: int, living: Living, release: Callable[[str], None], log: Log
    ) -> None:
        self._state = state
        self._living = living
        self._release = release
        self._log = log
        self._ending = threading.Event()
        self._changing = threading.Lock()
        self._alive: set[subprocess.Popen[bytes]] = set()
        self._count = count
        self._keepers: list[threading.Thread] = []

    def start(self) -> None:
        """Start them."""
        for _ in range(self._count):
            keeper = threading.Thread(target=self._keep, name="mates")
            keeper.start()
            self._keepers.append(keeper)

    def end(self) -> None:
        """Tell them to finish what is in hand."""
        self._ending.set()
        with self._changing:
            for process in self._alive:
                process.terminate()

    def join(self) -> None:
        """Wait until they have ended."""
        for keeper in self._keepers:
            keeper.join()

    def _keep(self) -> None:
        """Have one live, and another one in its place."""
        pause = _FIRST_PAUSE / 2
        while not self._ending.is_set():
            begun, status = time.monotonic(), None
            try:
                status = self._live()
            except Exception as error:  # noqa: BLE001 - who keeps them outlives whatever it meets
                self._log.error("Cannot keep a process beside this one", error)
            lived = time.monotonic() - begun
            pause = _FIRST_PAUSE if lived > _LONGEST_PAUSE else min(2 * pause, _LONGEST_PAUSE)
            if status is not None and not self._ending.is_set():
                self._log.warning(
                    "A process died, and another one takes its place",
                    status=status,
                    again_in=pause,
                )
            self._ending.wait(pause)

    def _live(self) -> int | None:
        """Start one; return how it ended, once what it held was given back."""
        with self._living.issued() as (badge, lock):
            process = self._begin(badge, lock)
            if process is None:
                return None
            status = process.wait()
            with self._changing:
                self._alive.discard(process)
            assert process.stdin
            process.stdin.close()
            self._release(badge)
            return status

    def _begin(self, badge: str, lock: IO[str]) -> subprocess.Popen[bytes] | None:
        """Start one that alone has the lock of its badge; None if all are to end."""
        with lock, self._changing:
            if self._ending.is_set():
                return None
            process = subprocess.Popen(  # noqa: S603 - our own program
                # Nothing is to be imported from wherever `serve` was started.
                [sys.executable, "-P", "-m", _MODULE, str(self._state), badge],
                stdin=subprocess.PIPE,
                pass_fds=[lock.fileno()],
                # Ctrl-C is for who leads.
                start_new_session=True,
            )
            self._alive.add(process)
            return process
