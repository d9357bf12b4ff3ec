"""What Pub/Sub does to an inbox beyond the contract: pushes, its own burials, rests and shares."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.gcp.fair_shares import FairShares
from bellhop.adapters.gcp.pubsub_messages import of_push
from bellhop.adapters.gcp.queue import DEAD, PubsubQueue, wake
from bellhop.adapters.gcp.services import Services
from bellhop.adapters.local.store import SqliteStore
from bellhop.errors import (
    BellhopError,
    InvalidError,
    MissingError,
    TemporaryError,
    UnreachableError,
)
from bellhop.ports.queue import Again, Backlog, Delivery, Done, GivenUp, Message, Result
from bellhop.state.messages import read
from tests.contract.endpoint import Endpoint
from tests.contract.rigs.gcp_queues import as_push, make
from tests.fakes.clock import START, FakeClock
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.lab.google import PUBSUB, Emulator
from tests.lab.google_monitoring import Monitoring
from tests.waiting import eventually

NAME = "bellhop-inbox"
NOW = timedelta(0)
BUSY = Again(NOW, "busy")
PATIENCE = 20.0

Make = Callable[..., PubsubQueue]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store.db", clock=clock)
    yield made
    made.close()


class Counted(Services):
    """Services that count what each request to Pub/Sub had, and fail some of them."""

    def __init__(self, project: str, address: str) -> None:
        super().__init__(project, emulators={"PUBSUB_EMULATOR_HOST": address})
        self.published: list[int] = []
        self.acknowledged = 0
        self.failing: set[int] = set()

    def call(self, service: str, operation: str, request: Any, **options: Any) -> Any:
        if operation == "acknowledge":
            self.acknowledged += len(request["ack_ids"])
        if operation == "publish":
            self.published.append(len(request["messages"]))
            if len(self.published) in self.failing:
                raise UnreachableError("cannot publish: Google does not answer")
        return super().call(service, operation, request, **options)


@pytest.fixture
def services(pubsub: Emulator, google_project: str) -> Iterator[Counted]:
    made = Counted(google_project, pubsub.address)
    make(made, NAME)
    yield made
    made.close()


@pytest.fixture
def inbox(services: Counted, store: SqliteStore, clock: FakeClock) -> Make:
    """Make a client of the inbox; no message waits for its next try where it is."""

    def made(**more: Any) -> PubsubQueue:
        patience = more.pop("patience", NOW)
        given = {"store": store, "clock": clock, "attempts": 3} | more
        queue = PubsubQueue(services, NAME, **given)
        queue.patience = patience
        return queue

    return made


def push(body: Any = None, number: str = "7", **attributes: str) -> dict[str, Any]:
    """Return the body of a push."""
    data = base64.b64encode(json.dumps(body or {"n": 1}).encode()).decode()
    message_attributes = {"group": "g", **attributes}
    return {"message": {"data": data, "messageId": number, "attributes": message_attributes}}


def never(_: Delivery) -> Result:
    raise AssertionError("nobody is to work on it")


def fetch(services: Services) -> list[dict[str, Any]]:
    """Take off what is in the topic by now, as pushes."""
    path = f"projects/{services.project}/subscriptions/{NAME}"
    found: list[dict[str, Any]] = []
    request = {"subscription": path, "max_messages": 1000, "return_immediately": True}
    while taken := services.call("subscriber", "pull", request, doing="test").received_messages:
        found += [as_push(each.message) for each in taken]
        receipts = {"subscription": path, "ack_ids": [each.ack_id for each in taken]}
        services.call("subscriber", "acknowledge", receipts, doing="test")
    return found


def read_pushes(pushes: Sequence[Mapping[str, Any]]) -> list[tuple[Any, int]]:
    """Return which messages there are, by number, and the attempt that each is."""
    return sorted((each.message.body["n"], each.attempt) for each in map(of_push, pushes))


# What is pushed ---------------------------------------------------------------------------------


def test_reads_what_the_real_service_pushes() -> None:
    """A push has more than the emulator's: a key, both spellings, and a count that is not ours."""
    delivery = of_push(
        {
            "deliveryAttempt": 5,
            "message": {
                "attributes": {"group": "one object", "share": "ns/east", "attempts": "2"},
                "data": base64.b64encode(b'{"do":"probe","cluster":"ns/east"}').decode(),
                "messageId": "2070443601311540",
                "message_id": "2070443601311540",
                "orderingKey": "key",
                "publishTime": "2026-02-26T19:13:55.749Z",
                "publish_time": "2026-02-26T19:13:55.749Z",
            },
            "subscription": "projects/p/subscriptions/bellhop-probe",
        }
    )

    body = {"do": "probe", "cluster": "ns/east"}
    assert delivery.message == Message(body, "one object", "ns/east")
    assert (delivery.id, delivery.attempt) == ("2070443601311540", 3)
    assert delivery.receipt


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({}, id="neither data nor attributes"),
        pytest.param({"data": "", "attributes": None}, id="both empty"),
        pytest.param({"data": "not base64!"}, id="no base64"),
        pytest.param({"data": base64.b64encode(b"\xff\xfe").decode()}, id="no text"),
        pytest.param({"data": base64.b64encode(b"[1]").decode()}, id="a list"),
        pytest.param({"data": base64.b64encode(b"[" * 60_000).decode()}, id="too deep"),
        pytest.param({"data": base64.b64encode(b"9" * 9_000_000).decode()}, id="nine megabytes"),
        pytest.param({"data": base64.b64encode(b'{"do":NaN}').decode()}, id="no number"),
        pytest.param(
            {"data": base64.b64encode(('{"do":"' + "ä" * 20_000 + '"}').encode()).decode()},
            id="too large when escaped",
        ),
        pytest.param({"data": 5, "attributes": ["x"]}, id="of other types"),
        pytest.param({"attributes": {"attempts": "-1", "group": 5}}, id="strange attributes"),
        pytest.param({"attributes": {"attempts": "9" * 50}}, id="too many attempts"),
    ],
)
def test_what_is_not_ours_is_read_as_something_that_no_stage_can_do(message: Any) -> None:
    """Whatever somebody publishes becomes a small delivery, which a stage dead-letters."""
    delivery = of_push({"message": {"messageId": "7", **message}})

    assert delivery.id == "7"
    assert 1 <= delivery.attempt <= 10**6
    assert len(str(delivery.message.body)) < 3_000
    with pytest.raises(InvalidError):
        read(delivery.message.body)


