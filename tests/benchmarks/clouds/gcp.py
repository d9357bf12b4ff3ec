"""What Google Cloud takes for what was counted. Prices are typed in by hand: change them here."""

from __future__ import annotations

import math
from functools import partial

from tests.benchmarks.clouds.bill import (
    HOURS,
    IDLE_PROMOTION,
    MILLION,
    RESYNCS,
    TICKS,
    Count,
    Counts,
    Price,
    configuration,
    whole,
)
from tests.benchmarks.clouds.module import GOOGLE

GIB = 2**30

READ = Price("Firestore, a document read, or a look that finds none", 0.30, "million", MILLION)
WRITE = Price("Firestore, a document written", 0.90, "million", MILLION)
DELETE = Price("Firestore, a document deleted, also by TTL", 0.10, "million", MILLION)
CARRIED = Price("Pub/Sub, a TiB published or pushed, a kB a request at least", 40.0, "TiB", 2**40)
REQUEST = Price("Cloud Run, a request", 0.40, "million", MILLION)
SECOND = Price("Cloud Run, a second of a processor", 24.0, "million", MILLION)
MEMORY_SECOND = Price("Cloud Run, a second of a GiB", 2.50, "million", MILLION)
SECRET = Price("Secret Manager, a version that is alive", 0.06, "month")
SECRET_READ = Price("Secret Manager, an access", 3.0, "million", MILLION)
BLOB_READ = Price("Cloud Storage, a read", 0.40, "million", MILLION)
BLOB_WRITE = Price("Cloud Storage, a write", 5.0, "million", MILLION)
LOGS = Price("Cloud Logging, a GiB taken", 0.50, "GiB", GIB)
TICK = Price("Cloud Scheduler, a job", 0.10, "month")
ALARM = Price("Cloud Monitoring, a condition of an alert", 1.50, "month")
CONTROL = Price("GKE, a cluster's management", 0.10, "hour")
NODE = Price("Compute Engine, an e2-medium of 2 CPUs and 4 GiB", 0.0335, "hour")
DISK = Price("Compute Engine, a GB of balanced disk", 0.10, "month")

TAKES = {"firestore": 10, "publisher": 20, "subscriber": 20, "secretmanager": 30, "storage": 30}
"""Milliseconds that a request is waited for, assumed."""

ROUNDED = 0.1
"""Seconds to which what an instance works is rounded up."""

LINE = 900
"""Bytes of a line of the log, with labels; an event has one for each step and destination."""

ALARMS = len(GOOGLE.alarms)

READS, QUERIES = ("batch_get_documents",), ("run_query",)


class GoogleBill:
    """Google's prices."""

    name = "Google Cloud"
    priced = "us-central1 (Iowa), on demand, November 2026"
    prices = (
        *(READ, WRITE, DELETE, CARRIED, REQUEST, SECOND, MEMORY_SECOND, SECRET, SECRET_READ),
        *(BLOB_READ, BLOB_WRITE, LOGS, TICK, ALARM, CONTROL, NODE, DISK),
    )

    def columns(self, count: Count) -> dict[str, str]:
        """Return the requests, counted."""
        read, written, deleted = (count.units[each] for each in ("read", "written", "deleted"))
        return {
            "Reads": whole(count.by("firestore", *READS)),
            "Queries": whole(count.by("firestore", *QUERIES)),
            "Writes": whole(count.by("firestore", "commit")),
            "Documents read / written / deleted": f"{read:,.0f} / {written:,.0f} / {deleted:,.0f}",
            "Published": whole(count.by("publisher")),
            "Pushed": whole(count.batches),
            "Pub/Sub, kB": whole(count.units["bytes"] / 1000),
            "Secrets": whole(count.by("secretmanager")),
            "Blobs": whole(count.by("storage")),
            "Invocations": whole(count.invocations),
        }

    def costs(self, count: Count) -> dict[str, float]:
        """Return what one costs, by service, in USD."""
        units = count.units
        return {
            "Firestore": READ.of(units["read"])
            + WRITE.of(units["written"])
            + DELETE.of(units["deleted"]),
            "Pub/Sub": CARRIED.of(units["bytes"]),
            "Cloud Run": REQUEST.of(count.invocations)
            + sum(map(partial(_works, count), count.stages)),
            "Secret Manager": SECRET_READ.of(count.by("secretmanager")),
            "Cloud Storage": BLOB_READ.of(count.by("storage", "GET"))
            + BLOB_WRITE.of(count.by("storage", "POST")),
            "Logs": LOGS.of((count.invocations + count.applied + 3) * LINE),
        }

    def house(self, counts: Counts) -> dict[str, float]:
        """Return what an installation costs a month in which nothing happens."""
        return {
            "a tick each minute": self._sum(counts["a tick"]) * TICKS + TICK.of(1),
            "house-keeping each hour": self._sum(counts["an hour's house-keeping"]) * HOURS,
            "the keys of records": SECRET.of(2),
            f"{ALARMS} alerts": ALARM.of(ALARMS),
        }

    def cluster(self, counts: Counts) -> dict[str, float]:
        """Return what each of its clusters costs."""
        return {
            "its resync, every five minutes": self._sum(counts["a resync"]) * RESYNCS,
            "its kubeconfig": SECRET.of(1),
        }

    def choices(self) -> dict[str, float]:
        """Return what each cluster costs by choice: there is none."""
        return {}

    def extras(self, counts: Counts) -> dict[str, float]:
        """Return what costs more; a network of Google's costs what passes."""
        return {**configuration(self.costs, counts), **IDLE_PROMOTION}

    def management(self) -> float:
        """Return what a small management cluster costs a month."""
        return CONTROL.of(HOURS) + 2 * NODE.of(HOURS) + 2 * DISK.of(20)

    def _sum(self, count: Count) -> float:
        return sum(self.costs(count).values())


def _works(count: Count, stage: str) -> float:
    """Return what the time of a stage's instances costs: a processor, and its memory."""
    spent = count.stages[stage]
    each = (count.waits(stage, TAKES) + spent["processor"]) / 1000 / spent["invocations"]
    seconds = spent["invocations"] * math.ceil(each / ROUNDED) * ROUNDED
    return SECOND.of(seconds) + MEMORY_SECOND.of(seconds * GOOGLE.memory[stage] / 1024)
