"""Follow lines that a cloud's logs show some seconds after they were written, and not in order.

    first look   since ─────────────────────────────► now
    next look               newest - LATE ──────────► now      of each group by itself
                            └─ a line that was shown is not shown again, by its id

So each look begins a while before the newest line that the last one saw. Each line
is shown once. A line that comes later than `LATE` after a newer one of its group is shown by a
first look only.
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

    If the cloud does not answer, the request is repeated, and `wait` is called with the reason.
    """
    begins = dict.fromkeys(groups, since)
    shown: dict[str, dict[str, datetime]] = {group: {} for group in begins}
    while True:
        fresh: list[Line] = []
        try:
            for group, begin in begins.items():
                seen = shown[group]
                for line in of(group, begin):
                    if line.id not in seen:
                        seen[line.id] = line.at
                        fresh.append(line)
        except PASSING as error:
            wait(str(error))
        yield from sorted(fresh)
        for group, seen in shown.items():
            begins[group] = max([since, *(at - LATE for at in seen.values())])
            shown[group] = {name: at for name, at in seen.items() if at >= begins[group]}
        pause()