@pytest.mark.parametrize(
    "body", [{}, [], "text", None, {"message": None}, {"message": {}}, {"message": {"data": ""}}]
)
def test_what_is_no_push_is_refused(body: Any) -> None:
    """A publisher of anything else gets an error that says so."""
    with pytest.raises(InvalidError, match="cannot read a push"):
        of_push(body)


def test_what_is_not_ours_is_given_up_and_can_only_be_dropped(inbox: Make) -> None:
    """Something that was published by hand is shown with its reason, and never replayed."""
    queue = inbox()
    message = {"messageId": "7", "data": base64.b64encode(b"hello").decode()}
    given_up = GivenUp("cannot do 'None': there is no such message")

    assert queue.pushed({"message": message}, lambda _: given_up) == given_up
    [letter] = queue.list()
    assert (letter.message.body, letter.reason) == ({"text": "hello"}, given_up.reason)
    with pytest.raises(InvalidError, match="group"):
        queue.replay(letter.id)
    queue.drop(letter.id)
    assert queue.list() == []


def test_a_message_given_up_twice_is_one_dead_letter(inbox: Make) -> None:
    """Who died before it was acknowledged dead-letters it again: the same letter."""
    queue = inbox()
    for _ in range(2):
        queue.pushed(push(), lambda _: GivenUp("no luck"))

    assert [(each.id, each.reason) for each in queue.list()] == [("7", "no luck")]


# Publishing -------------------------------------------------------------------------------------


def test_publishes_as_many_at_once_as_pub_sub_takes(inbox: Make, services: Counted) -> None:
    """A request has a thousand messages at most, and eight megabytes."""
    queue = inbox()
    queue.publish([Message({"n": n}, "g") for n in range(2_500)])
    assert services.published == [1_000, 1_000, 500]
    assert [n for n, _ in read_pushes(fetch(services))] == list(range(2_500))
    queue.publish([Message({"n": n, "text": "x" * 65_000}, "g") for n in range(200)])

    assert services.published[3:] == [122, 78]
    assert [n for n, _ in read_pushes(fetch(services))] == list(range(200))


def test_a_failure_in_part_is_a_failure(inbox: Make, services: Counted) -> None:
    """Where a later request fails the first messages are out, and the publisher gets the error."""
    services.failing = {2}
    with pytest.raises(UnreachableError):
        inbox().publish([Message({"n": n}, "g") for n in range(1_500)])

    assert [n for n, _ in read_pushes(fetch(services))] == list(range(1_000))


