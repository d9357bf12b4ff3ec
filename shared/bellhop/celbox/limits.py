"""The limits of one evaluation of a rule, and the processor time that a thread has used."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

_apart = threading.local()


class Limits(NamedTuple):
    """The bounds of one evaluation; each is named in the CelLimitError of a rule that meets it.

    CEL's runtime adds two of its own: 32 levels of nesting, checked when a rule is compiled, and
    10,000 iterations of all loops together.
    """

    seconds: float = 1.0
    """Processor time."""

    memory: int = 64 * 1024 * 1024
    """Bytes an evaluation may allocate beyond its input."""

    depth: int = 100
    """Lists and maps within each other, in the object."""

    size: int = 32 * 1024
    """Bytes of the rule's text."""

    here: float = 0.05
    """Seconds that a rule may take in this process: nothing stops it, so more is done apart."""


def thread_time() -> float:
    """Return the seconds that this thread and its cells have used."""
    return time.thread_time() + getattr(_apart, "seconds", 0.0)


def add_time(seconds: float) -> None:
    """Count what a cell used for this thread."""
    _apart.seconds = getattr(_apart, "seconds", 0.0) + seconds
