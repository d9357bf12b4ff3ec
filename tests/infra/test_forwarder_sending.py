"""What the sender does with ingest's answers: over HTTP, to an ingest that does as configured."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop import __version__
from bellhop.core.gvk import ObjectKey
from bellhop.errors import TemporaryError
from bellhop.forwarder import backoff, outbox
from bellhop.forwarder.pending import Journal, PendingObject
from bellhop.forwarder.workqueue import DelayingQueue
from bellhop.ingest.admission import Hint
from bellhop.logs import Log
from tests.infra.sender_rig import CONFIG, Office, name_of
from tests.waiting import eventually


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    yield office
    office.close()


def failing(status: int, *names: str) -> Callable[[dict[str, Any]], int]:
    """Fail on some objects."""
    return lambda item: status if name_of(item) in names else 0


def refusing(status: int, *names: str) -> Callable[[dict[str, Any]], int]:
    """Refuse requests as a whole that hold some objects."""

    def rule(body: dict[str, Any]) -> int:
        return status if {name_of(item) for item in body.get("items", ())} & {*names} else 200

    return rule


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make within a second the attempts of an hour."""
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.01)
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(backoff, "ATTEMPTS", 3)
    monkeypatch.setattr(backoff, "SPAN_SECONDS", 0.3)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_drops_the_one_item_that_is_refused(office: Office, status: int) -> None:
    """Others of its batch are taken by the same request; the log names it with the reason."""
    office.ingest.fails = failing(status, "evil")
    good = {f"good-{number}" for number in range(20)}
    for name in [*sorted(good), "evil", "last"]:
        office.put(name)
    office.sender.start()

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert office.names() == good | {"last"}
    assert len(office.ingest.batches) == 1
    assert office.count("dropped") == 1
    [line] = office.said("Dropped")
    assert line["object"] == "/v1/ConfigMap/default/evil"
    assert (line["status"], line["why"]) == (status, "x")


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("status", [429, 500, 503])
def test_sends_an_item_again_that_failed(office: Office, status: int) -> None:
    """Others are taken meanwhile, nothing is dropped, and the log says it once."""
    office.ingest.fails = failing(status, "late")
    office.put("late")
    office.put("good")
    office.sender.start()
    eventually("more than 2 batches were sent", lambda: len(office.ingest.batches) > 2)
    assert office.names() == {"good"}
    assert office.queue.owed()[0] == 1
    office.ingest.fails = lambda _: 0

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert office.names() == {"good", "late"}
    assert office.count("dropped") == 0
    [line] = office.said("Ingest failed on an item")
    assert line["object"].endswith("/late")


@pytest.mark.usefixtures("hasty")
def test_drops_an_item_on_which_ingest_keeps_failing(office: Office) -> None:
    """After so many attempts in so long a time; the log names it, and a metric counts it."""
    office.ingest.fails = failing(500, "evil")
    office.put("evil")
    office.sender.start()
    eventually("more than 3 batches were sent", lambda: len(office.ingest.batches) > 3)
    office.put("good")

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert office.names() == {"good"}
    assert len(office.ingest.batches) > 5
    assert office.count("dropped") == 1
    [line] = office.said("Dropped")
    assert line["object"].endswith("/evil")
    assert line["failed"] >= 3


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("status", "others"), [(500, False), (503, True)])
def test_drops_no_item_that_is_not_at_fault(
    office: Office, status: int, *, others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While ingest takes nothing at all, or says that it may take the item later."""
    monkeypatch.setattr(backoff, "SPAN_SECONDS", 0.0)
    names = {f"object-{number}" for number in range(5)}
    office.ingest.fails = failing(status, *names)
    for name in sorted(names):
        office.put(name)
    office.sender.start()
    eventually("more than 20 batches were sent", lambda: len(office.ingest.batches) > 20)
    if others:
        office.put("good")
        eventually("the good one is taken", lambda: office.names() == {"good"})
        eventually("more than 40 batches were sent", lambda: len(office.ingest.batches) > 40)
    office.ingest.fails = lambda _: 0

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert names <= office.names()
    assert office.count("dropped") == 0


@pytest.mark.parametrize("status", [301, 403, 404, 429, 500, 502])
def test_drops_nothing_of_a_request_that_is_refused_as_a_whole(
    office: Office, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage may be as long as it likes: nothing is held against an item."""
    monkeypatch.setattr(backoff, "ATTEMPTS", 1)
    monkeypatch.setattr(backoff, "SPAN_SECONDS", 0.0)
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.001)
    office.put("before")
    office.sender.start()
    eventually("the first one is taken", lambda: office.names() == {"before"})
    office.ingest.rule = lambda _: status
    for number in range(20):
        office.put(f"object-{number}")
    eventually("more than 50 batches were sent", lambda: len(office.ingest.batches) > 50)
    office.ingest.rule = lambda _: 200

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert len(office.names()) == 21
    assert (office.count("dropped"), office.outbox.retrying()) == (0, 0)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"failed": 7}',
        b'{"failed": [7]}',
        b'{"failed": [{}]}',
        b'{"failed": [{"index": 9, "status": 400, "reason": ""}]}',
        b'{"failed": [{"index": -1, "status": 400, "reason": ""}]}',
    ],
)
def test_takes_no_answer_for_ingests_that_is_none(office: Office, answer: bytes) -> None:
    """A gateway that answers 200 by itself costs nothing."""
    office.ingest.body = answer
    office.put("object")
    office.sender.start()
    eventually("more than 2 batches were sent", lambda: len(office.ingest.batches) > 2)
    assert office.queue.owed()[0] == 1
    office.ingest.body = b"{}"

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert office.count("dropped") == 0