def test_nothing_is_published_of_a_batch_with_a_message_that_cannot_be(
    inbox: Make, services: Counted
) -> None:
    """All are looked at before the first is sent."""
    with pytest.raises(InvalidError):
        inbox().publish([Message({"n": 1}, "g"), Message({"n": 2}, "")])

    assert services.published == []


# Pauses -----------------------------------------------------------------------------------------


def test_a_short_pause_is_waited_out_where_the_message_is(inbox: Make) -> None:
    """One push is two tries, each with its number; nothing rests."""
    queue = inbox(patience=timedelta(seconds=5))
    seen: list[int] = []

    def work(delivery: Delivery) -> Result:
        seen.append(delivery.attempt)
        return Again(timedelta(seconds=0.2), "busy") if len(seen) < 3 else Done()

    began = time.monotonic()
    assert queue.pushed(push(), work) == Done()
    assert time.monotonic() - began >= 0.4
    assert seen == [1, 2, 3]
    assert queue.wake() == 0


def test_a_long_pause_is_rested_in_the_store(
    inbox: Make, services: Counted, clock: FakeClock
) -> None:
    """It is acknowledged, and published with its attempts once its time has come, once."""
    queue = inbox(patience=timedelta(seconds=1))
    again = Again(timedelta(seconds=2), "busy")
    assert queue.pushed(push({"n": 1}, share="east", attempts="1"), lambda _: again) == again

    assert queue.wake() == 0
    clock.advance(timedelta(seconds=1.9))
    assert queue.wake() == 0
    clock.advance(timedelta(seconds=0.1))
    assert queue.wake() == 1
    assert queue.wake() == 0
    [found] = map(of_push, fetch(services))
    assert (found.message, found.attempt) == (Message({"n": 1}, "g", "east"), 3)


def test_nobody_waits_in_a_process_that_is_nearly_full(inbox: Make, clock: FakeClock) -> None:
    """Its places are for those who have work."""
    shares = FairShares(4)
    for number in range(3):
        shares.enter((NAME, f"other {number}"))
    queue = inbox(patience=timedelta(minutes=1), shares=shares)
    began = time.monotonic()
    queue.pushed(push(), lambda _: Again(timedelta(seconds=50), "busy"))

    assert time.monotonic() - began < 25
    clock.advance(timedelta(seconds=50))
    assert queue.wake() == 1


def test_the_last_attempt_ends_in_the_same_push(inbox: Make) -> None:
    """What asks to come again at once is tried so often, and then dead-lettered with its reason."""
    seen: list[int] = []

    def work(delivery: Delivery) -> Result:
        seen.append(delivery.attempt)
        return BUSY

    queue = inbox(patience=timedelta(seconds=5))
    assert queue.pushed(push(), work) == GivenUp("busy")
    assert seen == [1, 2, 3]
    assert [(each.attempts, each.reason) for each in queue.list()] == [(3, "busy")]


def test_what_cannot_be_written_down_is_not_acknowledged(inbox: Make) -> None:
    """Where the store does not take it Pub/Sub is to push it again; what is done needs none."""

    class Deleted:
        def put(self, *_: Any, **__: Any) -> Any:
            raise UnreachableError("cannot write: Google does not answer")

    queue = inbox(store=Deleted())
    assert queue.pushed(push(), lambda _: Done()) == Done()
    for result in (BUSY, GivenUp("no luck")):
        with pytest.raises(UnreachableError):
            queue.pushed(push(), lambda _, result=result: result)


def test_two_ticks_at_once_publish_twice_at_worst(inbox: Make, services: Counted) -> None:
    """What rested comes, and nothing rests any more."""
    queue = inbox()
    for number in range(20):
        queue.pushed(push({"n": number}, number=str(number)), lambda _: BUSY)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: inbox().wake(), range(2)))

    found = read_pushes(fetch(services))
    assert set(found) == {(n, 2) for n in range(20)}
    assert len(found) <= 40
    assert queue.wake() == 0


def test_one_inbox_that_fails_keeps_no_other_from_its_tick(
    inbox: Make, services: Counted, store: SqliteStore, clock: FakeClock
) -> None:
    """All are looked at; then the tick fails, since one has."""
    lost = PubsubQueue(services, "not-there", store=store, clock=clock)
    queue = inbox()
    queue.pushed(push(), lambda _: BUSY)
    with pytest.raises(TemporaryError, match="not-there"):
        wake([lost, queue])

    assert read_pushes(fetch(services)) == [(1, 2)]


