"""What AWS takes for what was counted: prices by name and date, and the tables of the costs page.

`requests.json` has the counts, which `python -m tests.benchmarks.requests` makes anew, together
with the tables; a test makes both again. Prices are typed in by hand: change them here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.figures import FOLDER, ROOT

COUNTS = FOLDER / "requests.json"
PAGE = ROOT / "docs" / "explanation" / "costs.md"

PRICED = "US East (N. Virginia), on demand, June 2026"
MILLION = 1_000_000
HOURS = 730
"""Of a month."""


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


WRITE = Price("DynamoDB, a write of up to 1 KB", 0.625, "million", MILLION)
READ = Price("DynamoDB, a consistent read of up to 4 KB", 0.125, "million", MILLION)
QUEUE = Price("SQS, a request of a standard queue", 0.40, "million", MILLION)
FAIR = Price("SQS, more for a request with a message group", 0.10, "million", MILLION)
INVOCATION = Price("Lambda, an invocation", 0.20, "million", MILLION)
SECOND = Price("Lambda, a GB-second on x86", 16.6667, "million", MILLION)
REQUEST = Price("API Gateway, a request of an HTTP API", 1.0, "million", MILLION)
SECRET = Price("Secrets Manager, a secret", 0.40, "month")
SECRET_READ = Price("Secrets Manager, a request", 5.0, "million", MILLION)
KEY = Price("KMS, a key", 1.0, "month")
KEY_USE = Price("KMS, a request", 3.0, "million", MILLION)
BLOB_READ = Price("S3, a read", 0.40, "million", MILLION)
BLOB_WRITE = Price("S3, a write", 5.0, "million", MILLION)
LOGS = Price("CloudWatch Logs, a GB taken", 0.50, "GB")
TICK = Price("EventBridge Scheduler, an invocation", 1.0, "million", MILLION)
ALARM = Price("CloudWatch, an alarm", 0.10, "month")
CONTROL = Price("EKS, a control plane", 0.10, "hour")
NODE = Price("EC2, a t3.medium of 2 CPUs and 4 GiB", 0.0416, "hour")
DISK = Price("EBS, a GB of gp3", 0.08, "month")

PRICES = (
    *(WRITE, READ, QUEUE, FAIR, REQUEST, INVOCATION, SECOND, SECRET, SECRET_READ, KEY, KEY_USE),
    *(BLOB_READ, BLOB_WRITE, LOGS, TICK, ALARM, CONTROL, NODE, DISK),
)

MEMORY = 0.5
"""GB of a function, which has then so much of a processor:"""
SHARE = 512 / 1769
TAKES = {"dynamodb": 6, "sqs": 10, "secretsmanager": 25, "s3": 25}
"""Milliseconds that a request is waited for, assumed; and a call of a cluster's API server:"""
CALL = 15
CALLS = 2
"""Such calls for each object that is applied: a look, and the apply."""

LINE = 600
"""Bytes of a line of the log; an event has one for each step, and one for each destination."""

POLLERS = 5
"""Of each queue, as AWS begins with: each asks every twenty seconds where nothing comes."""
POLLS = HOURS * 3600 / 20
INBOXES = 8
TICKS = HOURS * 60
SWEEPS = HOURS * 12
ALARMS = 12


@dataclass(frozen=True)
class Count:
    """What an event, a sweep or a tick asks for, in all functions together.

    `asked` are requests by `service:operation`; `batches` are invocations fed by a queue, each
    received and deleted with a request. `processor` is in ms of a whole one.
    """

    asked: Mapping[str, float]
    reads: float
    writes: float
    invocations: float
    batches: float
    processor: float
    applied: int = 0

    def by(self, service: str, *operations: str) -> float:
        """Count a service's requests, or those of some operations."""
        return sum(
            count
            for name, count in self.asked.items()
            if name.partition(":")[0] == service
            and (not operations or name.partition(":")[2] in operations)
        )

    @property
    def queue(self) -> float:
        """Count all requests to queues, those of the event source mappings too."""
        return self.by("sqs") + 2 * self.batches

    @property
    def seconds(self) -> float:
        """Estimate how long functions run."""
        waits = sum(self.by(service) * each for service, each in TAKES.items())
        return (waits + self.applied * CALLS * CALL + self.processor / SHARE) / 1000

    def costs(self) -> dict[str, float]:
        """Return what one costs, by service, in USD."""
        secrets = self.by("secretsmanager")
        return {
            "DynamoDB": WRITE.of(self.writes) + READ.of(self.reads),
            "SQS": QUEUE.of(self.queue) + FAIR.of(self.queue),
            "API Gateway": REQUEST.of(1 if self.applied else 0),
            "Lambda": INVOCATION.of(self.invocations) + SECOND.of(self.seconds * MEMORY),
            "Secrets Manager, KMS": SECRET_READ.of(secrets) + KEY_USE.of(secrets),
            "S3": BLOB_READ.of(self.by("s3", "GET")) + BLOB_WRITE.of(self.by("s3", "PUT")),
            "Logs": LOGS.of((self.invocations + self.applied + 3) * LINE / 1e9),
        }


