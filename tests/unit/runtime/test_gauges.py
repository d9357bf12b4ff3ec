"""What a scrape reads from the records, and what it does where they cannot be read."""

from __future__ import annotations

import io
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.declarations.records import HeldRemoval
from bellhop.logs import Log
from bellhop.ports.queue import GivenUp
from bellhop.runtime.embedded import gauges
from bellhop.runtime.embedded.gauges import Gauges
from bellhop.runtime.embedded.state import BACKUP, Embedded, open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Circuit, Cluster, Health
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.match import HeldDeletion, Match
from bellhop.state.messages import Resolve
from tests.fakes.clock import FakeClock

PATIENCE = 30.0
INGRESS = GVK("networking.k8s.io", "v1", "Ingress")


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Embedded]:
    one = open_state(tmp_path / "state", Settings(), clock=FakeClock())
    yield one
    one.close()


def scraped(read: Gauges) -> Callable[..., float | None]:
    """Scrape once; return what reads a value of it."""
    registry = CollectorRegistry()
    registry.register(read)
    found = {
        (each.name, tuple(sorted(each.labels.items()))): each.value
        for family in registry.collect()
        for each in family.samples
    }
    return lambda name, **labels: found.get((f"bellhop_{name}", tuple(sorted(labels.items()))))


def scrape(embedded: Embedded) -> Callable[..., float | None]:
    read = Gauges(embedded, Log(io.StringIO()), PATIENCE)
    try:
        return scraped(read)
    finally:
        read.close()


def test_clusters_are_counted_by_the_state_that_people_see(embedded: Embedded) -> None:
    """One that does not answer is down whatever its last resync found; no other state is left out.

    No name of a cluster is a label.
    """
    records = embedded.installation.records
    now = records.clock.now()
    for name in ("a", "b", "c"):
        records.clusters.put(Cluster("prod", name, {}, "v1.31.0", "digest", now))
        records.health.put(f"prod/{name}", Health("Healthy", swept_at=now))
    records.circuits.put("prod/c", Circuit(now, now, "connection refused"))
    value = scrape(embedded)

    counts = {state: value("clusters", state=state) for state in gauges.STATES}
    assert counts == {**dict.fromkeys(gauges.STATES, 0), "Healthy": 2, "Down": 1}


def test_gauges_of_queues_have_what_waits_since_when_and_what_died(embedded: Embedded) -> None:
    """A dead letter counts until it is replayed or dropped."""
    clock = embedded.installation.records.clock
    assert isinstance(clock, FakeClock)
    queue = embedded.queues["deploy"]
    embedded.installation.publisher.publish([Resolve("dies")])
    [delivery] = queue.receive(1, wait=timedelta(0))
    queue.settle(delivery, GivenUp("broken"))
    embedded.installation.publisher.publish([Resolve("held")])
    queue.receive(1, wait=timedelta(0))
    embedded.installation.publisher.publish([Resolve("waits")])
    clock.advance(timedelta(seconds=90))
    value = scrape(embedded)

    names = ("messages_waiting", "messages_in_flight", "oldest_message_age_seconds", "dead_letters")
    assert [value(name, queue="apply") for name in names] == [0, 0, 0, 0]
    assert [value(name, queue="deploy") for name in names] == [1, 1, 90, 1]


def test_a_late_timer_counts_after_a_minute(embedded: Embedded) -> None:
    """The index entry of a timer that was set again means nothing."""
    records = embedded.installation.records
    now = records.clock.now()
    records.timers.set("late", now - timedelta(minutes=5), {})
    records.timers.set("moved", now - timedelta(minutes=9), {})
    records.timers.set("moved", now + timedelta(minutes=9), {})
    records.timers.set("just", now - timedelta(seconds=5), {})
    records.pulses.put(WorkerHeartbeat(now, now, "0.1.0"))
    value = scrape(embedded)

    assert value("timers_overdue") == 1
    assert value("timer_longest_delay_seconds") == 300
    assert value("heartbeat_timestamp_seconds") == now.timestamp()


