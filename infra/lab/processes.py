"""Start programs that never outlive us, and end them in order.

Each runs in a session of its own, so that Ctrl-C in a terminal reaches only Python, which then
stops them properly; and each is killed by the kernel if Python itself is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

_LAUNCHER = Path(__file__).with_name("launcher.py")
_LAST_LINES = 6
_GRACE = 10.0
_TURN = 0.01
_AT_REST = frozenset("TtZX")


class Process:
    """One running program, whose output goes to a log file."""

    def __init__(self, popen: subprocess.Popen[bytes], log_path: Path) -> None:
        self._popen = popen
        self.log_path = log_path

    @property
    def pid(self) -> int:
        """Return the process id, which is also its session's and group's."""
        return self._popen.pid

    def returncode(self) -> int | None:
        """Return how the program ended, None while it runs."""
        return self._popen.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait for the program's end at most so long; None if it still runs."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        """Ask the program and its children to end, without waiting."""
        self._signal(signal.SIGTERM)

    def stop(self, grace: float = _GRACE) -> None:
        """End the program and its children: ask, wait for `grace` seconds, then kill."""
        self.terminate()
        if self.wait(grace) is None:
            self.kill()
            self._popen.wait()

    def kill(self) -> None:
        """End the program and its children wherever they are, without waiting."""
        self._signal(signal.SIGKILL)

    def freeze(self) -> None:
        """Halt the program and its children wherever they are, and wait until none of them runs.

        On a busy machine a thread may go on for a moment, and answer who asks just then.
        """
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + _GRACE
        while not _halted(self.pid) and time.monotonic() < deadline:
            time.sleep(_TURN)

    def thaw(self) -> None:
        """Let a frozen program go on."""
        self._signal(signal.SIGCONT)

    def last_words(self) -> str:
        """Quote the end of the log, on one line."""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return " | ".join(line.strip()[:300] for line in lines[-_LAST_LINES:])

    def _signal(self, number: signal.Signals) -> None:
        if self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)


def _halted(group: int) -> bool:
    """Say whether all threads of a process group are stopped, or have ended."""
    for task in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # Behind the name, which may have any character: the state, the parent, the group.
            state, _, found, *_ = task.read_text().rpartition(")")[2].split()
            if int(found) == group and state not in _AT_REST:
                return False
    return True


class Nursery:
    """A set of processes that ends with its owner.

    The kernel ties a child's life to the *thread* that started it, so all are started from one
    thread that lives as long as the nursery: callers may come and go on theirs. In the end they
    have `grace` seconds in all.
    """

    def __init__(self, grace: float = _GRACE) -> None:
        self._grace = grace
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="nursery")
        self._processes: list[Process] = []
        self._ending = False

    def start(
        self,
        argv: Sequence[str | Path],
        log_path: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        tree: bool = False,
    ) -> Process:
        """Start a program by its absolute path; its output is appended to the log.

        `tree` says that it starts programs of its own, which are to end with it.

        Raises:
            RuntimeError: The nursery has ended, or does so just now.
        """
        extent = "tree" if tree else "one"
        launch = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), extent]

        def spawn() -> Process:
            if self._ending:
                raise RuntimeError(f"cannot start {argv[0]}: its nursery has ended")
            with log_path.open("ab") as log:
                popen = subprocess.Popen(  # noqa: S603 - the caller names the program
                    [*launch, *map(str, argv)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env=env,
                    start_new_session=True,
                )
            self._processes.append(Process(popen, log_path))
            return self._processes[-1]

        return self._starter.submit(spawn).result()

    def close(self) -> None:
        """End every process that still runs, the last started first; none is started from now."""
        if not self._ending:
            self._ending = True
            # A process that is just being started ends, too.
            self._starter.submit(int).result()
        running = [one for one in reversed(self._processes) if one.returncode() is None]
        for one in running:  # All at once, so that only the slowest is waited for.
            one.terminate()
        until = time.monotonic() + self._grace
        for one in running:
            one.stop(max(0.0, until - time.monotonic()))
        self._starter.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