def test_inboxes_take_turns_and_a_tick_ends_in_time() -> None:
    """One with more than a tick can do keeps none waiting, nor does one whose record is broken."""

    class Full:
        def turns(self) -> Iterator[int]:
            while True:
                time.sleep(0.001)
                yield 100

    class Broken:
        def turns(self) -> Iterator[int]:
            raise KeyError("body")
            yield 0

    class Quiet:
        def __init__(self) -> None:
            self.woken = 0

        def turns(self) -> Iterator[int]:
            self.woken += 1
            yield 1

    quiet: Any = Quiet()
    full: Any = Full()
    broken: Any = Broken()
    assert wake([full, quiet], seconds=PATIENCE / 100) > 1
    assert quiet.woken == 1
    with pytest.raises(KeyError):
        wake([full, broken, quiet], seconds=PATIENCE / 100)
    assert quiet.woken == 2


def test_killed_anywhere_a_message_comes_again(
    services: Counted, store: SqliteStore, clock: FakeClock, inbox: Make
) -> None:
    """Whichever call a function or a tick dies at, the message is done in the end."""
    fate = Fate()
    mortal = PubsubQueue(
        Mortal("services", services, fate),
        NAME,
        store=Mortal("store", store, fate),
        clock=clock,
    )
    mortal.patience = NOW
    steps = 1
    while _dies(services, mortal, inbox(), fate, steps):
        steps += 1

    assert steps > 5
    assert inbox().list() == []
    assert inbox().wake() == 0


def _dies(
    services: Counted, mortal: PubsubQueue, spared: PubsubQueue, fate: Fate, steps: int
) -> bool:
    """Have a message that fails once done, by a process that dies at a step and one that goes on.

    Say if the first one has died.
    """
    died, tried, done = False, [], []

    def work(delivery: Delivery) -> Result:
        (done if tried else tried).append(delivery.attempt)
        return Done() if done else BUSY

    spared.publish([Message({"n": 1}, "g")])
    unanswered = fetch(services)
    fate.doom(steps)
    try:
        while unanswered:
            mortal.pushed(unanswered[0], work)
            del unanswered[0]
            mortal.wake()
            unanswered += fetch(services)
    except Killed:
        died = True
    fate.revive()
    while unanswered or spared.wake() or (unanswered := fetch(services)):
        for each in unanswered:
            spared.pushed(each, work)
        unanswered = fetch(services)

    assert done
    return died


# Shares -----------------------------------------------------------------------------------------


def flood(queue: PubsubQueue, services: Counted, *, patience: float) -> list[str]:
    """Have eight threads serve 40 messages that hang, and one behind them; say whose ended when."""
    ended: list[str] = []
    came = threading.Event()

    def work(delivery: Delivery) -> Result:
        share = delivery.message.share
        if share == "other":
            came.set()
        came.wait(patience)
        ended.append(share)
        return Done()

    queue.publish([Message({"n": number}, "g", "flood") for number in range(40)])
    queue.publish([Message({"n": -1}, "g", "other")])
    with ThreadPoolExecutor(8) as pool:
        while pushes := sorted(fetch(services), key=lambda each: int(each["message"]["messageId"])):
            list(pool.map(lambda each: queue.pushed(each, work), pushes))
    return ended


def test_one_sender_s_flood_holds_up_no_other(inbox: Make, services: Counted) -> None:
    """While all messages of a flood that are in flight hang, others are served; then the rest."""
    ended = flood(inbox(shares=FairShares(8)), services, patience=PATIENCE)

    assert ended.index("other") <= 6
    assert ended.count("flood") >= 40
    assert inbox().wake() == 0


def test_without_fair_shares_a_flood_is_waited_for(inbox: Make, services: Counted) -> None:
    """The measure of the test above."""
    ended = flood(inbox(), services, patience=0.05)

    assert ended.index("other") > 30


