"""Prometheus metrics of `serve`, under the names that clouds have for them.

It is loaded only where `--metrics` asks for it. No label has the name of a cluster or an object,
unless `--metrics-labels` asks for it: a scrape needs no login. Their number is bounded then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from bellhop.adapters.local.status_server import StatusServer
from bellhop.logs import Log
from bellhop.ports.queue import Again, Done, GivenUp, Result
from bellhop.runtime.cloud.event_log import SENTENCES, counted
from bellhop.runtime.embedded.consumer import Observer, Scraping
from bellhop.runtime.embedded.gauges import Gauges
from bellhop.runtime.embedded.state import Embedded
from bellhop.state.consumer import WAITS
from bellhop.state.event_log import Entry

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
    """The metrics of a collector, those that were renamed under both names.

    Rules and dashboards of users keep working for one release. `OLD_NAMES` goes with the next one.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        """Yield each metric, and after it the one of its old name."""
        for metric in self._collector.collect():
            yield metric
            if metric.name in OLD_NAMES:
                yield _rename(metric, OLD_NAMES[metric.name])


def _rename(metric: Metric, old: str) -> Metric:
    suffix = "_total" if metric.type == "counter" else ""
    copy = Metric(old, f"Old name of {metric.name}{suffix}.", metric.type)
    copy.samples = [
        each._replace(name=each.name.replace(metric.name, old, 1)) for each in metric.samples
    ]
    return copy


HELP: Mapping[str, str] = {
    "Events": "Objects that clusters reported as changed or deleted.",
    "Matched": "Objects that started or stopped matching an EventSource.",
    "Applied": "Profiles that were applied to a cluster, or removed from it.",
    "Failed": "Steps that failed.",
    "Misses": "Objects that a resync found and for which no event arrived.",
    "Held": "Times that the deletion guard held deletions or missing list entries.",
    "Waits": "Profiles that wait for a cluster to answer.",
}
"""The counters that clouds have, too, by their names there."""

NAMES: Mapping[str, str] = {
    "Events": "events",
    "Matched": "match_changes",
    "Applied": "profile_deployments",
    "Failed": "failed_steps",
    "Misses": "missed_events",
    "Held": "deletion_guard_holds",
    "Waits": "profile_waits",
}
"""Their names here."""

RESULTS: Mapping[type[Result], str] = {
    Done: "done",
    Again: "retried",
    GivenUp: "dead_lettered",
}

_STEP_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_MINUTE, _HOUR = 60, 3600
_STAGE_BOUNDS = (
    *(each * _MINUTE for each in (1, 5, 15, 30)),
    *(each * _HOUR for each in (1, 2, 4, 8, 24, 48, 96, 168)),
)
_LATENCY_BOUNDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics(Observer):
    """Counters and histograms of one process, since it started."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counts = {
            name: Counter(f"bellhop_{NAMES[name]}", text, registry=registry)
            for name, text in HELP.items()
        }
        self._steps = Histogram(
            "bellhop_step_duration_seconds",
            "How long a step took, by what it was.",
            ["step"],
            buckets=_STEP_BOUNDS,
            registry=registry,
        )
        self._failures = Counter(
            "bellhop_failures",
            "Steps that failed, by step and reason.",
            ["step", "reason"],
            registry=registry,
        )
        self._latency = Histogram(
            "bellhop_deployment_latency_seconds",
            "Time from a change in a cluster until a profile was applied for it.",
            buckets=_LATENCY_BOUNDS,
            registry=registry,
        )
        self._stages = Histogram(
            "bellhop_promotion_stage_seconds",
            "Time from when a stage of a promotion began a release until that passed it.",
            buckets=_STAGE_BOUNDS,
            registry=registry,
        )
        self._requests = Counter(
            "bellhop_ingest_requests",
            "Requests of senders that were answered, by HTTP status.",
            ["status"],
            registry=registry,
        )
        self._messages = Counter(
            "bellhop_messages",
            "Messages that were worked on, by queue and result.",
            ["queue", "result"],
            registry=registry,
        )

    def noted(self, entry: Entry) -> None:
        """Count and time a line of the event log."""
        if found := counted(entry):
            self._counts[found[0]].inc(found[1])
        if entry.took_ms and entry.what in SENTENCES:
            self._steps.labels(entry.what).observe(entry.took_ms / 1000)
        if entry.what == "failed":
            step, reason = entry.context.get("step", ""), entry.context.get("reason", "")
            self._failures.labels(step, reason).inc()
        since = entry.context.get("since_ring_ms")
        if entry.what == "applied" and since is not None:
            # The cluster's clock may be ahead of ours.
            self._latency.observe(max(0.0, since / 1000))
        if (took := entry.context.get("stage_seconds")) is not None:
            self._stages.observe(took)

    def answered(self, status: int) -> None:
        """Count an answer to a sender."""
        self._requests.labels(str(status)).inc()

    def settled(self, queue: str, result: Result) -> None:
        """Count a message that was worked on; one that only waited for its group was not."""
        if result != WAITS:
            self._messages.labels(queue, RESULTS[type(result)]).inc()

    def expect(self, queue: str) -> None:
        """Export a queue from the start: Prometheus sees no growth to a first value."""
        for result in RESULTS.values():
            self._messages.labels(queue, result)


class Exporter:
    """Serves `/metrics` of an installation; it begins at once.

    Raises:
        InvalidError: the address cannot be listened on.
    """

    def __init__(self, embedded: Embedded, scraping: Scraping, log: Log) -> None:
        # They would double the series, and say when this process began, which it says itself.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self.metrics = Metrics(self._registry)
        for queue in embedded.queues:
            self.metrics.expect(queue)
        embedded.installation.records.ledger.observe(self.metrics.noted)
        self._gauges = Gauges(embedded, log, labels=scraping.labels)
        self._registry.register(self._gauges)
        self._both_names = CollectorRegistry()
        self._both_names.register(WithOldNames(self._registry))
        self._server = StatusServer(
            (scraping.host, scraping.port), {"/metrics": self._page}, "metrics"
        )
        log.info("Metrics are served", port=self._server.port)

    @property
    def port(self) -> int:
        return self._server.port

    def stop(self) -> None:
        """Answer no more, and read nothing more."""
        self._server.stop()
        self._gauges.close()

    def _page(self) -> tuple[HTTPStatus, str]:
        return HTTPStatus.OK, generate_latest(self._both_names).decode()
