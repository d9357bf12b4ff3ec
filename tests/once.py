"""Make a folder once for all workers of a run: the first makes it, and the others wait for it.

What takes seconds to build and is only read needs no copy for each worker.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled, in this process or in another of the run.

    Where it fails the next one tries, in an empty folder of its own.
    """
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made = shared / f"once-{name}"
    with (shared / f"once-{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not made.exists():
            unfinished = factory.mktemp(name)
            make(unfinished)
            unfinished.replace(made)
    return made