def test_a_line_whose_callers_died_is_called_by_the_tick(
    inbox: Make, services: Counted, clock: FakeClock
) -> None:
    """Who stands at the head of a line for a minute is called, with the duty to call on."""
    shares = FairShares(4)
    for _ in range(3):
        shares.enter((NAME, "flood"))
    queue = inbox(shares=shares)
    for number in range(6):
        queue.pushed(push({"n": number}, number=str(number), share="flood"), never)
    assert queue.wake() == 0
    clock.advance(timedelta(seconds=61))
    assert queue.wake() == 4
    called = fetch(services)
    assert read_pushes(called) == [(0, 1), (1, 1), (2, 1), (3, 1)]

    # In another process, which knows of no line, each calls the next.
    other = inbox(shares=FairShares(4))
    for each in called:
        other.pushed(each, lambda _: Done())
    assert read_pushes(fetch(services)) == [(4, 1), (5, 1)]
    assert queue.wake() == 0


def test_each_line_is_called_by_itself(inbox: Make, services: Counted, clock: FakeClock) -> None:
    """A tick calls the first ones of every line that stands, of none that was just begun."""
    shares = FairShares(4)
    queue = inbox(shares=shares)
    for number, share in enumerate(("flood", "tide", "late")):
        for _ in range(3):
            shares.enter((NAME, share))
        if share == "late":
            clock.advance(timedelta(seconds=61))
        queue.pushed(push({"n": number}, number=str(number), share=share), never)

    assert queue.wake() == 2
    assert read_pushes(fetch(services)) == [(0, 1), (1, 1)]


def test_who_ends_calls_two_where_there_are_places_and_one_where_there_are_not(
    inbox: Make, services: Counted
) -> None:
    """A line grows shorter as fast as processes have places."""
    full, empty = FairShares(4), FairShares(4)
    for _ in range(3):
        full.enter((NAME, "flood"))
    for number in range(8):
        inbox(shares=full).pushed(push(number=str(number), share="flood"), never)
    for shares, called in ((empty, 2), (full, 1)):
        for _ in range(3 if shares is full else 0):
            shares.leave((NAME, "flood"))
            shares.enter((NAME, f"other {shares}"))
        inbox(shares=shares).pushed(push(share="flood", calls="1"), lambda _: Done())
        assert len(fetch(services)) == called


def test_one_that_was_called_and_not_published_is_called_again(
    inbox: Make, services: Counted, clock: FakeClock
) -> None:
    """Who dies while he calls the next keeps others from it for a minute, and no longer."""
    shares = FairShares(4)
    for _ in range(3):
        shares.enter((NAME, "flood"))
    inbox(shares=shares).pushed(push({"n": 1}, share="flood"), never)
    services.failing = {1}
    for _ in range(2):
        inbox(shares=FairShares(4)).pushed(push(share="flood", calls="1"), lambda _: Done())
    assert services.published == [1]
    assert fetch(services) == []
    clock.advance(timedelta(seconds=59))
    assert inbox().wake() == 0
    clock.advance(timedelta(seconds=2))

    assert inbox().wake() == 1
    assert read_pushes(fetch(services)) == [(1, 1)]


def test_many_who_call_at_once_call_each_one_once(inbox: Make, services: Counted) -> None:
    """A line that several processes call is called without repeats."""
    shares = FairShares(4)
    for _ in range(3):
        shares.enter((NAME, "flood"))
    for number in range(24):
        inbox(shares=shares).pushed(push({"n": number}, number=str(number), share="flood"), never)

    def call(number: int) -> None:
        body = push({"n": -1}, number=f"x{number}", share="flood", calls="1")
        inbox(shares=FairShares(4)).pushed(body, lambda _: Done())

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(call, range(40)))

    assert read_pushes(fetch(services)) == [(n, 1) for n in range(24)]


def test_a_dead_letter_or_a_retry_calls_the_next_as_well(inbox: Make, services: Counted) -> None:
    """A line goes on whatever came of one of it."""
    for result in (BUSY, GivenUp("no luck")):
        shares = FairShares(4)
        queue = inbox(shares=shares)
        others = [(NAME, "flood")] * 2
        for key in others:
            shares.enter(key)

        def work(_: Delivery, queue: PubsubQueue = queue, result: Result = result) -> Result:
            queue.pushed(push({"n": 2}, number="2", share="flood"), never)
            return result

        queue.pushed(push({"n": 1}, number="1", share="flood"), work)
        assert read_pushes(fetch(services)) == [(2, 1)]


