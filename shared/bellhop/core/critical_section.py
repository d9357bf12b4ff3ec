"""What must happen as a whole or not at all, though somebody presses Ctrl-C meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a Ctrl-C wait until the block is done: it must happen as a whole or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before: Callable[[int, Any], Any] | int | None = signal.signal(
        signal.SIGINT, lambda number, _frame: waiting.append(number)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt
