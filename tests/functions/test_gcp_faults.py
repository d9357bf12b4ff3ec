"""What may go wrong on Google ends as docs/explanation/delivery.md promises: once, if late."""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.ports.queue import Again, Delivery, Message
from bellhop.state.deployment import Inventory
from bellhop.state.envelope import Envelope
from bellhop.state.messages import INBOXES, Apply, Evaluate, Instantiate, Resync
from tests.cli.conftest import on_gcp
from tests.functions.gcp_lab import Flow, Stand, balanced
from tests.functions.writes import Deaths, Halt, Happens
from tests.lab.frameworks import Answer
from tests.lab.google import Emulator
from tests.scenarios import ADDRESSES, TWIN, WEB
from tests.waiting import eventually

SOURCE, DESTINATION = "fleet/source", "fleet/destination"
MANY = 8
"""Objects of a burst."""

KEPT_OPEN = 3
"""Seconds after which gunicorn has closed a connection over which nothing was asked."""

pytestmark = pytest.mark.thorough

ANY = b""
LEASE = b"inventory/"
"""In the write by which deploy takes its lease, when the profile is re-created and published."""

EVALUATE = Evaluate(SOURCE, str(WEB), event_at="2026-11-20T08:00:00+00:00")


@pytest.fixture
def flow(flow: Flow) -> Flow:
    """An installation with an example of the docs."""
    flow.declare("service-discovery")
    return flow


def push(stand: Stand, message: Envelope, number: str = "1") -> Answer:
    """Push a message as Pub/Sub does, and return its function's answer."""
    about = message.message()
    body = {
        "subscription": "projects/p/subscriptions/s",
        "message": {
            "messageId": number,
            "publishTime": "2026-11-20T08:00:00Z",
            "attributes": {"group": about.group, "share": about.share},
            "data": base64.b64encode(json.dumps(dict(about.body)).encode()).decode(),
        },
    }
    path = f"/projects/p/topics/{stand.project.topics[message.inbox]}"
    function = stand.functions[INBOXES[message.inbox]]
    sent = json.dumps(body).encode()
    return function.ask("POST", path, sent, {"Content-Type": "application/json"})


def marks(flow: Flow) -> list[tuple[str, str]]:
    """Return the uid of the deployed object, and its last change."""
    found = [flow.destination.get(key) or {"metadata": {}} for key in (TWIN, ADDRESSES)]
    return [(each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in found]


@contextmanager
def dying(flow: Flow, *stages: str) -> Iterator[dict[str, Deaths]]:
    """Have processes of some stages die at their writes."""
    deaths = {stage: Deaths() for stage in stages}
    with ExitStack() as end:
        for stage, died in deaths.items():
            end.enter_context(flow.writes.seen(flow.stand.functions[stage], died))
        yield deaths


def until_taken(flow: Flow, stored: Any) -> None:
    """Send the event until it is taken, as a forwarder does."""
    until_answered(lambda: flow.ring(stored))


def until_answered(ask: Callable[[], Answer]) -> None:
    """Ask until it is done; one that dies answers nothing."""

    def answered() -> bool:
        with suppress(OSError, HTTPException):
            return ask().status == 200
        return False

    eventually("it is answered", answered, patience=60, pause=0.2)


def lives(flow: Flow) -> list[str]:
    """Return the uid of the deployed object."""
    return [uid for uid, _ in marks(flow)]


def inventories(flow: Flow) -> list[Inventory]:
    """Return the objects in the destination cluster."""
    return list(flow.stand.project.open().records.inventories.of(DESTINATION))


def sure(flow: Flow) -> bool:
    """Say whether nobody is at work, and all is held for certain."""
    found = inventories(flow)
    held = [each for inventory in found for each in inventory.held.values()]
    return not any(each.worker for each in found) and all(each.digest and each.uid for each in held)


def ended_well(flow: Flow) -> None:
    """See that all is held for certain in the end, and that nobody gave anything up."""
    flow.settle(partial(sure, flow))
    here = flow.stand.project.open()
    assert [letter for queue in here.queues.values() for letter in queue.list()] == []


def trouble(flow: Flow, keys: Sequence[ObjectKey]) -> list[Any]:
    """Return the errors that functions have logged, and what of some objects was taken away."""
    removed = flow.stand.lines(what="removed")
    names = set(map(str, keys))
    taken = [line for line in removed if line["object"] in names]
    return flow.stand.lines(severity="ERROR") + taken


def to_port(port: int) -> dict[str, Any]:
    """Return a change of a Service."""
    return {"spec": {"ports": [{"port": port}]}}


def counted(processes: Counter[int]) -> Happens:
    """Return what counts the writes of processes."""

    def count(process: int, _: bytes) -> None:
        processes[process] += 1

    return count


def twin(key: ObjectKey) -> ObjectKey:
    """Return the Service that is deployed for one."""
    return TWIN._replace(name=f"external-{key.name}")


def busy(flow: Flow, key: ObjectKey) -> None:
    """Make a balanced Service and change it twice, without a pause; each time it sends an event."""
    made = balanced(60000)
    made["metadata"]["name"] = key.name
    flow.source.create(made)
    for stored in (
        flow.source.give_address(key, "34.172.32.172"),
        flow.source.patch(key, to_port(60001)),
        flow.source.patch(key, to_port(60002)),
    ):
        assert flow.ring(stored).status == 200


class TestFaults:
    """What explanation/delivery.md promises, while things go wrong: in one installation."""

    def test_messages_that_come_again_and_at_once_change_nothing(self, flow: Flow) -> None:
        """Each stage gets its own four times at once, when all is done and for another object."""
        stand = flow.stand
        flow.make(60000)
        stand.wait(lambda: flow.there(60000))
        [inventory] = inventories(flow)
        before = marks(flow)

        several: list[Envelope] = [
            EVALUATE,
            Instantiate("service-policy", SOURCE, str(WEB)),
            Apply("service-policy", SOURCE, inventory.profile, DESTINATION),
        ]
        with ThreadPoolExecutor(12) as threads:
            again = [each for each in several for _ in range(4)]
            answers = list(threads.map(lambda each: push(stand, each, each.do), again))

        assert {each.status for each in answers} == {200}
        stand.tick()
        assert marks(flow) == before
        ended_well(flow)

    def test_functions_that_die_at_one_write_after_the_other_end_their_work(
        self, flow: Flow
    ) -> None:
        """An event is sent again and pushed again, until each has got through with it.

        It takes long: a function starts once more after each of its writes.
        """
        flow.make(60000)
        flow.settle(lambda: flow.there(60000))
        before = lives(flow)

        with dying(flow, "ingest", "evaluate", "deploy") as deaths:
            for port in (60001, 60002):
                until_taken(flow, flow.source.patch(WEB, to_port(port)))
                flow.settle(partial(flow.there, port))

        assert all(died.count > 1 for died in deaths.values()), deaths
        assert lives(flow) == before
        ended_well(flow)

    def test_ticks_and_resyncs_that_die_at_each_write_end_their_work(self, flow: Flow) -> None:
        """A timer and a delayed message ask for a resync, which finds objects without an event.

        It takes long: a function starts once more after each of its writes.
        """
        stand = flow.stand
        flow.make(60000)
        flow.settle(lambda: flow.there(60000))
        here = stand.project.open()
        flow.source.patch(WEB, to_port(60001))
        resync = Resync(SOURCE, full=True).message()
        rests = Delivery(resync, "rested", "", 1)
        here.queues["sweep"].settle(rests, Again(timedelta(0), "it waits"))
        here.records.timers.set("late", here.records.clock.now(), resync.body)

        with dying(flow, "sweep") as deaths:
            with dying(flow, "schedule") as others:
                until_answered(stand.tick)
            flow.settle(lambda: flow.there(60001))

        deaths |= others
        assert all(died.count > 1 for died in deaths.values()), deaths
        assert here.records.timers.get("late") is None
        assert not list(here.records.store.query(f"rest/{here.queues['sweep'].name}"))
        ended_well(flow)

    @pytest.mark.parametrize(("stage", "write"), [("evaluate", ANY), ("deploy", LEASE)])
    def test_one_who_answers_too_late_and_who_was_pushed_the_same_end_with_one_truth(
        self, flow: Flow, stage: str, write: bytes
    ) -> None:
        """Who was halted goes on beside the other, who has seen less or more than he.

        It takes long: a worker is halted until Pub/Sub has pushed its message to another.
        """
        stand = flow.stand
        flow.make(60000)
        flow.settle(lambda: flow.there(60000))
        before = lives(flow)
        # What comes again is not to wait at the halted one, by a connection that is kept for it.
        time.sleep(KEPT_OPEN)

        halt = Halt(write)
        with flow.writes.seen(stand.functions[stage], halt), halt:
            assert flow.ring(flow.source.patch(WEB, to_port(60001))).status == 200
            stand.wait(lambda: halt.halted)
            stand.wait(lambda: halt.others)
            assert flow.ring(flow.source.patch(WEB, to_port(60002))).status == 200
        flow.settle(lambda: True)
        flow.settle(lambda: flow.there(60002) and sure(flow))

        assert lives(flow) == before
        ended_well(flow)

    def test_a_late_worker_has_the_newest_deployed_again(self, flow: Flow) -> None:
        """What he began is older than what is there, which he finds out when he writes it down."""
        stand = flow.stand
        flow.make(60000)
        flow.settle(lambda: flow.there(60000))
        before = lives(flow)

        halt = Halt(LEASE)
        with flow.writes.seen(stand.functions["deploy"], halt), halt:
            assert flow.ring(flow.source.patch(WEB, to_port(60001))).status == 200
            stand.wait(lambda: halt.halted)
            assert [bool(each.worker) for each in inventories(flow)] == [True]
            assert flow.ring(flow.source.patch(WEB, to_port(60002))).status == 200
            flow.settle(lambda: flow.there(60002))
        flow.settle(lambda: True)
        flow.settle(lambda: flow.there(60002) and sure(flow))

        assert lives(flow) == before
        ended_well(flow)

    def test_a_burst_on_several_processes_of_each_stage_is_deployed_whole(self, flow: Flow) -> None:
        """Of each object the last word, once, without an error of those who meet; then it goes.

        It takes long: eight objects come, change and go through several processes of each
        function.
        """
        stand = flow.stand
        keys = [WEB._replace(name=f"web-{number}") for number in range(MANY)]
        at_work: dict[str, Counter[int]] = {"evaluate": Counter(), "deploy": Counter()}
        before = trouble(flow, keys)

        with ExitStack() as end:
            for stage, processes in at_work.items():
                end.enter_context(flow.writes.seen(stand.functions[stage], counted(processes)))
            threads = end.enter_context(ThreadPoolExecutor(4))
            list(threads.map(partial(busy, flow), keys))
            flow.settle(lambda: [flow.ports(twin(key)) for key in keys] == [[60002]] * MANY)
        assert all(len(processes) > 1 for processes in at_work.values())
        assert [len(each.held) for each in inventories(flow)] == [2] * MANY
        assert trouble(flow, keys) == before
        ended_well(flow)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(flow.remove, keys))
        flow.settle(lambda: not any(flow.ports(twin(key)) for key in keys))
        ended_well(flow)

    def test_what_cannot_be_written_down_is_refused_until_it_can(self, flow: Flow) -> None:
        """Firestore takes no dead letter for a while: it is pushed again, and is one in the end."""
        stand = flow.stand
        flow.writes.firestore.fail("Commit", "PERMISSION_DENIED", times=3)
        queue = stand.project.open().queues["evaluate"]
        queue.publish([Message({"do": "dance"}, "g")])
        # A tick would write, too, and take a failure for itself.
        eventually("it is a dead letter", queue.list, patience=60.0)

        assert stand.lines(message="Cannot settle a message")
        [letter] = queue.list()
        assert (letter.message.body, letter.attempts) == ({"do": "dance"}, 1)
        queue.drop(letter.id)

    def test_google_that_goes_away_for_a_while_loses_nothing(
        self, flow: Flow, firestore: Emulator, pubsub: Emulator
    ) -> None:
        """Senders are sent away and come again; what is in flight comes again by itself.

        It takes long: Pub/Sub's emulator boots, and pushes come again after their pauses.
        """
        stand = flow.stand
        flow.make(60000)
        stand.wait(lambda: flow.there(60000))

        # What was taken is on its way.
        changed = flow.source.patch(WEB, to_port(60001))
        assert flow.ring(changed).status == 200
        firestore.freeze()
        try:
            refused = stand.send("source", {"apiVersion": "bellhop.dev/v1", "kind": "Alive"})
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        finally:
            firestore.thaw()
        stand.wait(lambda: flow.there(60001))

        pubsub.stop()
        changed = flow.source.patch(WEB, to_port(60002))
        assert flow.ring(changed).status == 503
        pubsub.start()
        stand.project.make_topics()
        stand.project.subscribe(stand.functions)
        until_taken(flow, changed)
        stand.wait(lambda: flow.there(60002))

        ended_well(flow)


