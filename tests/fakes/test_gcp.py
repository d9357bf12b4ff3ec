"""Google Cloud in memory: it holds to its limits, and to what the adapters ask of the real one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.adapters.gcp.queue import PubsubQueue
from bellhop.adapters.gcp.store import FirestoreStore
from bellhop.errors import BusyError, StaleError, TemporaryError, ThrottledError
from bellhop.ports.queue import Message
from bellhop.ports.store import ABSENT, Item
from tests.benchmarks import fleet_gcp
from tests.benchmarks.clouds.sizes import GoogleSizes, google_sizes
from tests.fakes.gcp import DOCUMENT_WRITES, EVERY, PUBLISHED, RAMP, Google, SimulatedGoogle
from tests.missing import required


@pytest.fixture
def google() -> Google:
    return Google()


@pytest.fixture(scope="module")
def sizes() -> GoogleSizes:
    with required():
        return google_sizes(100)


@pytest.fixture
def store(google: Google) -> FirestoreStore:
    return FirestoreStore(SimulatedGoogle(google), clock=google.clock)


def test_keeps_conditions_order_and_expiry(google: Google, store: FirestoreStore) -> None:
    """What the adapter asks is answered as Firestore does."""
    first = store.put(Item("p", "b", {"n": 1}), expect=ABSENT)
    soon = google.clock.now() + timedelta(seconds=60)
    store.put(Item("p", "a", {"n": 2}, expires_at=soon))
    for expect in (ABSENT, "another", "1", first.token + "1"):
        with pytest.raises(StaleError):
            store.put(Item("p", "b", {"n": 3}), expect=expect)

    assert [item.sort for item in store.query("p")] == ["a", "b"]
    assert [item.sort for item in store.query("p", backwards=True, limit=1)] == ["b"]
    assert [item.sort for item in store.query("p", prefix="a", backwards=True)] == ["a"]
    assert [item.sort for item in store.query("p", after="a")] == ["b"]
    assert list(store.query("q")) == []
    google.clock.rest(61)
    assert list(store.query("p")) == [first]
    assert store.put(Item("p", "a", {"n": 4}), expect=ABSENT)
    second = store.put(Item("p", "b", {"n": 5}), expect=first.token)
    with pytest.raises(StaleError):
        store.delete("p", "b", expect=first.token)
    assert store.delete("p", "b", expect=second.token)
    assert (store.get("p", "b"), store.delete("p", "b")) == (None, False)


def test_reads_many_pages_forwards_and_backwards(store: FirestoreStore) -> None:
    """Nothing is left out, and nothing comes twice."""
    names = sorted(f"{number:03}" for number in range(200))
    for name in names:
        store.put(Item("p", name, {}))

    assert [item.sort for item in store.query("p")] == names
    assert [item.sort for item in store.query("p", backwards=True)] == names[::-1]


def test_a_new_database_takes_few_operations_and_more_after_a_while(
    google: Google, store: FirestoreStore
) -> None:
    """What is beyond is refused, and tried again as the adapter does."""
    google.meters.used[0]["Firestore, operations", ""] = RAMP
    google.clock.rest(0.9)
    store.put(Item("p", "x", {}))
    assert google.clock.seconds >= 1
    assert google.meters.refused["Firestore, operations"] > 0

    google.clock.seconds = 2.0 * EVERY
    assert google.ramp == RAMP * 2.25
    for second in range(60):
        at = int(google.clock.seconds) + second
        google.meters.used[at]["Firestore, operations", ""] = 10 * RAMP
    with pytest.raises(ThrottledError):
        store.get("p", "x")


def test_a_document_that_everybody_writes_is_contended(
    google: Google, store: FirestoreStore
) -> None:
    """It takes one write a second for long; others beside it are written."""
    for _ in range(DOCUMENT_WRITES):
        google.clock.rest(0.5)
        store.put(Item("p", "hot", {}))
    google.clock.seconds = 30.0

    with pytest.raises(BusyError):
        store.put(Item("p", "hot", {}))
    store.put(Item("p", "cold", {}))
    google.clock.seconds = 60.0
    store.put(Item("p", "hot", {}))


def test_what_may_be_published_a_second_is_limited(google: Google, store: FirestoreStore) -> None:
    """Messages are taken when they may be pushed, in order, and again after their pause."""
    queue = PubsubQueue(SimulatedGoogle(google), "t", store=store, clock=google.clock)
    queue.publish([Message({"n": 1}, "g"), Message({"n": 2}, "g")])
    topic = "projects/fleet/topics/t"
    taken = google.take(topic, 1.0)
    assert taken
    google.finish(topic, taken, again_at=9.0)
    rest = google.take(topic, 1.0)
    assert rest
    assert (rest.number > taken.number, google.take(topic, 1.0)) == (True, None)
    assert google.take(topic, 9.0) is taken

    for second in range(60):
        google.meters.used[second]["Pub/Sub, published bytes", ""] = PUBLISHED
    with pytest.raises(TemporaryError):
        queue.publish([Message({"n": 3}, "g")])


def test_a_small_fleet_loses_nothing_and_meets_no_limit(sizes: GoogleSizes) -> None:
    """Every new object is applied, by the real functions; no document is written by all."""
    small = fleet_gcp.Fleet(8, 4, sizes)
    small.play(8, 10)

    assert small.lost == 0
    assert len(small.latencies) > 20
    assert small.google.meters.refused == {}
    [(_, most)] = small.google.by_minute.peaks("Firestore, a document")[:1]
    assert most < DOCUMENT_WRITES / 2


def test_a_fleet_that_outgrows_its_database_loses_nothing(sizes: GoogleSizes) -> None:
    """What is refused comes again: forwarders send again, and Pub/Sub pushes again."""
    small = fleet_gcp.Fleet(8, 4, sizes)
    for second in range(2, 9):
        small.google.meters.used[second]["Firestore, operations", ""] = 10 * fleet_gcp.GROWN
    small.play(8, 8)

    assert sum(small.google.meters.refused.values()) > 10
    assert small.lost == 0
