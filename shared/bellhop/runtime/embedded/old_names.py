"""Metrics under the names that they had in the last release, beside the present ones.

Rules and dashboards of users keep working for one release. This module goes with the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

OLD_NAMES: Mapping[str, str] = {
    "bellhop_match_changes": "bellhop_matched",
    "bellhop_profile_deployments": "bellhop_applied",
    "bellhop_failed_steps": "bellhop_failed",
    "bellhop_missed_events": "bellhop_misses",
    "bellhop_deletion_guard_holds": "bellhop_held",
    "bellhop_profile_waits": "bellhop_waits",
    "bellhop_deployment_latency_seconds": "bellhop_latency_seconds",
    "bellhop_step_duration_seconds": "bellhop_step_seconds",
    "bellhop_ingest_requests": "bellhop_requests",
    "bellhop_oldest_message_age_seconds": "bellhop_oldest_message_seconds",
    "bellhop_timer_longest_delay_seconds": "bellhop_oldest_timer_seconds",
    "bellhop_database_size_bytes": "bellhop_file_bytes",
}
"""The old names by the new ones; those of counters without `_total`."""


class WithOldNames(Collector):
    """The metrics of a collector, those that were renamed under both names."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        """Yield each metric, and after it the one of its old name."""
        for metric in self._collector.collect():
            yield metric
            if metric.name in OLD_NAMES:
                yield _renamed(metric, OLD_NAMES[metric.name])


def _renamed(metric: Metric, old: str) -> Metric:
    suffix = "_total" if metric.type == "counter" else ""
    copy = Metric(old, f"Old name of {metric.name}{suffix}.", metric.type)
    copy.samples = [
        each._replace(name=each.name.replace(metric.name, old, 1)) for each in metric.samples
    ]
    return copy
