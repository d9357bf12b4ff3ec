"""Metrics of an invocation, in one line of CloudWatch's embedded metric format.

A metric of zero is not published: CloudWatch bills each metric for the hours in which it has
values, and an idle installation costs nothing.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bellhop.clusters.alert import ALERTS
from bellhop.logs import Log
from bellhop.runtime.cloud.event_log import COUNTED, counted
from bellhop.state.event_log import Entry

NAMESPACE = "Bellhop"
DIMENSION = "installation"
CLUSTER = "cluster"
"""The second dimension of an alert's metric, for each cluster that it names."""

TOOK = "Milliseconds"
PENDING = "OldestPending"
LATENCY = "Latency"
STAGE = "PromotionStageSeconds"
REFUSED = "Refused"
UNITS = {
    **dict.fromkeys(COUNTED.values(), "Count"),
    **dict.fromkeys((REFUSED, *ALERTS), "Count"),
    TOOK: "Milliseconds",
    LATENCY: "Milliseconds",
    PENDING: "Seconds",
    STAGE: "Seconds",
}
"""Every metric, with its unit in CloudWatch's words."""

_MOST_VALUES = 100
"""Values of one metric that a line may have."""


class Metrics:
    """Counts for one installation; `publish` writes those of an invocation at its end."""

    def __init__(
        self, installation: str, log: Log, *, seconds: Callable[[], float] = time.perf_counter
    ) -> None:
        self._installation = installation
        self._log = log
        self._seconds = seconds
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._measured: dict[str, float] = {}
        self._values: dict[str, list[float]] = {}
        self._begun = seconds()

    def begin(self) -> None:
        self._begun = self._seconds()

    def count(self, entry: Entry) -> None:
        """Count an entry; a resync's has the number of objects without an event."""
        since = entry.context.get("since_ring_ms") if entry.what == "applied" else None
        with self._lock:
            if found := counted(entry):
                self._counts[found[0]] += found[1]
            self._add(LATENCY, since)
            self._add(STAGE, entry.context.get("stage_seconds"))

    def _add(self, name: str, value: float | None) -> None:
        """Add one of the values of which a metric has several in a line."""
        values = self._values.setdefault(name, [])
        if value is not None and len(values) < _MOST_VALUES:
            # The cluster's clock may be ahead of ours.
            values.append(max(0.0, value))

    def count_refusal(self) -> None:
        """Count a request whose sender was refused."""
        with self._lock:
            self._counts[REFUSED] += 1

    def measure(self, name: str, value: float) -> None:
        """Publish a value with the invocation's line."""
        with self._lock:
            self._measured[name] = value

    def name(self, metric: str, clusters: Iterable[str]) -> None:
        """Publish a metric of each of some clusters, at once."""
        for cluster in clusters:
            self._write({DIMENSION: self._installation, CLUSTER: cluster}, {metric: 1})

    def publish(self) -> None:
        """Write the line of an invocation in which something happened."""
        with self._lock:
            counts, self._counts = dict(self._counts), Counter()
            measured, self._measured = self._measured, {}
            values, self._values = self._values, {}
        found: dict[str, float | list[float]] = {**measured}
        if counts:
            found |= {**counts, TOOK: round((self._seconds() - self._begun) * 1000, 1)}
        found |= {name: each for name, each in values.items() if each}
        if found:
            self._write({DIMENSION: self._installation}, found)

    def _write(self, dimensions: Mapping[str, str], found: Mapping[str, Any]) -> None:
        metrics = [{"Name": name, "Unit": UNITS[name]} for name in found]
        described = {
            "Namespace": NAMESPACE,
            "Dimensions": [[*dimensions]],
            "Metrics": metrics,
        }
        about = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [described]}
        self._log.info("Counted what was done", **dimensions, **found, _aws=about)