def read(data: Mapping[str, Any]) -> dict[str, Count]:
    """Read what `requests` counted."""
    return {name: Count(**value) for name, value in data.items()}


def counted() -> dict[str, Count]:
    """Read what was counted last."""
    return read(json.loads(COUNTS.read_text()))


def tables(counts: Mapping[str, Count]) -> dict[str, str]:
    """Write the page's tables, by the name that the page has them by."""
    return {
        "requests": _requests(counts),
        "million": _million(counts),
        "idle": _idle(counts),
        "prices": _prices(),
    }


def _requests(counts: Mapping[str, Count]) -> str:
    rows = [
        [
            name,
            _whole(count.by("dynamodb", "GetItem")),
            _whole(count.by("dynamodb", "Query")),
            _whole(count.by("dynamodb", "PutItem", "DeleteItem")),
            f"{count.reads:,.0f} / {count.writes:,.0f}",
            f"{_whole(count.by('sqs'))} + {_whole(2 * count.batches)}",
            _whole(count.by("secretsmanager")),
            _whole(count.by("s3")),
            _whole(count.invocations),
        ]
        for name, count in counts.items()
    ]
    columns = ("Reads", "Queries", "Writes", "Units read / written", "SQS", "Secrets", "Blobs")
    return _table(["", *columns, "Invocations"], rows)


def _million(counts: Mapping[str, Count]) -> str:
    events = {name: each for name, each in counts.items() if each.applied}
    services = list(next(iter(events.values())).costs())
    rows = []
    for name, count in events.items():
        costs = {service: usd * MILLION for service, usd in count.costs().items()}
        rows.append([name, *(_usd(costs[each]) for each in services), _usd(sum(costs.values()))])
    return _table(["A million times", *services, "Together"], rows)


def _idle(counts: Mapping[str, Count]) -> str:
    tick, sweep = counts["a tick"], counts["a sweep"]
    polls = POLLERS * INBOXES * POLLS
    house = {
        f"looking into {INBOXES} queues, {POLLERS} pollers each": QUEUE.of(polls),
        "a tick each minute": (sum(tick.costs().values()) + TICK.of(1)) * TICKS,
        "the key, and the secret that seals": KEY.of(1) + SECRET.of(1),
        f"{ALARMS} alarms": ALARM.of(ALARMS),
    }
    each = {
        "its sweep, every five minutes": sum(sweep.costs().values()) * SWEEPS,
        "its kubeconfig": SECRET.of(1),
    }
    rows = [[name, _usd(usd), ""] for name, usd in house.items()]
    rows += [[name, "", _usd(usd)] for name, usd in each.items()]
    fixed, one = sum(house.values()), sum(each.values())
    rows.append(["**together**", f"**{_usd(fixed)}**", f"**{_usd(one)}**"])
    small = CONTROL.of(HOURS) + 2 * NODE.of(HOURS) + 2 * DISK.of(20)
    rows.append(["a small management cluster, with nothing on it", _usd(small), ""])
    return _table(["A month in which nothing happens", "Installation", "Each cluster"], rows)


def _prices() -> str:
    rows = [[price.name, f"{price.usd:g}", price.per] for price in PRICES]
    return _table([PRICED, "USD", "for a"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("|  |", "| |")


def _whole(count: float) -> str:
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
