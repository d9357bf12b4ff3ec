"""Functions that Pub/Sub pushes to: what is acknowledged, what comes again, many at once."""

from __future__ import annotations

import base64
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from cloudevents.http import CloudEvent
from werkzeug.exceptions import BadRequest, ServiceUnavailable

from bellhop.errors import PermanentError, TemporaryError
from bellhop.runtime.gcp.push import Push
from bellhop.runtime.gcp.resources import Resources
from bellhop.state.event_log import Entry
from bellhop.state.messages import Resolve
from tests.functions.gcp_lab import Project
from tests.lab.google_front import Front
from tests.waiting import eventually

INBOX = "deploy"
AT_ONCE = 4


class Stage:
    """Does what the name of a profile asks for, and keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.together = threading.Barrier(AT_ONCE)

    def handle(self, message: Resolve) -> None:
        self.seen.append(message.profile)
        match message.profile.partition("-")[0]:
            case "permanent":
                raise PermanentError("it is recorded")
            case "busy":
                raise TemporaryError("it may pass", delay=timedelta(minutes=5))
            case "poison":
                raise ValueError(message.profile)
            case "together":
                self.together.wait(60)


class Stand:
    """One inbox, and a function that works on it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.here: Resources = project.open()
        self.stage = Stage()
        self.opened = 0
        self.push = Push(lambda _: self.stage, self._open)

    def _open(self) -> Resources:
        self.opened += 1
        return self.here

    def event(self, profile: str, *, topic: str = "", **changes: Any) -> CloudEvent:
        """Return what functions-framework makes of a push."""
        source = topic or f"projects/{self.project.name}/topics/{self.project.topics[INBOX]}"
        message = Resolve(profile).message()
        data = {
            "message": {
                "messageId": profile,
                "attributes": {"group": message.group, "share": profile},
                "data": base64.b64encode(json.dumps(dict(message.body)).encode()).decode(),
                **changes,
            }
        }
        kind = "google.cloud.pubsub.topic.v1.messagePublished"
        return CloudEvent({"type": kind, "source": f"//pubsub.googleapis.com/{source}"}, data)

    def dead(self) -> list[tuple[str, int]]:
        found = self.here.queues[INBOX].list()
        return [(each.reason, each.attempts) for each in found]


@pytest.fixture
def stand(project: Project) -> Stand:
    project.environment["THREADS"] = "16"
    project.environment["BELLHOP_ATTEMPTS"] = "2"
    project.environment["BELLHOP_RETRY_FIRST"] = "0.01"
    return Stand(project)


def test_what_is_done_or_failed_for_good_is_acknowledged(stand: Stand) -> None:
    """No sender learns of it again."""
    for each in ("one", "permanent"):
        stand.push(stand.event(each))

    assert stand.stage.seen == ["one", "permanent"]
    assert stand.dead() == []


def test_poison_ends_as_a_dead_letter_with_its_reason(stand: Stand) -> None:
    """After as many attempts as there may be; the alarm looks for the line."""
    stand.push(stand.event("poison"))

    assert stand.stage.seen == ["poison", "poison"]
    assert stand.dead() == [("an unforeseen failure, which the log has: poison", 2)]
    said = stand.project.lines()
    [line] = [each for each in said if each["message"] == "Moved a message to the dead letters"]
    assert (line["severity"], line["inbox"]) == ("WARNING", INBOX)


def test_an_unreadable_message_is_dead_lettered_at_once(stand: Stand) -> None:
    """Also one without data or attributes, which Pub/Sub leaves out where they are empty."""
    stand.push(stand.event("x", data=base64.b64encode(b'{"do": "dance"}').decode()))
    empty = stand.event("y")
    empty.data["message"] = {"messageId": "y"}
    stand.push(empty)

    assert stand.stage.seen == []
    assert [attempts for _, attempts in stand.dead()] == [1, 1]


