"""Which processes work on a state: each has a badge, and a lock that ends with it however it ends.

Records and queues name who holds something by that badge; whoever meets a badge asks here whether
its process is alive. Who starts a process draws its badge, locks it, and hands the lock on: a badge
is locked before anybody can meet it.

state/processes/BADGE      locked for as long as the process of that badge lives
"""

from __future__ import annotations

import fcntl
import secrets as entropy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bellhop.adapters.local.files import prepare, translated
from bellhop.errors import BusyError

_PATIENCE = 10.0
_TICK = 0.02


class Living:
    """The processes that work on one state folder."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._folder = state / "processes"
        prepare(self._folder)

    @contextmanager
    def issued(self) -> Iterator[tuple[str, IO[str]]]:
        """Draw a badge and lock it; whoever has the lock open, be it handed on, keeps it alive."""
        badge = entropy.token_hex(8)
        path = self._folder / badge
        with translated(path):
            lock = path.open("x")
        try:
            with lock:
                with translated(path):
                    fcntl.flock(lock, fcntl.LOCK_EX)
                yield badge, lock
        finally:
            _forget(path)

    def lives(self, badge: str) -> bool:
        """Say whether the process of a badge is alive; of an unknown badge there is none."""
        try:
            with (self._folder / badge).open() as lock:
                # Shared, so that two who ask do not take each other for it.
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def outlive(self, patience: float = _PATIENCE) -> None:
        """Wait until all that were left by a killed `serve` have ended, and forget them.

        Raises:
            BusyError: one does not.
        """
        deadline = time.monotonic() + patience
        for path in self._folder.iterdir():
            while self.lives(path.name):
                if time.monotonic() > deadline:
                    raise BusyError(
                        f"cannot serve from '{self._state}': a process of an earlier `bellhop"
                        f" serve` is still at work there; end the one that was started with"
                        f" '{path.name}'"
                    )
                time.sleep(_TICK)
            _forget(path)


def _forget(path: Path) -> None:
    # After a power cut it may be there again, and nobody has its lock.
    with translated(path):
        path.unlink(missing_ok=True)
