"""How a process is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

_HEARING_SECONDS = 0.5


def stop_on_signals() -> threading.Event:
    """Return what SIGINT and SIGTERM set."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def wait_for(stop: threading.Event, check: Callable[[], None] = lambda: None) -> None:
    """Wait until it is set, or until `check`, which is called twice a second, raises.

    Not in one wait without an end: a signal that arrives just before a lock's wait is heard by
    CPython only after it, which would be never.
    """
    while not stop.wait(_HEARING_SECONDS):
        check()
