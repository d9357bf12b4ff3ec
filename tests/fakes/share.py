"""How many of the moments at which somebody may die or be overtaken are played."""

from __future__ import annotations

import os

SHARE = 1 if os.environ.get("BELLHOP_FUZZ") else 3
"""One in so many of a test's moments; `make fuzz` plays them all."""
