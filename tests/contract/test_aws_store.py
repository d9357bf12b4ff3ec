"""The store on DynamoDB where the contract cannot look: requests, lost answers, pages, expiry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellhop.adapters.aws.services import Services
from bellhop.adapters.aws.store import DynamoStore
from bellhop.errors import StaleError, TemporaryError, ThrottledError, UnreachableError
from bellhop.ports.store import ABSENT, ITEM_LIMIT, KEY_LIMIT, Item
from tests.aws_fixtures import Asked
from tests.contract.rigs.aws import Rig
from tests.fakes.clock import FakeClock
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto

HOUR = timedelta(hours=1)


@pytest.fixture
def store(aws: Rig, hurried: Services) -> DynamoStore:
    return DynamoStore(hurried, aws.name, clock=aws.clock)


def test_each_operation_is_one_request(store: DynamoStore, asked: Asked) -> None:
    """Whatever comes of it: what is refused costs no second look either."""
    first = store.put(Item("a", "b", {}))
    second = store.put(Item("a", "b", {}), expect=first.token)
    with pytest.raises(StaleError):
        store.put(Item("a", "b", {}), expect=first.token)
    # Three requests, of which one was refused for its condition.
    assert asked() == {"dynamodb:PutItem": 3, "dynamodb:conditions": 1}

    store.get("a", "b")
    list(store.query("a"))
    next(store.query("a", limit=1))
    assert asked() == {"dynamodb:GetItem": 1, "dynamodb:Query": 2}

    with pytest.raises(StaleError):
        store.delete("a", "b", expect=first.token)
    assert store.delete("a", "b", expect=second.token)
    assert not store.delete("a", "b")
    assert asked() == {"dynamodb:DeleteItem": 3, "dynamodb:conditions": 1}


def test_reading_on_costs_one_request_a_page(store: DynamoStore, asked: Asked) -> None:
    """Who begins after a key does not read it again, and a partition is read in few requests."""
    for number in range(200):
        store.put(Item("a", f"{number:03}", {}))
    asked()

    assert [item.sort for item in store.query("a", after="041", limit=1)] == ["042"]
    assert asked() == {"dynamodb:Query": 1}
    assert len(list(store.query("a"))) == 200
    assert asked() == {"dynamodb:Query": 3}


@pytest.mark.parametrize("there", [False, True], ids=["absent", "token"])
def test_a_write_whose_answer_was_lost_is_its_own(
    moto: Moto, store: DynamoStore, *, there: bool
) -> None:
    """It is repeated, refused, and recognised; what it returns is the token to expect."""
    expect = store.put(Item("a", "b", {"n": 0})).token if there else ABSENT
    moto.fail("dynamodb:PutItem", served=True)

    written = store.put(Item("a", "b", {"n": 1}), expect=expect)

    assert store.get("a", "b") == written
    store.put(Item("a", "b", {"n": 2}), expect=written.token)


def test_a_write_that_was_done_and_failed_is_its_own(moto: Moto, store: DynamoStore) -> None:
    """An answer that says that AWS failed does not say that nothing was written."""
    moto.fail("dynamodb:PutItem", status=500, code="InternalServerError", served=True, times=3)

    written = store.put(Item("a", "b", {"n": 1}), expect=ABSENT)

    assert store.get("a", "b") == written


def test_no_two_attempts_of_a_write_share_a_token(aws: Rig, moto: Moto) -> None:
    """Who came between two attempts, and left, finds nothing of his predecessor's."""
    seen: list[Any] = []
    other = aws.store()

    def between(_: float) -> None:
        seen.append(other.get("a", "b"))
        other.delete("a", "b", expect=seen[-1].token)

    services = Services(
        region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY), sleep=between
    )
    moto.fail("dynamodb:PutItem", served=True)

    last = DynamoStore(services, aws.name, clock=aws.clock).put(Item("a", "b", {}), expect=ABSENT)

    services.close()
    assert last == other.get("a", "b")
    with pytest.raises(StaleError):
        other.put(Item("a", "b", {"by": "who read the first attempt"}), expect=seen[0].token)


def test_a_deletion_whose_answer_was_lost_is_stale(moto: Moto, store: DynamoStore) -> None:
    """The item existed and its deleter is unknown: the reader reads it again."""
    token = store.put(Item("a", "b", {})).token
    moto.fail("dynamodb:DeleteItem", served=True)

    with pytest.raises(StaleError):
        store.delete("a", "b", expect=token)

    assert store.get("a", "b") is None


def test_waits_out_a_throttle(moto: Moto, store: DynamoStore, asked: Asked) -> None:
    """A few refusals cost time and nothing else."""
    moto.fail("dynamodb:GetItem", status=400, code="ThrottlingException", times=3)

    assert store.get("a", "b") is None
    assert asked() == {"dynamodb:GetItem": 4}


def test_a_lasting_throttle_is_raised(moto: Moto, store: DynamoStore, asked: Asked) -> None:
    """After a few tries the message goes back to its queue, for a while."""
    moto.fail("dynamodb:PutItem", status=400, code="ThrottlingException", times=99)

    with pytest.raises(ThrottledError, match="'a' 'b'") as caught:
        store.put(Item("a", "b", {"secret": "value"}))

    assert caught.value.delay == timedelta(seconds=2)
    assert "secret" not in str(caught.value)
    assert asked() == {"dynamodb:PutItem": 5}


