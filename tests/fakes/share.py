"""At how many steps a test kills or interrupts a worker: at a share, or at all of them."""

from __future__ import annotations

import os

SHARE = 1 if os.environ.get("BELLHOP_FUZZ") else 3
"""One step in so many; `make fuzz` takes every step."""
