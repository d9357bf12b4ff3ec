"""A stage, and what it works with, made by a function's first event."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from bellhop.runtime.cloud.resources import Resources

_LOOKS = 30.0
"""Seconds between two looks whether the installation was left for another one."""

Here_co = TypeVar("Here_co", bound=Resources, covariant=True)
Made_co = TypeVar("Made_co", covariant=True)


class Ready(Generic[Here_co, Made_co]):
    """Makes both when they are asked for first; many threads may ask at once.

    Where it fails, all those fail who waited for it: one after the other would wait for too long.
    """

    def __init__(self, make: Callable[[Here_co], Made_co], opening: Callable[[], Here_co]) -> None:
        self._make = make
        self._opening = opening
        self._lock = threading.Lock()
        self._made: tuple[Here_co, Made_co] | None = None
        self._failed: tuple[float, Exception] | None = None
        self._look_at = 0.0

    def get(self) -> tuple[Here_co, Made_co]:
        """Return both for an event that begins; what fails is tried again by the next one.

        Raises:
            BusyError: the installation was left for another one, or is being filled.
        """
        here, made = self._made or self._open(time.monotonic())
        here.begin()
        if time.monotonic() >= self._look_at:
            here.records.moves.refuse()
            self._look_at = time.monotonic() + _LOOKS
        return here, made

    def _open(self, asked_at: float) -> tuple[Here_co, Made_co]:
        with self._lock:
            if self._made is not None:
                return self._made
            if self._failed and self._failed[0] > asked_at:
                raise self._failed[1]
            try:
                here = self._opening()
                self._made = here, self._make(here)
            except Exception as error:
                self._failed = time.monotonic(), error
                raise
            return self._made
