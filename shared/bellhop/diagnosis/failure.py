"""One thing that is wrong, as commands show it; causes that are alike are one, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

_NAMED = 5


class Failure(NamedTuple):
    """One thing that is wrong: its kind, its name, since when, and the sentence about it.

    `several` counts how many it concerns, the first of which is named.
    """

    what: str
    which: str
    at: datetime | None
    sentence: str
    several: int = 1


def of_several(
    what: str, which: str, at: datetime | None, sentence: str, count: int, noun: str
) -> Failure:
    """Return one failure that concerns several things, with their number in its sentence."""
    more = f"; so it is with {count} {noun}, of which this is the first" if count > 1 else ""
    return Failure(what, which, at, f"{sentence}{more}", count)


def also_in(clusters: Sequence[str]) -> str:
    """Return a clause that counts and names the clusters of a cause; empty for one cluster."""
    if len(clusters) == 1:
        return ""
    named = ", ".join(clusters[:_NAMED])
    more = f" and {len(clusters) - _NAMED} more" if len(clusters) > _NAMED else ""
    return f"; it fails in {len(clusters)} clusters: {named}{more}"
