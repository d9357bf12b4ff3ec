"""Say how far a slow build is, so that nobody takes it for a hung one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """One line a stage and then one now and again; on a terminal, one line that changes."""

    def __init__(
        self,
        stream: TextIO,
        *,
        clock: Callable[[], float] = time.monotonic,
        interval: float = 15,
        subject: str = "control plane",
    ) -> None:
        """Write of `subject` to `stream`, where nobody watches at most every `interval` seconds."""
        self._subject = subject
        self._stream = stream
        self._clock = clock
        self._live = stream.isatty()
        self._interval = 1 if self._live else interval
        self._began = self._said_at = clock()
        self.name = ""
        self._drawn = 0

    def stage(self, name: str) -> None:
        self._end_line()
        self.name = name
        self._write()

    def tick(self) -> None:
        """Say that the stage goes on, unless that was said a moment ago."""
        if self._clock() - self._said_at >= self._interval:
            self._write()

    def say(self, sentence: str) -> None:
        self._end_line()
        self._stream.write(f"{self._subject}: {sentence}\n")
        self._stream.flush()

    def elapsed(self) -> float:
        """Return the seconds since the beginning."""
        return self._clock() - self._began

    def _write(self) -> None:
        self._said_at = self._clock()
        line = f"{self._subject}: {self.name} ({self.elapsed():.0f} s)"
        if self._live:
            self._stream.write(f"\r{line:<{self._drawn}}")
            self._drawn = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def _end_line(self) -> None:
        if self._drawn:
            self._stream.write("\n")
            self._drawn = 0
