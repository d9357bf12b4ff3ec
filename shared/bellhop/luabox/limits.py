"""How much one call of a script may cost."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """The bounds of one call; each is named in the LuaLimitError of a script that meets it.

    Steps decide first in all but pathological scripts, so that the same script on the same
    object ends the same way on a slow machine and on a busy one.
    """

    seconds: float = 1.0
    """Processor time of the calling thread. A script cannot sleep, so this bounds a call."""

    steps: int = 20_000_000
    """Lua instructions."""

    memory: int = 64 * 1024 * 1024
    """Bytes a call may allocate beyond its input. Lua frees late: count on half of it."""

    depth: int = 100
    """Tables within tables, in values given and returned."""

    size: int = 256 * 1024
    """Bytes of the script's text."""