def test_a_terminated_function_answers_its_requests_in_flight(
    stand: Stand, firestore: Emulator
) -> None:
    """Cloud Run gives it ten seconds; no message is made to come again for nothing."""
    function = stand.functions["evaluate"]
    assert push(stand, EVALUATE).status == 200
    firestore.freeze()
    try:
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(push, stand, EVALUATE)
            time.sleep(1.5)
            function.terminate()
            time.sleep(0.5)
            assert not answer.done()
            firestore.thaw()

            assert answer.result().status == 200
    finally:
        firestore.thaw()
    assert function.ended(60) == 0


@pytest.mark.parametrize("tries", [5])
def test_what_nobody_answers_for_is_a_dead_letter_that_can_be_replayed(
    stand: Stand, tries: int, tmp_path: Path
) -> None:
    """Pub/Sub buries it after so many pushes, a tick takes it over, and replayed it is done."""
    bellhop = on_gcp(tmp_path, stand.project)
    bellhop.opened.close()
    queue = stand.project.open().queues["evaluate"]
    stand.functions["evaluate"].kill()
    queue.publish([EVALUATE.message()])
    stand.wait(queue.list)
    [letter] = queue.list()
    assert letter.message.body == EVALUATE.message().body
    assert letter.attempts >= tries
    assert "no answer" in letter.reason

    stand.functions["evaluate"].start()
    stand.functions["evaluate"].ready()
    listed = json.loads(bellhop("dead-letters", "list", "-o", "json").stdout)
    assert [(each["id"], each["attempts"]) for each in listed] == [
        (f"evaluate/{letter.id}", letter.attempts)
    ]
    replayed = bellhop("dead-letters", "replay", f"evaluate/{letter.id}")
    assert replayed.exit_code == 0, replayed.stderr
    queue.publish([Message({"do": "dance"}, "g")])
    stand.wait(queue.list)

    [other] = queue.list()
    assert (other.message.body, other.attempts) == ({"do": "dance"}, 1)
    moved = partial(stand.lines, message="Moved a message to the dead letters")
    [line] = eventually("that is logged", moved)
    assert line["inbox"] == "evaluate"
