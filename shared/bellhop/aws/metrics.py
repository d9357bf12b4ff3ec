"""What an invocation did, counted in one line as CloudWatch's embedded metric format has it.

A metric that came to nothing is not told: CloudWatch bills each for the hours in which it is, and
an installation in which nothing happens costs nothing by it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from bellhop.cloud.told import COUNTED, counted
from bellhop.logs import Log
from bellhop.model.record import Entry

NAMESPACE = "Bellhop"
DIMENSION = "installation"

TOOK = "Milliseconds"
PENDING = "OldestPending"
UNITS = {
    **dict.fromkeys(COUNTED.values(), "Count"),
    TOOK: "Milliseconds",
    PENDING: "Seconds",
}
"""Every metric, with its unit in CloudWatch's words."""


class Metrics:
    """Counts for one installation; an invocation begins, and at its end is told."""

    def __init__(
        self, installation: str, log: Log, *, seconds: Callable[[], float] = time.perf_counter
    ) -> None:
        self._installation = installation
        self._log = log
        self._seconds = seconds
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._measured: dict[str, float] = {}
        self._begun = seconds()

    def begin(self) -> None:
        """Begin an invocation."""
        self._begun = self._seconds()

    def count(self, entry: Entry) -> None:
        """Count what happened; a sweep says how many objects had not rung."""
        if found := counted(entry):
            with self._lock:
                self._counts[found[0]] += found[1]

    def measure(self, name: str, value: float) -> None:
        """Publish a value with the invocation's line."""
        with self._lock:
            self._measured[name] = value

    def tell(self) -> None:
        """Write the line of an invocation in which something happened."""
        with self._lock:
            counts, self._counts = dict(self._counts), Counter()
            found, self._measured = self._measured, {}
        if counts:
            found |= {**counts, TOOK: round((self._seconds() - self._begun) * 1000, 1)}
        if not found:
            return
        metrics = [{"Name": name, "Unit": UNITS[name]} for name in found]
        described = {"Namespace": NAMESPACE, "Dimensions": [[DIMENSION]], "Metrics": metrics}
        about = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [described]}
        told = {DIMENSION: self._installation, **found}
        self._log.info("Counted what was done", **told, _aws=about)
