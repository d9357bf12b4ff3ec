"""Load the modules of a function without garbage collection.

Python's collector visits all objects whenever a number of new ones was made. Objects of modules
stay as long as the process: visiting them took a tenth of a cold start.
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
