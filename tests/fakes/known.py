"""Histories that still end wrong: each by its name, with the reason; nothing else is left out.

A name is that of a step of a World, or of an Overlap, with the sort of its interruptions if only
those go wrong (see `turns`). `BELLHOP_ALL_HISTORIES=1` plays these too. A cure for a defect
takes its line out, and from then on the histories are played each time.
"""

from __future__ import annotations

import os

KNOWN: dict[str, str] = {}


def played(name: str, sort: str = "") -> bool:
    """Say whether a history is played: whether it should end well by now."""
    if os.environ.get("BELLHOP_ALL_HISTORIES"):
        return True
    return name not in KNOWN and f"{name} {sort}".strip() not in KNOWN