def test_sends_again_if_the_answer_was_lost(office: Office) -> None:
    """An answer that is lost settles nothing: the items come again."""
    office.ingest.unread = 1
    office.put("a")
    office.put("b")
    office.sender.start()

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert [name_of(item) for item in office.ingest.taken] == ["a", "b"] * 2


@pytest.mark.parametrize("status", [400, 413, 422])
def test_sends_items_one_by_one_of_a_request_that_cannot_be_read(
    office: Office, status: int
) -> None:
    """The one that cannot be read by itself is dropped, however large it is; others arrive."""
    office.ingest.rule = refusing(status, "evil")
    good = {f"good-{number}" for number in range(5)}
    for name in sorted(good):
        office.put(name)
    office.put("evil", content="x" * 2 * outbox.BATCH_BYTES if status == 413 else "")
    office.sender.start()

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert office.names() == good
    assert office.count("dropped") == 1
    [line] = office.said("Dropped")
    assert line["object"].endswith("/evil")
    assert (line["bytes"] > 2 * outbox.BATCH_BYTES) is (status == 413)


@pytest.mark.usefixtures("hasty")
def test_what_failed_holds_up_nobody(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it waits, others go at once, and are not taken for what comes after an outage."""
    monkeypatch.setattr(backoff, "SLOWER", 100_000)
    office.ingest.fails = failing(500, "evil")
    office.put("evil")
    office.put("good")
    office.sender.start()
    eventually("one is tried again", lambda: office.outbox.retrying() == 1)

    for number in range(5):
        begun = time.monotonic()
        office.put(f"later-{number}")
        eventually("one is owed", lambda: office.queue.owed()[0] == 1)
        assert time.monotonic() - begun < 10
    assert office.count("batches") == 6


@pytest.mark.usefixtures("hasty")
def test_an_object_that_failed_is_taken_once_it_is_another(office: Office) -> None:
    """The next attempt is made with its newest state."""
    office.ingest.fails = lambda item: 500 if "bad" in json.dumps(item) else 0
    office.put("object", content="bad")
    office.put("good")
    office.sender.start()
    eventually("one is tried again", lambda: office.outbox.retrying() == 1)
    office.put("object")

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert office.names() == {"good", "object"}
    assert office.outbox.retrying() == 0


@pytest.mark.usefixtures("hasty")
def test_failed_items_take_half_of_the_capacity_at_most(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many objects ingest fails on: reading goes on."""
    monkeypatch.setattr(outbox, "MOST_ITEMS", 6)
    monkeypatch.setattr(backoff, "SPAN_SECONDS", 3600.0)
    evil = [f"evil-{number}" for number in range(6)]
    office.ingest.fails = failing(500, *evil)
    for name in [*evil, "good"]:
        office.put(name)
    office.sender.start()

    eventually(
        "two are dropped and four tried again",
        lambda: office.count("dropped") == 2 and office.outbox.retrying() == 4,
    )
    assert office.outbox.wait_for_capacity()


def test_sends_times_of_the_clock_of_ingest(office: Office) -> None:
    """If our clock is far ahead, nothing is lost for it: items have the time of ingest."""
    office.ingest.ahead = timedelta(hours=-1)

    def fails(item: dict[str, Any]) -> int:
        latest = datetime.now(UTC) - timedelta(minutes=45)
        return 400 if datetime.fromisoformat(item["rang"]) > latest else 0

    office.ingest.fails = fails
    for number in range(10):
        office.put(f"object-{number}")
    office.sender.start()

    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    assert len(office.names()) == 10
    assert len(office.ingest.batches) == 2
    assert office.count("dropped") == 0
    assert office.written.getvalue().count("Our clock differs from ingest's") == 1


def test_marks_objects_that_bellhop_wrote(office: Office) -> None:
    """Of the others it says nothing."""
    office.put("theirs")
    office.put("ours", own=True)
    office.sender.start()
    eventually("two are taken", lambda: len(office.ingest.taken) == 2)

    sent = {each["object"]["metadata"]["name"]: each.get("own") for each in office.ingest.taken}
    assert sent == {"theirs": None, "ours": True}


def test_believes_its_own_clock_where_little_differs(office: Office) -> None:
    """Seconds are the network's."""
    office.ingest.ahead = timedelta(seconds=-30)
    reported_at = datetime.now(UTC)
    office.put("first", reported_at)
    office.sender.start()
    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)
    office.put("second", reported_at)
    eventually("nothing is owed", lambda: office.queue.owed()[0] == 0)

    assert [item["rang"] for item in office.ingest.taken] == [reported_at.isoformat()] * 2


