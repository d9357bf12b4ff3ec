"""A folder to build something in, and the way each step of the build runs.

An unfinished result must never be taken for a finished one: it is under a name of its own beside
its destination, and the next run removes what a killed one has left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bellhop.errors import PermanentError
from infra.lab.processes import Nursery
from infra.lab.progress import Progress

_PREFIX = "unfinished-"


class Workshop:
    """A folder, a progress line, and steps that log to one file."""

    def __init__(self, folder: Path, progress: Progress, nursery: Nursery) -> None:
        self.folder = folder
        self.progress = progress
        self._nursery = nursery
        self._log_path = folder / "log"

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run one step to its end, keeping the progress line alive.

        Raises:
            PermanentError: The step failed; the message ends with the last lines of its output.
        """
        program = shutil.which(str(argv[0]), path=(env or os.environ).get("PATH"))
        if program is None:
            raise PermanentError(f"cannot build: '{argv[0]}' is not on PATH")
        process = self._nursery.start(
            [program, *argv[1:]], self._log_path, cwd=cwd or self.folder, env=env, tree=True
        )
        while (returncode := process.wait(1)) is None:
            self.progress.tick()
        if returncode:
            name = Path(program).name
            raise PermanentError(
                f"'{name}' ended with {returncode} while {self.progress.name}, "
                f"its last words: {process.last_words()}"
            )


@contextlib.contextmanager
def workshop(beside: Path, progress: Progress) -> Iterator[Workshop]:
    """Open a folder for making things in the folder `beside`, and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=beside))
    try:
        with Nursery() as nursery:
            yield Workshop(folder, progress, nursery)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(beside: Path) -> None:
    """Remove what killed runs have left; the caller holds the lock, so none of it is in use."""
    for folder in beside.glob(f"{_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def only_one(lock_path: Path, progress: Progress) -> Iterator[None]:
    """Keep every other process out of the block; the second waits and says so.

    The kernel gives the lock back however its holder ends.
    """
    with lock_path.open("a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            progress.say(f"another build is running (process {holder}), waiting for it to end.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield
