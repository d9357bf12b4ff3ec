"""Loads the modules of a function, and lets nobody look for garbage among them.

Python's collector goes through what there is each time so many more objects were made. What modules
make stays as long as the process: a tenth of a cold start went into finding that out.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Collect no garbage within; what is there at its end is never looked at again."""
    gc.disable()
    try:
        yield
    finally:
        # Without it the first event's first collection would do all that was saved.
        gc.freeze()
        gc.enable()
