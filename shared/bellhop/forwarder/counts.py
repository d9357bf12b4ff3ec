"""Counters of the forwarder, in the text format of Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Mapping

PREFIX = "bellhop_forwarder"

_HELP = {
    "hints": "Admission requests that were noted.",
    "ignored": "Admission requests that concern nothing: dry runs, changes of nothing.",
    "malformed": "Requests that were no readable AdmissionReview.",
    "wrong_path": "Requests to a path that is not the webhook's.",
    "reads": "Looks at objects.",
    "read_failures": "Looks at objects that the API server did not answer or refused.",
    "sent": "Items that ingest took.",
    "dropped": "Items that were dropped; resyncs find their objects.",
    "nothing": "Hints after which nothing had changed: denied writes and the like.",
    "batches": "Requests to ingest that it took.",
    "looks_asked": "Times that ingest was asked to have the cluster looked at.",
    "events": "CloudEvents of NATS that ingest took.",
    "events_dropped": "CloudEvents of NATS that were dropped.",
    "events_malformed": "Messages of NATS that are not a CloudEvent.",
    "send_failures": "Requests to ingest that it did not take.",
}
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0)


class Counts:
    """Counters, and how long it took from a hint until ingest had its object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters = dict.fromkeys(_HELP, 0)
        self._buckets = [0] * len(_BOUNDS)
        self._seconds = 0.0
        self._timed = 0

    def add(self, name: str, number: int = 1) -> None:
        with self._lock:
            self._counters[name] += number

    def took(self, seconds: float) -> None:
        """Note how long one object took."""
        with self._lock:
            self._timed += 1
            self._seconds += seconds
            for index, bound in enumerate(_BOUNDS):
                self._buckets[index] += seconds <= bound

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Write all counters, and gauges given as name → (help, value)."""
        lines: list[str] = []
        with self._lock:
            for name, value in self._counters.items():
                lines += _metric(f"{name}_total", "counter", _HELP[name], value)
            lines += self._histogram()
        for name, (meaning, number) in gauges.items():
            lines += _metric(name, "gauge", meaning, number)
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        name = f"{PREFIX}_seconds"
        lines = [
            f"# HELP {name} Seconds from an object's first hint until ingest had it.",
            f"# TYPE {name} histogram",
        ]
        for bound, count in zip(_BOUNDS, self._buckets, strict=True):
            lines.append(f'{name}_bucket{{le="{bound}"}} {count}')
        lines.append(f'{name}_bucket{{le="+Inf"}} {self._timed}')
        return [*lines, f"{name}_sum {self._seconds:.6f}", f"{name}_count {self._timed}"]


def _metric(name: str, kind: str, meaning: str, value: float) -> list[str]:
    full = f"{PREFIX}_{name}"
    return [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}", f"{full} {value:g}"]