def test_one_that_lines_up_after_all_have_ended_is_called_at_once(
    inbox: Make, services: Counted, store: SqliteStore
) -> None:
    """The last caller may end while somebody lines up behind it."""
    shares = FairShares(4)
    for _ in range(3):
        shares.enter((NAME, "flood"))

    class Leaving:
        """A store in which a write takes so long that all others have ended by then."""

        def put(self, *args: Any, **more: Any) -> Any:
            for _ in range(3):
                shares.leave((NAME, "flood"))
            return store.put(*args, **more)

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

    inbox(shares=shares, store=Leaving()).pushed(push(share="flood"), never)

    assert read_pushes(fetch(services)) == [(1, 1)]


# What the emulator pushes -----------------------------------------------------------------------


def pushing(services: Counted, endpoint: Endpoint, *, deadline: int = 10) -> None:
    """Have the inbox's messages pushed, from now on."""
    at = f"projects/{services.project}"
    name = f"{at}/subscriptions/{NAME}"
    services.call("subscriber", "delete_subscription", {"subscription": name}, doing="test")
    services.call(
        "subscriber",
        "create_subscription",
        {
            "name": name,
            "topic": f"{at}/topics/{NAME}",
            "push_config": {"push_endpoint": endpoint.url},
            "ack_deadline_seconds": deadline,
            "dead_letter_policy": {
                "dead_letter_topic": f"{at}/topics/{NAME}{DEAD}",
                "max_delivery_attempts": 5,
            },
        },
        doing="test",
    )


def test_a_push_is_worked_on_and_does_not_come_again(inbox: Make, services: Counted) -> None:
    """What Pub/Sub pushes is the delivery that was published, and 204 is its end."""
    seen: list[Delivery] = []
    queue = inbox()

    def answer(body: dict[str, Any]) -> int:
        queue.pushed(body, lambda delivery: seen.append(delivery) or Done())  # type: ignore[func-returns-value]
        return 204

    with Endpoint(answer) as endpoint:
        pushing(services, endpoint)
        queue.publish([Message({"n": 1}, "one object", "ns/east")])
        assert eventually("the push is worked on", lambda: bool(seen))
        time.sleep(1.5)

    assert [each.message for each in seen] == [Message({"n": 1}, "one object", "ns/east")]


def test_what_nobody_answers_for_is_buried_by_pub_sub_and_found(
    inbox: Make, services: Counted
) -> None:
    """Each refusal is a push more; in the end there is a letter, with a count and a reason.

    It takes seconds: Pub/Sub pushes five times, with its own pauses.
    """
    pushes: list[float] = []

    def answer(_: dict[str, Any]) -> int:
        pushes.append(time.monotonic())
        return 503

    queue = inbox()
    with Endpoint(answer) as endpoint:
        pushing(services, endpoint)
        queue.publish([Message({"n": 1}, "g", "ns/east")])
        assert eventually("it is a dead letter", lambda: bool(queue.wake() or queue.list()))

    [letter] = queue.list()
    assert len(pushes) == 5
    assert letter.message == Message({"n": 1}, "g", "ns/east")
    assert letter.attempts == 5
    assert "no answer" in letter.reason
    queue.replay(letter.id)
    assert queue.list() == []


def test_who_is_too_slow_meets_another(inbox: Make, services: Counted) -> None:
    """A push that is not answered in time comes again while the first is still at work."""
    at_work, most = 0, 0
    lock = threading.Lock()
    over = threading.Event()

    def answer(_: dict[str, Any]) -> int:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        over.wait(PATIENCE)
        with lock:
            at_work -= 1
        return 204

    with Endpoint(answer) as endpoint:
        pushing(services, endpoint, deadline=1)
        inbox().publish([Message({"n": 1}, "g")])
        overlapped = eventually("two work on it", lambda: most >= 2)
        over.set()

    assert overlapped


def answers(services: Counted) -> bool:
    """Say whether Pub/Sub has an answer of its own, be it that there is no such topic."""
    topic = f"projects/{services.project}/topics/{NAME}"
    try:
        services.call("publisher", "get_topic", {"topic": topic}, doing="test")
    except TemporaryError as error:
        return not isinstance(error, UnreachableError)
    return True