def test_held_deletions_count_objects_and_addons(embedded: Embedded) -> None:
    """What is only counted yet, and may be withdrawn in a moment, is not held."""
    records = embedded.installation.records
    now = records.clock.now()
    hold = HeldDeletion("prod/a", "web", "lot", "rings", now, now, of=9, held_at=now)
    records.holds.put(hold)
    records.holds.put(replace(hold, source="other", held_at=None))
    for source in ("web", "other"):
        key = ObjectKey(INGRESS, "shop", source)
        match = Match("prod/a", source, key, matching=True, digest="d", since=now, held=True)
        records.holds.stay(match, "lot", None, again=True)
    records.removals.put(HeldRemoval("web", "", 1, 7, 7, 1, ("prod/a",), "3f", "a label", now))
    value = scrape(embedded)

    assert [value("held_deletions", cause=cause) for cause in ("events", "change")] == [1, 7]


def test_the_disk_is_measured(embedded: Embedded) -> None:
    """Free space on it, and what the state takes of it."""
    value = scrape(embedded)

    free, size = value("disk_free_bytes"), value("disk_size_bytes")
    assert free is not None
    assert size is not None
    assert 0 < free < size
    sizes = [path.stat().st_size for path in embedded.state.glob("store.db*")]
    assert len(sizes) > 1
    assert value("database_size_bytes", file="store.db") == sum(sizes)


def test_a_part_that_hangs_costs_only_its_own(embedded: Embedded) -> None:
    """A scrape waits for it only so long, and the next one does not read it a second time."""
    read = Gauges(embedded, Log(io.StringIO()), PATIENCE)
    ends, reads = threading.Event(), []

    def hang() -> list[gauges.Metric]:
        reads.append(1)
        ends.wait(PATIENCE)
        return []

    scraped(read)
    for part in read._parts:
        # Only one is read again, so that no other one can be late.
        part._again_at = 0.0 if part.name == "clusters" else math.inf
        part._read = hang if part.name == "clusters" else part._read
    read._patience = 0.1
    begun = time.monotonic()
    values = [scraped(read), scraped(read)]
    took = time.monotonic() - begun
    ends.set()
    read.close()

    assert took < PATIENCE / 2
    assert reads == [1]
    for value in values:
        assert value("collector_success", part="clusters") == 0
        assert value("collector_success", part="queues") == 1
        assert value("clusters", state="Healthy") is None
        assert value("messages_waiting", queue="deploy") == 0


def test_a_part_that_fails_is_logged_and_read_again(embedded: Embedded) -> None:
    """Its numbers are missing meanwhile: an old number would look like a present one."""
    output = io.StringIO()
    read = Gauges(embedded, Log(output), PATIENCE)
    [part] = [each for each in read._parts if each.name == "disk"]
    works = part._read

    def fail() -> list[gauges.Metric]:
        raise OSError(5, "Input/output error")

    part._read = fail
    failed = scraped(read)
    part._read = works
    value = scraped(read)
    read.close()

    assert failed("collector_success", part="disk") == 0
    assert failed("disk_free_bytes") is None
    assert "Input/output error" in output.getvalue()
    assert value("collector_success", part="disk") == 1


def test_a_part_that_takes_long_is_shared_by_scrapes(embedded: Embedded) -> None:
    """It is read for a hundredth of the time, however often it is scraped."""
    read = Gauges(embedded, Log(io.StringIO()), PATIENCE)
    [part] = [each for each in read._parts if each.name == "held"]
    works, reads = part._read, []

    def slow() -> object:
        reads.append(1)
        time.sleep(0.3)
        return works()

    part._read = slow  # type: ignore[assignment]
    values = [scraped(read)("held_deletions", cause="events") for _ in range(3)]
    read.close()

    assert values == [0, 0, 0]
    assert reads == [1]


def test_the_first_credentials_that_expire_are_shown(embedded: Embedded) -> None:
    """Without a cluster whose credentials expire there is no such value."""
    assert scrape(embedded)("credentials_expiry_timestamp_seconds") is None
    records = embedded.installation.records
    now = records.clock.now()
    for name, days in (("a", 9), ("b", 3)):
        records.clusters.put(Cluster("prod", name, {}, "v1.31.0", "digest", now))
        ends = now + timedelta(days=days)
        records.health.put(f"prod/{name}", Health("Healthy", swept_at=now, ends_at=ends))

    value = scrape(embedded)("credentials_expiry_timestamp_seconds")
    assert value == (now + timedelta(days=3)).timestamp()


def test_the_last_backup_is_shown(embedded: Embedded) -> None:
    """An installation that has none shows 0, so that an alert can notice it."""
    assert scrape(embedded)("backup_timestamp_seconds") == 0
    path = embedded.state / BACKUP
    path.touch()
    os.utime(path, (1000, 1000))

    assert scrape(embedded)("backup_timestamp_seconds") == 1000
