"""At how many steps a test kills or interrupts a worker: at a share of them, or at all."""

from __future__ import annotations

import os

SHARE = 1 if os.environ.get("BELLHOP_FUZZ") else int(os.environ.get("BELLHOP_SHARE", "9"))
"""One step in so many; `make test-thorough` takes every third, `make fuzz` every step."""
