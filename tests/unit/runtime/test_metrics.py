"""What `serve` counts, and what a scrape of it reads."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import urllib3
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from bellhop.core.gvk import GVK, Resource
from bellhop.errors import DeniedError, InvalidError
from bellhop.logs import Log
from bellhop.ports.queue import Again, Done, GivenUp
from bellhop.runtime.cloud.event_log import COUNTED
from bellhop.runtime.embedded.consumer import Scraping
from bellhop.runtime.embedded.http import Front
from bellhop.runtime.embedded.metrics import HELP, NAMES, Exporter, Metrics, WithOldNames
from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.runtime.embedded.workers import Workers
from bellhop.settings import Settings
from bellhop.state.consumer import WAITS
from bellhop.state.messages import Resolve
from tests.fakes.fleet import Fleet, service, with_address
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.waiting import eventually

WAITING = b'bellhop_messages_waiting{queue="deploy"} 2.0\n'
ENDPOINTS = Resource(GVK("", "v1", "Endpoints"), "endpoints", namespaced=True)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def fleet(tmp_path: Path, registry: CollectorRegistry) -> Iterator[Fleet]:
    """An installation whose event log is observed."""
    one = Fleet(tmp_path)
    one.records.ledger.observe(Metrics(registry).noted)
    yield one
    one.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Embedded]:
    one = open_state(tmp_path / "state", Settings())
    yield one
    one.close()


def test_is_loaded_only_where_it_is_asked_for() -> None:
    """`serve` without the option starts as fast, and takes as little memory, as before."""
    program = (
        "import sys, bellhop.runtime.embedded.serve; sys.exit('prometheus_client' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_counters_are_those_of_the_clouds() -> None:
    """A metric that clouds get is not forgotten here, and has a name of its own."""
    assert HELP.keys() == NAMES.keys() == set(COUNTED.values())


def test_an_event_is_counted_and_timed(fleet: Fleet, registry: CollectorRegistry) -> None:
    """An event that deploys counts once as each, with the steps' times and its latency."""
    fleet.register("east", env="production")
    fleet.register("west", dep="eng").serve(ENDPOINTS)
    fleet.apply_example("service-discovery")
    fleet.pump()
    fleet.write("east", with_address(service("web")))
    fleet.pump()

    both = CollectorRegistry()
    both.register(WithOldNames(registry))

    def value(name: str, **labels: str) -> Any:
        return both.get_sample_value(f"bellhop_{name}", labels)

    counters = ("events", "match_changes", "matched", "profile_deployments", "applied")
    assert {name: value(f"{name}_total") for name in counters} == dict.fromkeys(counters, 1)
    assert value("failed_steps_total") == value("failed_total") == 0
    for name in ("step_duration_seconds", "step_seconds"):
        assert value(f"{name}_count", step="applied") == 1
        assert value(f"{name}_sum", step="applied") > 0
    assert value("deployment_latency_seconds_count") == value("latency_seconds_count") == 1


def test_failures_are_counted_by_step_and_reason(fleet: Fleet, registry: CollectorRegistry) -> None:
    """A refusal of the cluster and a script that fails are counted apart; the sum has both."""
    east = fleet.register("east", env="production")
    east.fail_with(DeniedError("may not apply"), "apply")
    fleet.apply(join(profile(), holder("own", config("own"))))
    script = """, evaluate: "function evaluate() error('broken') end\""""
    fleet.apply(source(more=script), trigger())
    fleet.pump()
    east.fail_with(None)
    fleet.write("east", with_address(service("web")))
    fleet.pump()

    failures = {
        tuple(each.labels.values()): each.value
        for family in registry.collect()
        for each in family.samples
        if each.name == "bellhop_failures_total"
    }
    assert failures.keys() == {("apply", "Denied"), ("evaluate", "Invalid")}
    assert sum(failures.values()) == registry.get_sample_value("bellhop_failed_steps_total")


def test_answers_are_counted_by_status(tmp_path: Path, registry: CollectorRegistry) -> None:
    """A refusal that the server sends without the app counts, too, and each request once."""
    fleet = Fleet(tmp_path)
    fleet.register("east")
    front = Front(fleet.ingest, Metrics(registry))
    body = b'{"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": []}'
    for path, token in (
        ("/clusters/fleet/east", "east"),
        ("/clusters/fleet/east", "no"),
        ("/", ""),
    ):
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
            "HTTP_AUTHORIZATION": f"Bearer {token}",
        }
        front(environ, lambda *_: None)
    front({"REQUEST_METHOD": "GET", "PATH_INFO": "/healthz"}, lambda *_: None)
    fleet.close()

    counts = {
        status: registry.get_sample_value("bellhop_ingest_requests_total", {"status": status})
        for status in ("200", "401", "404")
    }
    assert counts == {"200": 1, "401": 1, "404": 1}


def test_messages_are_counted_by_result(registry: CollectorRegistry) -> None:
    """A message that only waited for its group was not worked on."""
    metrics = Metrics(registry)
    metrics.expect("apply")
    for result in (Done(), Done(), Again(timedelta(1), "busy"), GivenUp("broken"), WAITS):
        metrics.settled("deploy", result)

    counts = {
        (queue, result): registry.get_sample_value(
            "bellhop_messages_total", {"queue": queue, "result": result}
        )
        for queue in ("deploy", "apply")
        for result in ("done", "retried", "dead_lettered")
    }
    assert [*counts.values()] == [2, 1, 1, 0, 0, 0]


def test_workers_count_what_became_of_messages(tmp_path: Path, registry: CollectorRegistry) -> None:
    """A message whose attempts are used up is a dead letter, and no retry."""

    class Stage:
        def handle(self, message: Resolve) -> None:
            if message.profile == "fails":
                raise RuntimeError

    embedded = open_state(tmp_path / "state", replace(Settings(), attempts=1))
    workers = Workers(embedded, {"deploy": Stage()}, Log(io.StringIO()), Metrics(registry))
    embedded.installation.publisher.publish([Resolve("works"), Resolve("fails")])
    workers.start()

    def count(result: str) -> float | None:
        labels = {"queue": "deploy", "result": result}
        return registry.get_sample_value("bellhop_messages_total", labels)

    try:
        eventually("both end", lambda: (count("done"), count("dead_lettered")) == (1, 1))
    finally:
        workers.stop()
        embedded.close()
    assert count("retried") is None


def test_an_address_in_use_is_refused(embedded: Embedded) -> None:
    """The error names the address and what it was for."""
    log = Log(io.StringIO())
    exporter = Exporter(embedded, Scraping("127.0.0.1", 0), log)
    try:
        with pytest.raises(InvalidError, match=f"'127.0.0.1:{exporter.port}' cannot .* metrics"):
            Exporter(embedded, Scraping("127.0.0.1", exporter.port), log)
    finally:
        exporter.stop()


def test_a_scrape_reads_what_waits(embedded: Embedded) -> None:
    """Only `/metrics` is served, and it has the messages that wait."""
    embedded.installation.publisher.publish([Resolve("a"), Resolve("b")])
    exporter = Exporter(embedded, Scraping("127.0.0.1", 0), Log(io.StringIO()))
    url = f"http://127.0.0.1:{exporter.port}"
    with urllib3.PoolManager(retries=False) as pool:
        # A part that is late on a busy machine is in the next scrape.
        eventually("they wait", lambda: WAITING in pool.request("GET", f"{url}/metrics").data)
        page = pool.request("GET", f"{url}/metrics")
        other = pool.request("GET", f"{url}/")
    exporter.stop()

    assert (page.status, other.status) == (200, 404)
    assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"_created" not in page.data
