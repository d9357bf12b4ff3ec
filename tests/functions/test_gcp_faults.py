"""What may go wrong on Google ends as docs/explanation/delivery.md promises: once, if late."""

from __future__ import annotations

import base64
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bellhop.messages import INBOXES, Apply, Envelope, Evaluate, Instantiate
from bellhop.ports.queue import Message
from infra.lab.frameworks import Answer
from infra.lab.google import Emulator
from tests.cli.conftest import on_gcp
from tests.functions.gcp_lab import ADDRESSES, TWIN, WEB, Flow, Stand

SOURCE, DESTINATION = "fleet/source", "fleet/destination"
EVALUATE = Evaluate(SOURCE, str(WEB), rang="2026-11-20T08:00:00+00:00")


@pytest.fixture
def flow(flow: Flow) -> Flow:
    """An installation with an example of the docs."""
    flow.declare("service-discovery")
    return flow


def push(stand: Stand, message: Envelope, number: str = "1") -> Answer:
    """Push a message as Pub/Sub does, and tell what its function answers."""
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
    """Return the life of what was brought, and its last change."""
    found = [flow.destination.get(key) or {"metadata": {}} for key in (TWIN, ADDRESSES)]
    return [(each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in found]


def ended_well(flow: Flow) -> None:
    """See that all is held for certain, and that nobody gave anything up."""
    here = flow.stand.project.open()
    assert [letter for queue in here.queues.values() for letter in queue.list()] == []
    for inventory in here.records.inventories.of(DESTINATION):
        assert not inventory.worker
        assert all(held.digest and held.uid for held in inventory.held.values())


class TestFaults:
    """What explanation/delivery.md promises, while things go wrong: in one installation."""

    def test_messages_that_come_again_and_at_once_change_nothing(self, flow: Flow) -> None:
        """Each stage gets its own four times at once, when all is done and for another object."""
        stand = flow.stand
        flow.make(60000)
        stand.wait(lambda: flow.there(60000))
        [inventory] = stand.project.open().records.inventories.of(DESTINATION)
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

    def test_functions_that_are_killed_at_whatever_moment_end_their_work(self, flow: Flow) -> None:
        """What they had in hand comes again, and the last word of the source is what is there."""
        stand = flow.stand
        flow.make(60000)
        for number, pause in enumerate((0.0, 0.3, 0.7), 1):
            changed = flow.source.patch(WEB, {"spec": {"ports": [{"port": 60000 + number}]}})
            assert flow.ring(changed).status == 200
            time.sleep(pause)
            for stage in ("evaluate", "deploy"):
                stand.functions[stage].kill()
            for stage in ("evaluate", "deploy"):
                stand.functions[stage].start()
            for stage in ("evaluate", "deploy"):
                stand.functions[stage].ready()
        stand.wait(lambda: flow.there(60003))

        ended_well(flow)

    def test_what_cannot_be_written_down_is_refused_until_it_can(self, flow: Flow) -> None:
        """Firestore takes no dead letter for a while: it is pushed again, and is one in the end."""
        stand = flow.stand
        flow.front.fail("Commit", "PERMISSION_DENIED", times=3)
        queue = stand.project.open().queues["evaluate"]
        queue.publish([Message({"do": "dance"}, "g")])
        stand.wait(queue.list)

        assert stand.lines(message="Cannot settle a message")
        [letter] = queue.list()
        assert (letter.message.body, letter.attempts) == ({"do": "dance"}, 1)
        queue.drop(letter.id)

    def test_google_that_goes_away_for_a_while_loses_nothing(
        self, flow: Flow, firestore: Emulator, pubsub: Emulator
    ) -> None:
        """Senders are sent away and come again; what is in hand comes again by itself."""
        stand = flow.stand
        flow.make(60000)
        stand.wait(lambda: flow.there(60000))

        # What was taken is on its way.
        changed = flow.source.patch(WEB, {"spec": {"ports": [{"port": 60001}]}})
        assert flow.ring(changed).status == 200
        firestore.freeze()
        try:
            refused = stand.send("source", {"apiVersion": "bellhop.dev/v1", "kind": "Alive"})
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        finally:
            firestore.thaw()
        stand.wait(lambda: flow.there(60001))

        pubsub.stop()
        changed = flow.source.patch(WEB, {"spec": {"ports": [{"port": 60002}]}})
        assert flow.ring(changed).status == 503
        pubsub.start()
        stand.project.make_topics()
        stand.project.subscribe(stand.functions)
        _until_taken(flow, changed)
        stand.wait(lambda: flow.there(60002))

        ended_well(flow)


def test_one_that_is_told_to_end_answers_what_it_has_in_hand(
    stand: Stand, firestore: Emulator
) -> None:
    """Cloud Run gives it ten seconds; nobody is told to come again for nothing."""
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
    [line] = stand.lines(message="Moved a message to the dead letters")
    assert line["inbox"] == "evaluate"


def _until_taken(flow: Flow, stored: Any) -> None:
    """Ring until it is taken, as a forwarder does."""
    deadline = time.monotonic() + 60
    while flow.ring(stored).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