def test_one_that_waits_is_acknowledged_and_comes_by_a_tick(stand: Stand) -> None:
    """A pause of minutes is kept in the store, and nobody holds a place meanwhile."""
    stand.push(stand.event("busy"))

    assert stand.stage.seen == ["busy"]
    assert stand.dead() == []


def test_what_cannot_be_written_down_comes_again(stand: Stand, front: Front) -> None:
    """A dead letter that the store does not take: its message is pushed again."""
    there = dict(stand.project.emulators) | {"FIRESTORE_EMULATOR_HOST": front.address}
    stand.here = stand.project.open(there)
    stand.push(stand.event("one"))
    front.fail("Commit", "PERMISSION_DENIED", times=20)

    with pytest.raises(ServiceUnavailable):
        stand.push(stand.event("poison"))


@pytest.mark.parametrize(
    ("topic", "changes", "expected"),
    [
        pytest.param("projects/p/topics/another", {}, BadRequest, id="another topic"),
        pytest.param("", {"messageId": ""}, BadRequest, id="no message of Pub/Sub's"),
    ],
)
def test_what_is_no_push_is_refused(
    stand: Stand,
    topic: str,
    changes: dict[str, Any],
    expected: type[Exception],
) -> None:
    """It is not acknowledged: Pub/Sub dead-letters it some time, and an error says why."""
    with pytest.raises(expected):
        stand.push(stand.event("one", topic=topic, **changes))

    assert stand.stage.seen == []
    assert stand.project.lines()[-1]["severity"] == "ERROR"


def test_what_cannot_be_opened_comes_again(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    """No message is lost to a key that cannot be read, and the next one tries again."""
    broken = [TemporaryError("cannot read the sealing key"), KeyError("a variable")]

    def opening() -> Resources:
        if broken:
            raise broken.pop()
        return stand.here

    push = Push(lambda _: stand.stage, opening)
    for _ in range(2):
        with pytest.raises(ServiceUnavailable):
            push(stand.event("one"))
    push(stand.event("one"))

    assert stand.stage.seen == ["one"]
    assert [each.levelname for each in caplog.records] == ["ERROR", "WARNING"]


def test_threads_share_one_installation_and_work_at_once(stand: Stand) -> None:
    """The first messages of a process come at the same time: it is opened once."""
    names = [f"together-{number}" for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda name: stand.push(stand.event(name)), names))

    assert sorted(stand.stage.seen) == names
    assert stand.opened == 1


def test_who_waits_for_what_cannot_be_opened_fails_with_it(stand: Stand) -> None:
    """A key that cannot be read is asked for once, not by one thread after the other."""
    opened: list[int] = []
    asking: list[int] = []

    def opening() -> Resources:
        opened.append(1)
        eventually("all ask", lambda: len(asking) == AT_ONCE)
        time.sleep(0.5)
        raise TemporaryError("cannot read the sealing key")

    push = Push(lambda _: stand.stage, opening)

    def refused(number: int) -> bool:
        asking.append(number)
        with pytest.raises(ServiceUnavailable):
            push(stand.event("one"))
        return True

    with ThreadPoolExecutor(AT_ONCE) as threads:
        assert all(threads.map(refused, range(AT_ONCE)))
    assert len(opened) == 1


def test_lines_of_the_event_log_are_written_before_the_push_is_answered(stand: Stand) -> None:
    """Nobody runs between two pushes: what was noted is in the store by then."""
    clock = stand.project.open().records.clock
    logged = stand.project.open(logs=True)

    class Noting:
        def handle(self, message: Resolve) -> None:
            del message
            logged.records.ledger.note(
                Entry(clock.now(), "t", "rang", "fleet/east", "v1/Service/a/b")
            )

    hour = clock.now().isoformat()[:13]
    Push(lambda _: Noting(), lambda: logged)(stand.event("one"))

    found = list(stand.here.records.ledger.of("fleet/east", hour))
    assert [entry.what for _, entry in found] == ["rang"]