def test_begins_no_try_after_its_time(aws: Rig, moto: Moto, asked: Asked) -> None:
    """A call that took long is not tried again: who called has a deadline too."""
    hand = iter(range(0, 1000, 7))
    services = Services(
        region=REGION,
        endpoint=moto.url,
        keys=(ACCESS_KEY, SECRET_KEY),
        seconds=lambda: float(next(hand)),
        sleep=lambda _: None,
    )
    moto.fail("dynamodb:GetItem", status=500, code="InternalServerError", times=99)

    with pytest.raises(UnreachableError):
        DynamoStore(services, aws.name, clock=aws.clock).get("a", "b")

    services.close()
    assert asked() == {"dynamodb:GetItem": 2}


def test_a_server_that_is_not_there_is_unreachable(aws: Rig) -> None:
    """Nobody listens: that may pass."""
    services = Services(
        region=REGION,
        endpoint="http://127.0.0.1:9",
        keys=(ACCESS_KEY, SECRET_KEY),
        sleep=lambda _: None,
    )

    with pytest.raises(UnreachableError, match="cannot read the item 'a' 'b': AWS does not answer"):
        DynamoStore(services, aws.name, clock=aws.clock).get("a", "b")

    services.close()


def test_a_table_that_is_not_there_loses_no_message(aws: Rig, hurried: Services) -> None:
    """It may be there once Terraform has run: nobody takes a message for finished."""
    with pytest.raises(TemporaryError, match="Terraform"):
        DynamoStore(hurried, "no-such-table", clock=aws.clock).get("a", "b")


def test_reads_past_what_has_expired(store: DynamoStore, asked: Asked) -> None:
    """Items that DynamoDB has not deleted yet count for its limits and not for ours."""
    for number in range(100):
        expired = datetime.now(UTC) - HOUR if number < 99 else None
        store.put(Item("a", f"{number:03}", {}, expires_at=expired))
    asked()

    assert [item.sort for item in store.query("a", limit=1)] == ["099"]
    assert [item.sort for item in store.query("a")] == ["099"]


def test_reads_on_where_a_page_ends_at_a_megabyte(store: DynamoStore, asked: Asked) -> None:
    """DynamoDB ends a page by size, in the middle of whatever limit."""
    for number in range(5):
        store.put(Item("a", str(number), {"text": "x" * (ITEM_LIMIT - 100)}))
    asked()

    assert [item.sort for item in store.query("a", limit=5)] == list("01234")
    assert asked()["dynamodb:Query"] > 1


@pytest.fixture
def sent(hurried: Services) -> list[dict[str, Any]]:
    """What the store asks of DynamoDB: moto is not as strict with it as AWS is."""
    found: list[dict[str, Any]] = []
    for operation in ("GetItem", "Query"):
        hurried.client("dynamodb").meta.events.register(
            f"provide-client-params.dynamodb.{operation}",
            lambda params, **_: found.append(dict(params)),
        )
    return found


def test_every_read_sees_the_last_finished_write(
    store: DynamoStore, sent: list[dict[str, Any]]
) -> None:
    """AWS answers from a copy that may be behind unless it is asked not to; moto has no copies."""
    store.get("a", "b")
    list(store.query("a"))

    assert [each["ConsistentRead"] for each in sent] == [True, True]


def test_a_prefix_at_the_limit_of_keys_is_looked_for(
    store: DynamoStore, sent: list[dict[str, Any]]
) -> None:
    """The key after it would be too long for a condition, which AWS refuses and moto does not."""
    longest = "x" * 1023 + "\x7f"
    store.put(Item("a", longest, {}))
    store.put(Item("a", "y", {}))

    assert [item.sort for item in store.query("a", prefix=longest)] == [longest]
    assert [item.sort for item in store.query("a", prefix=longest, backwards=True)] == [longest]
    values = [value["S"] for each in sent for value in each["ExpressionAttributeValues"].values()]
    assert max(len(value.encode()) for value in values) == KEY_LIMIT


def test_an_item_lives_to_the_microsecond(aws: Rig, hurried: Services) -> None:
    """DynamoDB's own clock has whole seconds; it is asked to delete late, never early."""
    clock = FakeClock()
    store = DynamoStore(hurried, aws.name, clock=clock)
    at = clock.now() + timedelta(seconds=10, microseconds=1)
    token = store.put(Item("a", "b", {}, expires_at=at)).token
    key = {"partition": {"S": "a"}, "sort": {"S": "b"}}
    row = hurried.client("dynamodb").get_item(TableName=aws.name, Key=key)["Item"]
    clock.advance(timedelta(seconds=10))

    assert int(row["expires"]["N"]) == at.timestamp() // 1 + 1
    found = store.get("a", "b")
    assert found
    assert found.expires_at == at
    clock.advance(timedelta(microseconds=1))
    assert store.get("a", "b") is None
    with pytest.raises(StaleError):
        store.put(Item("a", "b", {}), expect=token)
    store.put(Item("a", "b", {}), expect=ABSENT)


def test_nothing_is_made_before_the_first_call() -> None:
    """A process that is forked, or restored from a snapshot, makes its own connections."""
    services = Services(region=REGION)
    DynamoStore(services, "table", clock=FakeClock())

    assert services._clients == {}
    assert services._session is None
