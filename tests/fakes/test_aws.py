"""AWS in memory: it holds to its limits, and to what the adapters ask of the real one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bellhop.adapters.aws.store import DynamoStore
from bellhop.errors import StaleError, ThrottledError
from bellhop.ports.store import ABSENT, Item
from tests.benchmarks import fleet
from tests.benchmarks.clouds.sizes import AwsSizes, aws_sizes
from tests.fakes.aws import KEY_WRITES, Aws, SimulatedServices
from tests.missing import required


@pytest.fixture
def aws() -> Aws:
    return Aws()


@pytest.fixture(scope="module")
def sizes() -> AwsSizes:
    with required():
        return aws_sizes(100)


@pytest.fixture
def store(aws: Aws) -> DynamoStore:
    return DynamoStore(SimulatedServices(aws), "table", clock=aws.clock)


def test_keeps_conditions_order_and_expiry(aws: Aws, store: DynamoStore) -> None:
    """What the adapter asks is answered as DynamoDB does."""
    first = store.put(Item("p", "b", {"n": 1}), expect=ABSENT)
    soon = aws.clock.now() + timedelta(seconds=60)
    store.put(Item("p", "a", {"n": 2}, expires_at=soon))
    for expect in (ABSENT, "another"):
        with pytest.raises(StaleError):
            store.put(Item("p", "b", {"n": 3}), expect=expect)

    assert [item.sort for item in store.query("p")] == ["a", "b"]
    assert [item.sort for item in store.query("p", backwards=True, limit=1)] == ["b"]
    assert [item.sort for item in store.query("p", after="a", prefix="b")] == ["b"]
    aws.clock.rest(61)
    assert list(store.query("p")) == [first]
    assert store.put(Item("p", "a", {"n": 4}), expect=ABSENT)
    assert store.delete("p", "b", expect=first.token)
    assert store.get("p", "b") is None


def test_a_key_takes_no_more_than_dynamodb_gives_it(aws: Aws, store: DynamoStore) -> None:
    """Beyond it requests are throttled, and tried again as the adapter does; the rest is served."""
    aws.meters.used[0]["write key", "hot"] = KEY_WRITES

    aws.clock.rest(0.97)
    store.put(Item("cold", "x", {}))
    assert aws.meters.refused == {}
    store.put(Item("hot", "x", {}))
    assert aws.clock.seconds >= 1
    assert aws.meters.refused["DynamoDB, write key"] > 0
    for second in range(30):
        aws.meters.used[second]["write key", "hot"] = KEY_WRITES
    with pytest.raises(ThrottledError):
        store.put(Item("hot", "x", {}))


def test_nobody_is_limited_who_makes_ready(aws: Aws, store: DynamoStore) -> None:
    """And it takes no time."""
    aws.meters.used[0]["write key", "hot"] = KEY_WRITES
    with aws.unlimited():
        store.put(Item("hot", "x", {}))

    assert (aws.clock.seconds, aws.meters.refused) == (0.0, {})


def test_a_small_fleet_loses_nothing_and_meets_no_limit(sizes: AwsSizes) -> None:
    """Every new object is applied, by the real functions; no partition takes most of the writes.

    It takes seconds: the real functions work off 30 simulated seconds of a fleet's events.
    """
    small = fleet.Fleet(12, 5, sizes)
    small.play(10, 20)

    assert small.lost == 0
    assert len(small.latencies) > 50
    assert small.aws.meters.refused == {}
    written = small.aws.meters.peaks("write key")
    assert written[0][1] < 50, written[:3]


def test_a_fleet_that_is_throttled_loses_nothing(sizes: AwsSizes) -> None:
    """What is refused comes again: forwarders send again, messages come again.

    It takes seconds: the real functions work off 22 simulated seconds of a fleet's events.
    """
    small = fleet.Fleet(12, 5, sizes)
    for second in range(4, 9):
        small.aws.meters.used[second]["write table", ""] = 4000
    small.play(10, 12)

    assert sum(small.aws.meters.refused.values()) > 10
    assert small.lost == 0


def test_a_throttled_batch_is_handed_over_again(sizes: AwsSizes) -> None:
    """Lambda invokes a mapping's function again, and forwarders send again: nothing is lost."""
    small = fleet.Fleet(5, 3, replace(sizes, concurrency=1))
    small.play(4, 8)

    assert small.lost == 0
    assert small.most_busy == 1
    assert small.aws.meters.refused["Lambda, evaluate"] > 0
    assert small.aws.meters.refused["ingest, 503"] > 0


def test_a_message_in_flight_is_hidden(aws: Aws) -> None:
    """A failed message comes again when its visibility timeout ends, and no earlier."""
    entry = {"Id": "0", "MessageBody": "", "MessageAttributes": {}}
    aws.ask("sqs", "send_message_batch", {"QueueUrl": "q", "Entries": [entry]})
    [sent] = aws.take("q", 1.0, batch=3, hidden=360.0)
    aws.finish("q", sent.number, failed=True)

    assert aws.take("q", 360.0) == []
    assert aws.take("q", 361.0) == [sent]
