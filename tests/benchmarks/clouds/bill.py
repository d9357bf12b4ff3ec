"""What clouds take for what was counted: the tables of the costs page.

`requests.json` has the counts, which `python -m tests.benchmarks.requests` renews, together
with the tables; a test makes both again. Each cloud has its prices in a file of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.benchmarks.figures import FOLDER, ROOT

COUNTS = FOLDER / "requests.json"
PAGE = ROOT / "docs" / "explanation" / "costs.md"

MILLION = 1_000_000
HOURS = 730
"""Of a month."""

CALL = 15
"""Milliseconds that a call of a cluster's API server is waited for, assumed."""

CALLS = 2
"""Such calls for each object that is applied: a look, and the apply."""

APPLIES = "deploy"
"""The function that makes those calls."""

CONFIGURATION_RESYNC = "a resync of the configuration cluster"
CONFIGURATION_CHANGE = "a change in the configuration cluster"
PROMOTION_STAGES = 5
PROMOTION_RELEASE = f"a release through {PROMOTION_STAGES} stages of a cluster each"
IDLE_PROMOTION: Mapping[str, float] = {"a promotion that waits for an approval": 0.0}
"""A promotion that waits costs nothing a month: it has no timer, as `measure_promotion` sees."""
CHANGES = 1_000 * HOURS / 24
"""Of a month with a thousand a day."""

TICKS = HOURS * 60
RESYNCS = HOURS * 12

Counts = Mapping[str, "Count"]


@dataclass(frozen=True)
class Price:
    """USD for so many units of something."""

    name: str
    usd: float
    per: str
    units: float = 1

    def of(self, count: float) -> float:
        """Return what a count costs."""
        return count * self.usd / self.units


@dataclass(frozen=True)
class Count:
    """The requests of an event, a resync or a tick, in all functions together.

    `asked` are requests by `service:operation`, `units` what the cloud takes money for beside
    them; `batches` are invocations fed by a queue. `stages` has for each function its
    `invocations`, its `processor` in ms of a whole one, and its requests by service.
    """

    asked: Mapping[str, float]
    invocations: float
    batches: float
    stages: Mapping[str, Mapping[str, float]]
    applied: int = 0
    units: Mapping[str, float] = field(default_factory=dict)

    def by(self, service: str, *operations: str) -> float:
        """Count a service's requests, or those of some operations."""
        return sum(
            count
            for name, count in self.asked.items()
            if name.partition(":")[0] == service
            and (not operations or name.partition(":")[2] in operations)
        )

    def waits(self, stage: str, takes: Mapping[str, float]) -> float:
        """Estimate for how many ms a function waits, by what a service's requests take."""
        asked = sum(self.stages[stage].get(service, 0) * each for service, each in takes.items())
        return asked + (self.applied * CALLS * CALL if stage == APPLIES else 0)


def configuration(
    costs: Callable[[Count], Mapping[str, float]], counts: Counts
) -> dict[str, float]:
    """Return what a configuration cluster costs a month beside a cluster that holds none."""
    resync, usual, change = (
        sum(costs(counts[name]).values())
        for name in (CONFIGURATION_RESYNC, "a resync", CONFIGURATION_CHANGE)
    )
    return {
        "where a cluster holds the configuration: its resyncs": (resync - usual) * RESYNCS,
        "and 1,000 changes a day in it": change * CHANGES,
    }


class Bill(Protocol):
    """One cloud's prices, and what of the counts they are for."""

    name: str
    priced: str
    prices: Sequence[Price]

    def columns(self, count: Count) -> dict[str, str]:
        """Return the requests by the heads of the table's columns."""
        ...

    def costs(self, count: Count) -> dict[str, float]:
        """Return what one costs, by service, in USD."""
        ...

    def house(self, counts: Counts) -> dict[str, float]:
        """Return what an installation costs a month in which nothing happens."""
        ...

    def cluster(self, counts: Counts) -> dict[str, float]:
        """Return what each of its clusters costs."""
        ...

    def choices(self) -> dict[str, float]:
        """Return what each cluster costs by choice, in place of a part of it."""
        ...

    def extras(self, counts: Counts) -> dict[str, float]:
        """Return what costs more a month where it is asked for, or where something happens."""
        ...

    def management(self) -> float:
        """Return what a small management cluster costs a month."""
        ...


def counted() -> dict[str, dict[str, Count]]:
    """Read what was counted last, by cloud."""
    data = json.loads(COUNTS.read_text())
    return {cloud: {name: Count(**each) for name, each in of.items()} for cloud, of in data.items()}


def tables(bill: Bill, counts: Counts) -> dict[str, str]:
    """Write a cloud's tables, by the name that the page has them by."""
    made = {
        "requests": _requests(bill, counts),
        "million": _million(bill, counts),
        "idle": _idle(bill, counts),
        "prices": _prices(bill),
    }
    return {f"{name} of {bill.name}": text for name, text in made.items()}


def _requests(bill: Bill, counts: Counts) -> str:
    rows = [[name, *bill.columns(count).values()] for name, count in counts.items()]
    return _table(["", *bill.columns(next(iter(counts.values())))], rows)


def _million(bill: Bill, counts: Counts) -> str:
    rows = []
    for name, count in counts.items():
        if count.applied:
            costs = [usd * MILLION for usd in bill.costs(count).values()]
            rows.append([name, *map(_usd, costs), _usd(sum(costs))])
    services = bill.costs(next(iter(counts.values())))
    return _table(["A million times", *services, "Together"], rows)


def _idle(bill: Bill, counts: Counts) -> str:
    house, each = bill.house(counts), bill.cluster(counts)
    rows = [[name, _usd(usd), ""] for name, usd in house.items()]
    rows += [[name, "", _usd(usd)] for name, usd in each.items()]
    fixed, one = sum(house.values()), sum(each.values())
    rows.append(["**together**", f"**{_usd(fixed)}**", f"**{_usd(one)}**"])
    rows += [[name, "", _usd(usd)] for name, usd in bill.choices().items()]
    rows += [[name, _usd(usd), ""] for name, usd in bill.extras(counts).items()]
    rows.append(["a small management cluster, with nothing on it", _usd(bill.management()), ""])
    return _table(["A month in which nothing happens", "Installation", "Each cluster"], rows)


def _prices(bill: Bill) -> str:
    rows = [[price.name, f"{price.usd:g}", price.per] for price in bill.prices]
    return _table([bill.priced, "USD", "for a"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("|  |", "| |")


def whole(count: float) -> str:
    """Write a count, with a digit behind the point where it has one."""
    return f"{count:,.1f}".removesuffix(".0")


def _usd(usd: float) -> str:
    return f"${usd:,.2f}" if usd < 100 else f"${usd:,.0f}"


def fill(page: str, found: Mapping[str, str]) -> str:
    """Put tables into a page, each between the two marks that name it."""
    for name, text in found.items():
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        place = re.compile(f"({marks[0]}\n).*?({marks[1]})", re.DOTALL)
        page, times = place.subn(lambda at, text=text: f"{at[1]}\n{text}\n\n{at[2]}", page)
        assert times == 1, f"the page has {times} places for {name}"
    return page
