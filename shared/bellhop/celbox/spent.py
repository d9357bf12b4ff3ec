"""How much processor time a thread has used, with what was run apart for it."""

from __future__ import annotations

import threading
import time

_apart = threading.local()


def thread_time() -> float:
    """Return the seconds that this thread and its cells have used."""
    return time.thread_time() + getattr(_apart, "seconds", 0.0)


def add(seconds: float) -> None:
    """Count what a cell used for this thread."""
    _apart.seconds = getattr(_apart, "seconds", 0.0) + seconds
