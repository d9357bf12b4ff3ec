"""What an invocation on AWS publishes, as CloudWatch reads it from a line."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

from bellhop.logs import Log
from bellhop.runtime.aws.metrics import Metrics
from bellhop.state.event_log import Entry

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def applied(since: float | None) -> Entry:
    """Return the entry of an applied profile, so many milliseconds after a cluster noticed."""
    context = {} if since is None else {"since_ring_ms": since}
    return Entry(NOW, "", "applied", "fleet/east", "", "", 1.0, context)


def published(*entries: Entry, refused: int = 0) -> dict[str, Any]:
    """Return the line of an invocation in which this happened."""
    output = io.StringIO()
    metrics = Metrics("prod", Log(output))
    for entry in entries:
        metrics.count(entry)
    for _ in range(refused):
        metrics.count_refusal()
    metrics.publish()
    found: dict[str, Any] = json.loads(output.getvalue())
    return found


def test_publishes_each_time_from_event_to_applied() -> None:
    """Percentiles need all values; a cluster's clock may be ahead, and a resync is no event."""
    line = published(applied(250.5), applied(-20), applied(None))
    (described,) = line["_aws"]["CloudWatchMetrics"]

    assert line["Latency"] == [250.5, 0.0]
    assert line["Applied"] == 3
    assert {"Name": "Latency", "Unit": "Milliseconds"} in described["Metrics"]


def test_publishes_at_most_a_hundred_values_in_a_line() -> None:
    """CloudWatch drops a line that has more."""
    assert len(published(*[applied(1)] * 250)["Latency"]) == 100


def test_counts_refused_senders() -> None:
    """The API's own metric has all answers of 4xx together."""
    assert published(refused=2)["Refused"] == 2
