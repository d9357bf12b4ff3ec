"""How far back: durations as users write them."""

from __future__ import annotations

import re
from datetime import timedelta

from bellhop.errors import InvalidError

_PARTS = re.compile(r"(\d{1,9})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = timedelta(days=3660)


def read_duration(text: str) -> timedelta:
    """Read a duration such as 90s, 10m or 1h30m.

    Raises:
        InvalidError: it is none, or longer than anything is kept.
    """
    parts = _PARTS.findall(text)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
        raise InvalidError(f"cannot read '{text}' as a duration: write it like 90s, 10m or 1h30m")
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in parts)
    if seconds > _LONGEST.total_seconds():
        raise InvalidError(f"cannot look back by '{text}': nothing is kept for so long")
    return timedelta(seconds=seconds)