def test_asks_for_a_look_until_ingest_agrees(office: Office) -> None:
    """A refused client waits and asks again, and items do not wait for that."""
    answers = iter([503, 429, 200])
    office.ingest.rule = lambda body: next(answers) if body["kind"] == "Missed" else 200
    office.sender.ask_for_a_look()
    office.sender.start()
    office.put("meanwhile")

    eventually("a look is asked for", lambda: office.count("looks_asked") == 1)
    eventually("what came meanwhile is taken", lambda: office.names() == {"meanwhile"})
    assert len(office.ingest.asked) == 3


def test_waits_to_ask_as_long_as_ingest_says(office: Office) -> None:
    """`Retry-After` is honoured."""
    answers = iter([429, 200])
    office.ingest.rule = lambda body: next(answers) if body["kind"] == "Missed" else 200
    office.ingest.wait = "1"
    office.sender.ask_for_a_look()
    office.sender.start()

    eventually("a look is asked for", lambda: office.count("looks_asked") == 1)
    first, second = office.ingest.asked
    assert second - first >= 1.0


def test_says_that_it_is_there_and_how_it_is(office: Office) -> None:
    """At once and then now and then, even without events; and until ingest has answered it."""
    answers = iter([503, 401, 200])
    office.ingest.rule = lambda body: next(answers) if body["kind"] == "Alive" else 200
    office.unreadable["v1/Service"] = "cannot read Service: forbidden"
    office.unsubscribed = "cannot subscribe to NATS"
    office.sender.start()
    eventually("three are alive", lambda: len(office.ingest.alive) == 3)
    time.sleep(0.5)

    said: dict[str, Any] = {"owed": 0, "since": "", "messaging": "cannot subscribe to NATS"}
    kind = {"apiVersion": "bellhop.dev/v1", "kind": "Alive"}
    said["refused"] = {"v1/Service": "cannot read Service: forbidden"}
    assert office.ingest.alive == [{**kind, **said, "version": __version__}] * 3
    assert len(office.refused) == 1


def test_releases_kinds_that_nobody_asks_for(office: Office) -> None:
    """Up to the last hint before ingest was asked: later calls are asked for again."""
    office.unreadable["v1/Service"] = "cannot read Service: forbidden"
    office.ingest.body = b'{"heard": true, "unasked": ["v1/Service"]}'
    office.put("first")
    serial = office.queue.serial
    office.sender.start()
    eventually("it is released", lambda: office.released)

    assert office.released == [(["v1/Service"], serial)]


def test_asks_for_a_look_when_it_cannot_spool(tmp_path: Path) -> None:
    """What is in memory only may be lost by a kill: somebody should look."""
    called: list[bool] = []
    spool = Journal(tmp_path)
    queue = DelayingQueue(spool, Log(io.StringIO()), lambda: called.append(True))
    key = ObjectKey(CONFIG, "default", "a")
    queue.add(Hint(key, "", 0), datetime.now(UTC).isoformat())
    assert called == []

    def full(pending: PendingObject) -> None:
        raise TemporaryError(f"the disk is full of {pending.key}")

    spool.put = full  # type: ignore[method-assign]
    queue.add(Hint(key, "", 0), datetime.now(UTC).isoformat())

    assert called == [True]
    spool.close()
