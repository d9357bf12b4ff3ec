"""A cache of answers, each for so many seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """Answers by name, each for as many seconds as `age` says; shared between threads."""

    def __init__(self, age: float, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._age = age
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, T]] = {}

    def get(self, name: str, find: Callable[[], T]) -> T:
        """Return what is known of a name, or find it out; two at once may both find it out."""
        now = self._seconds()
        with self._lock:
            kept = self._kept.get(name)
        if kept and now - kept[0] < self._age:
            return kept[1]
        found = find()
        with self._lock:
            self._kept = {
                each: known for each, known in self._kept.items() if now - known[0] < self._age
            }
            self._kept[name] = now, found
        return found

    def forget(self, name: str, wrong: Callable[[T], bool]) -> None:
        """Forget what is known of a name if that is wrong, and not what somebody found since."""
        with self._lock:
            kept = self._kept.get(name)
            if kept and wrong(kept[1]):
                del self._kept[name]