@pytest.mark.rest
def test_an_emulator_that_went_away_comes_back_empty(
    tmp_path: Path, google_project: str, store: SqliteStore, clock: FakeClock
) -> None:
    """While it is away, and while its topics are not there, errors may pass; then it goes on.

    It takes seconds: an emulator boots twice.
    """
    with Emulator(PUBSUB, tmp_path) as emulator:
        services = Counted(google_project, emulator.address)
        make(services, NAME)
        queue = PubsubQueue(services, NAME, store=store, clock=clock)
        queue.patience = NOW
        queue.pushed(push(), lambda _: BUSY)
        emulator.stop()
        began = time.monotonic()
        for act in (lambda: queue.publish([Message({"n": 2}, "g")]), queue.wake):
            with pytest.raises(UnreachableError):
                act()
        assert time.monotonic() - began < 45
        # Without Pub/Sub a message can be worked on, and what comes of it is kept.
        assert queue.pushed(push(number="8"), lambda _: GivenUp("no luck")) == GivenUp("no luck")
        emulator.start()
        # gRPC answers with its last refusal until it connects again.
        assert eventually("the emulator answers", lambda: answers(services))
        with pytest.raises(TemporaryError, match="apply Terraform again"):
            queue.publish([Message({"n": 2}, "g")])
        make(services, NAME)
        queue.publish([Message({"n": 2}, "g")])

        assert queue.wake() == 1
        assert read_pushes(fetch(services)) == [(1, 2), (2, 1)]
        assert [each.reason for each in queue.list()] == ["no luck"]
        services.close()


# Dead letters -----------------------------------------------------------------------------------


def test_takes_over_what_lies_on_the_dead_topic(inbox: Make, services: Counted) -> None:
    """A tick does, too; what was sent there by hand is a letter like any other."""
    topic = f"projects/{services.project}/topics/{NAME}{DEAD}"
    count = {"CloudPubSubDeadLetterSourceDeliveryCount": "24", "attempts": "1", "group": "g"}
    messages = [{"data": b'{"n":1}', "attributes": count}, {"attributes": {"x": "y"}}]
    services.call("publisher", "publish", {"topic": topic, "messages": messages}, doing="test")
    queue = inbox()

    assert queue.wake() == 2
    assert services.acknowledged == 2
    first, second = sorted(queue.list(), key=lambda each: int(each.id))
    assert (first.message, first.attempts) == (Message({"n": 1}, "g"), 25)
    assert (second.message.body, second.attempts) == ({"text": ""}, 1)
    assert queue.wake() == 0


@pytest.mark.parametrize("known", ["", "x" * 2_000, "\ud800", "a/b", "..", "__x__"])
def test_what_was_typed_wrong_is_missing(inbox: Make, known: str) -> None:
    """An id that no store would take names no dead letter."""
    for act in (inbox().replay, inbox().drop):
        with pytest.raises(MissingError):
            act(known)


# Watching ---------------------------------------------------------------------------------------


@pytest.fixture
def monitoring() -> Iterator[Monitoring]:
    with Monitoring() as server:
        yield server


@pytest.fixture
def watched(monitoring: Monitoring, store: SqliteStore, clock: FakeClock) -> PubsubQueue:
    services = Services("p-one", emulators={"MONITORING_EMULATOR_HOST": monitoring.address})
    return PubsubQueue(services, NAME, store=store, clock=clock)


def test_counts_what_was_measured_last(watched: PubsubQueue, monitoring: Monitoring) -> None:
    """What is in flight is taken off what is not done; the oldest says since when it waits."""
    for minutes, undone in ((3, 90), (2, 12), (20, 5_000)):
        monitoring.report(
            NAME, "num_undelivered_messages", undone, at=START - timedelta(minutes=minutes)
        )
    monitoring.report("another", "num_undelivered_messages", 7, at=START)
    monitoring.report(NAME, "num_outstanding_messages", 4, at=START)
    monitoring.report(NAME, "oldest_unacked_message_age", 95, at=START)

    assert watched.backlog() == Backlog(8, 4, START - timedelta(seconds=95))


def test_nothing_waits_where_nothing_was_measured(
    watched: PubsubQueue, monitoring: Monitoring
) -> None:
    """A subscription that was just made has no measurements; more in flight than undone is late."""
    assert watched.backlog() == Backlog(0, 0, None)
    monitoring.report(NAME, "num_outstanding_messages", 4, at=START)
    monitoring.report(NAME, "num_undelivered_messages", 3, at=START)

    assert watched.backlog() == Backlog(0, 3, None)


def test_a_caller_without_the_right_to_look_gets_an_error(
    watched: PubsubQueue, monitoring: Monitoring
) -> None:
    """No answer is never an empty one."""
    monitoring.refuse(403)

    with pytest.raises(BellhopError, match="how much waits in the queue 'bellhop-inbox'"):
        watched.backlog()
