"""Follow lines that a cloud's logs show some seconds after they were written, and not in order.

    first look   since ─────────────────────────────► now
    next look               newest - LATE ──────────► now      of each group by itself
                            └─ what was told by its id is not told again

So each look begins a while before the newest line that the last one saw. Who follows tells a line
once; one that comes later than `LATE` after a newer one of its group is told by none but a first
look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from bellhop.core.attempts import PASSING

LATE = timedelta(minutes=2)
"""How much older than the newest line of its group a line may be when it is first seen."""


class Line(NamedTuple):
    """One line of a function: when, whose, its own id, and what it says."""

    at: datetime
    stage: str
    id: str
    text: str


def follow(
    of: Callable[[str, datetime], Iterable[Line]],
    groups: Iterable[str],
    since: datetime,
    *,
    wait: Callable[[str], None],
    pause: Callable[[], None],
) -> Iterator[Line]:
    """Yield lines `of` groups since a moment, and each that comes, for ever; none twice.

    Where the cloud does not answer it is asked again, and `wait` is told why.
    """
    begins = dict.fromkeys(groups, since)
    told: dict[str, dict[str, datetime]] = {group: {} for group in begins}
    while True:
        fresh: list[Line] = []
        try:
            for group, begin in begins.items():
                seen = told[group]
                for line in of(group, begin):
                    if line.id not in seen:
                        seen[line.id] = line.at
                        fresh.append(line)
        except PASSING as error:
            wait(str(error))
        yield from sorted(fresh)
        for group, seen in told.items():
            begins[group] = max([since, *(at - LATE for at in seen.values())])
            told[group] = {name: at for name, at in seen.items() if at >= begins[group]}
        pause()
