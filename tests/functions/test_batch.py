"""Functions that SQS feeds: partial failures, poison, pauses, and time that runs out."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from bellhop.errors import PermanentError, TemporaryError
from bellhop.ports.queue import Message
from bellhop.runtime.aws.batch import Batch
from bellhop.state.event_log import Entry
from bellhop.state.messages import Evaluate, Resolve
from bellhop.state.retries import FEW
from tests.functions.lab import TIMEOUT, Account, Context, Lambda
from tests.lab.moto import Moto
from tests.waiting import eventually

INBOX = "deploy"


class KilledError(BaseException):
    """The process is dead: nobody catches it, and Lambda learns nothing."""


class Stage:
    """Does what the name of a profile asks for, and counts how often."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def handle(self, message: Resolve) -> None:
        self.seen.append(message.profile)
        match message.profile.partition("-")[0]:
            case "permanent":
                raise PermanentError("it is recorded")
            case "busy":
                raise TemporaryError("it may pass", delay=timedelta(seconds=5))
            case "poison":
                raise ValueError(message.profile)
            case "killer":
                raise KilledError


class Stand:
    """One inbox, and a function that works on it."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.here = account.open()
        self.stage = Stage()
        self.functions = Lambda(account)
        self.handler = Batch(lambda _: self.stage, lambda: self.here)

    def publish(self, *profiles: str) -> None:
        self.here.publisher.publish(Resolve(each) for each in profiles)

    def feed(self, **context: Any) -> int:
        """Hand over a batch; return how many of it failed, none if the answer names none."""
        try:
            return len(self.functions.feed(INBOX, self.handler, Context(**context)))
        except KilledError:
            return 0

    def feed_until(self, done: Any, *, passing: bool = False) -> None:
        def step() -> object:
            found = done()
            if not found:
                self.feed()
                if passing:
                    self.account.moto.pass_visibility(0)
            return found

        eventually("it is fed", step, patience=60, pause=0.05)

    def receive_throttled(self) -> None:
        """Receive a batch as Lambda does, and keep it unserved until its visibility ends."""
        assert self.here.queues[INBOX].receive(10, wait=timedelta(0))
        self.account.moto.pass_visibility(0)

    def dead(self) -> list[tuple[str, int, str]]:
        found = self.here.queues[INBOX].list()
        return [(each.message.body["profile"], each.attempts, each.reason) for each in found]


@pytest.fixture
def stand(account: Account) -> Stand:
    return Stand(account)


def test_only_what_failed_comes_again(stand: Stand) -> None:
    """What is done, and what failed for good, is deleted; the rest is published again."""
    stand.publish("one", "permanent", "busy", "two")

    assert stand.feed() == 0
    assert sorted(stand.stage.seen) == ["busy", "one", "permanent", "two"]
    stand.account.moto.pass_visibility(0)
    # It is hidden by its pause of five seconds, and by no visibility.
    assert stand.feed() == 0
    assert len(stand.stage.seen) == 4
    assert stand.dead() == []


def test_poison_ends_as_a_dead_letter_with_its_reason(stand: Stand) -> None:
    """After as many attempts as there may be; what came with it is done once."""
    stand.publish("one", "poison", "two")
    stand.feed_until(stand.dead)

    assert Counter(stand.stage.seen) == {"one": 1, "two": 1, "poison": 3}
    assert stand.dead() == [("poison", 3, "an unforeseen failure, which the log has: poison")]
    assert [each["inbox"] for each in stand.account.lines() if "dead letters" in each["message"]]


def test_an_unreadable_message_is_dead_lettered_at_once(stand: Stand) -> None:
    """It is a dead letter after one attempt, and the rest of the batch is done."""
    stand.here.queues[INBOX].publish([Message({"do": "dance", "profile": "x"}, "g")])
    stand.publish("one")

    assert stand.feed() == 0
    assert stand.stage.seen == ["one"]
    assert [(profile, attempts) for profile, attempts, _ in stand.dead()] == [("x", 1)]


def test_a_handler_out_of_time_gives_back_the_rest_at_once(stand: Stand) -> None:
    """It begins nothing that it may not end; another takes what is left, without waiting."""
    stand.publish(*(f"p{number}" for number in range(6)))
    given = stand.feed(seconds=TIMEOUT, each=TIMEOUT / 6)

    assert 0 < len(stand.stage.seen) < 6
    assert given == 6 - len(stand.stage.seen)
    assert stand.feed() == 0
    assert Counter(stand.stage.seen) == Counter(f"p{number}" for number in range(6))


def test_no_message_dies_of_being_given_back(stand: Stand) -> None:
    """Who was never worked on is no dead letter, however often time ran out; attempts are three."""
    stand.publish("one")
    for _ in range(4):
        assert stand.feed(seconds=TIMEOUT, each=TIMEOUT) == 1

    assert stand.feed() == 0
    assert stand.stage.seen == ["one"]
    assert stand.dead() == []


def test_who_waits_for_its_group_dies_of_no_count(stand: Stand) -> None:
    """One that came twice in vain already waits for one of its group, and its last try is left."""
    queue = stand.here.queues[INBOX]
    one, poison = (Message(Resolve(name).message().body, "one group") for name in ("one", "poison"))
    queue.publish([one])
    for _ in range(2):
        queue.give_back(queue.receive(1, wait=timedelta(0)))
    queue.publish([poison])

    assert stand.feed() == 1
    assert stand.stage.seen == ["poison"]
    stand.feed_until(stand.dead)
    assert [profile for profile, _, _ in stand.dead()] == ["poison"]
    assert "one" in stand.stage.seen


def test_one_that_kills_its_function_becomes_a_dead_letter(stand: Stand) -> None:
    """All of a batch comes again, and what is done leaves it: only the killer is a dead letter."""
    stand.publish("killer", "one", "two")
    stand.feed_until(stand.dead, passing=True)

    assert Counter(stand.stage.seen).keys() == {"killer", "one", "two"}
    assert stand.stage.seen.count("killer") == FEW + 3
    assert stand.dead() == [
        ("killer", 1, "3 workers began it and fell silent: killed, or out of time")
    ]
    assert stand.here.records.retries.oldest() is None


def test_no_message_dies_of_throttled_receives(stand: Stand) -> None:
    """Lambda receives it again and again without a free instance: then it is worked on, once."""
    stand.publish("one")
    for _ in range(30):
        stand.receive_throttled()

    assert stand.feed() == 0
    assert stand.stage.seen == ["one"]
    assert stand.dead() == []
    assert stand.here.records.retries.oldest() is None


def test_a_message_may_fail_after_throttled_receives_as_often_as_any(stand: Stand) -> None:
    """Receives that nobody worked on use up none of its attempts."""
    stand.publish("poison")
    for _ in range(8):
        stand.receive_throttled()
    stand.feed_until(stand.dead)

    assert stand.stage.seen == ["poison"] * 3
    assert stand.dead() == [("poison", 3, "an unforeseen failure, which the log has: poison")]


def test_what_cannot_be_opened_fails_as_a_whole(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    """No message is lost to a key that cannot be read, and the error is logged once."""

    def opening() -> Any:
        raise TemporaryError("cannot read the sealing key")

    stand.publish("one", "two")
    failed = stand.functions.feed(INBOX, Batch(lambda _: stand.stage, opening))

    assert len(failed) == 2
    assert caplog.messages == ["Cannot open the installation"]


def test_lines_of_the_event_log_are_written_before_the_function_ends(
    stand: Stand, account: Account
) -> None:
    """Nobody runs between two events: what was noted is in the store when the answer is given."""

    class Noting:
        def handle(self, message: Resolve) -> None:
            del message
            stand.here.records.ledger.note(
                Entry(stand.here.records.clock.now(), "t", "rang", "fleet/east", "v1/Service/a/b")
            )

    stand.publish("one")
    stand.functions.feed(INBOX, Batch(lambda _: Noting(), lambda: stand.here))
    hour = stand.here.records.clock.now().isoformat()[:13]

    found = list(account.open().records.ledger.of("fleet/east", hour))
    assert [entry.what for _, entry in found] == ["rang"]


def test_inboxes_of_one_function_are_distinguished(stand: Stand) -> None:
    """A message goes back to the queue from which it came."""
    seen: list[str] = []

    class Busy:
        def handle(self, message: Evaluate) -> None:
            seen.append(message.inbox)
            raise TemporaryError("it may pass", delay=timedelta(0))

    handler = Batch(lambda _: Busy(), lambda: stand.here)
    stand.here.publisher.publish([Evaluate("fleet/east", "v1/Service/a/b", event_at="2026")])
    stand.here.publisher.publish([Evaluate("fleet/east", "v1/Service/a/b")])
    for inbox in ("evaluate", "review", "evaluate"):
        assert stand.functions.feed(inbox, handler) == []

    assert seen == ["evaluate", "review", "evaluate"]


def test_a_message_that_goes_on_failing_is_recorded_until_it_ends(moto: Moto) -> None:
    """SQS shows its age no more after three receives: the schedule reads the record instead."""
    account = Account(moto, attempts=6, retry_first=0.1, retry_longest=0.1)
    stand = Stand(account)
    began: list[Any] = []

    def oldest() -> Any:
        return stand.here.records.retries.oldest()

    stand.publish("poison")
    stand.feed_until(lambda: began.append(oldest()) or began[-1])
    stand.feed_until(stand.dead)

    assert stand.stage.seen == ["poison"] * 6
    assert oldest() is None
    account.close()
