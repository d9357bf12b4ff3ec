"""The workers of the embedded mode, in real time."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.embedded.feed import Feed
from bellhop.embedded.seats import Seats
from bellhop.embedded.state import open_state
from bellhop.embedded.workers import Workers
from bellhop.errors import PermanentError
from bellhop.logs import Log
from bellhop.messages import INBOXES, Confirm, Evaluate, Resolve, Sweep
from bellhop.ports.queue import Delivery, Message, Result
from bellhop.settings import Settings
from bellhop.stages.inbox import Inbox

PATIENCE = 30.0
CALM = 4.0
"""Seconds, fewer than after which a thread looks that nobody woke."""


def wait_for(condition: Any) -> bool:
    """Wait until something holds, or it has been too long."""
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


class Slow:
    """A stage whose work takes several visibility timeouts."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begun: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()

    def handle(self, message: Resolve) -> None:
        self.begun[message.profile] += 1
        time.sleep(self._seconds)
        self.ended[message.profile] += 1


def test_what_is_in_hand_is_given_to_nobody_else(tmp_path: Path) -> None:
    """Work that takes longer than the visibility timeout is done once, whoever else is free."""
    settings = replace(Settings(), visibility=timedelta(seconds=0.8), workers=3)
    embedded = open_state(tmp_path / "state", settings)
    slow = Slow(seconds=4.0)
    workers = Workers(embedded, {"deploy": slow}, Log(io.StringIO()))
    embedded.installation.publisher.publish([Resolve("a"), Resolve("b")])
    workers.start()
    try:
        assert wait_for(lambda: slow.ended == Counter("ab"))
    finally:
        workers.stop()
        embedded.close()

    assert slow.begun == Counter("ab")


class Counting(SqliteQueue):
    """A queue that counts how many groups workers ask for, and what they settle at once."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked: list[int | None] = []
        self.settled: list[int] = []

    def receive(self, limit: int, **options: Any) -> Sequence[Delivery]:
        self.asked.append(options["groups"])
        return super().receive(limit, **options)

    def exchange(
        self, worked: Sequence[tuple[Delivery, Result]], limit: int, **options: Any
    ) -> tuple[Sequence[Result], Sequence[Delivery]]:
        self.settled.append(len(worked))
        if limit:
            self.asked.append(options["groups"])
        return super().exchange(worked, limit, **options)


@pytest.mark.parametrize("inbox", ["evaluate", "confirm"])
@pytest.mark.parametrize("seconds", [0.0, 0.015, 0.03])
def test_who_is_quick_takes_more_at_once(tmp_path: Path, inbox: str, seconds: float) -> None:
    """A lump is settled as a whole where it is quick; work that takes longer comes alone.

    And so does what may wait for a cluster, however quick it was.
    """
    embedded = open_state(tmp_path / "state", Settings())
    queue = Counting(tmp_path / "state" / "queue.db", inbox, clock=SystemClock(), groups=1)
    queues = {**embedded.queues, inbox: queue}
    count = 300 if seconds == 0 else 40
    done: Counter[str] = Counter()

    class Stage:
        def handle(self, message: Evaluate | Confirm) -> None:
            time.sleep(seconds)
            done[message.object] += 1

    kind = {
        "evaluate": partial(Evaluate, rang="now"),
        "confirm": partial(Confirm, uid="u", before=1),
    }[inbox]
    embedded.installation.publisher.publish(kind("a/b", f"/v1/X/n/{n}") for n in range(count))
    workers = Workers(
        replace(embedded, queues=queues), {INBOXES[inbox]: Stage()}, Log(io.StringIO())
    )
    workers.start()
    try:
        assert wait_for(lambda: sum(queue.settled) == count)
    finally:
        workers.stop()
        queue.close()
        embedded.close()

    assert done == Counter(f"/v1/X/n/{n}" for n in range(count))
    lumps = seconds == 0 and inbox == "evaluate"
    assert (max(queue.settled) > 2, max(queue.asked) > 2) == (lumps, lumps)
    # Nobody settles anything without taking what comes next, which writes half as much.
    assert 0 not in queue.settled


def test_what_was_done_before_a_worker_ends_is_settled(tmp_path: Path) -> None:
    """What it did not come to is left in hand: it comes again once its time is up."""
    queue = SqliteQueue(tmp_path / "queue.db", "evaluate", clock=SystemClock())
    done: list[str] = []

    class Stage:
        def handle(self, message: Evaluate) -> None:
            if len(done) == 2:
                raise SystemExit
            done.append(message.object)

    bodies = (Evaluate("a/b", f"/v1/X/n/{n}").message().body for n in range(4))
    queue.publish([Message(body, "one group") for body in bodies])
    log, settings = Log(io.StringIO()), Settings()
    inbox = Inbox("evaluate", Stage(), settings, log)
    feed = Feed("evaluate", queue, inbox, Seats(2), threading.Event(), log)
    with pytest.raises(SystemExit):
        feed(lambda: None, 0.0)

    assert done == ["/v1/X/n/0", "/v1/X/n/1"]
    assert queue.backlog().held == 2
    queue.close()


def test_who_runs_scripts_that_take_long_rests(tmp_path: Path) -> None:
    """They take a quarter of a core at most, and what rings goes on beside them."""
    embedded = open_state(tmp_path / "state", Settings())
    times: list[tuple[float, float]] = []
    rings = threading.Event()

    class Judging:
        def handle(self, message: Evaluate) -> None:
            begun = time.monotonic()
            if message.source:
                time.sleep(0.2)
                times.append((begun, time.monotonic()))
            else:
                rings.set()

    workers = Workers(embedded, {"evaluate": Judging()}, Log(io.StringIO()))
    publish = embedded.installation.publisher.publish
    publish([Evaluate("a/b", "x", source=name) for name in ("one", "other")])
    workers.start()
    try:
        assert wait_for(lambda: times)
        publish([Evaluate("a/b", "x", rang="now")])
        assert wait_for(rings.is_set)
        resting = len(times) == 1
        assert wait_for(lambda: len(times) > 1)
    finally:
        workers.stop()
        embedded.close()

    (begun, ended), (again, _) = times[:2]
    assert resting
    assert again - ended >= 3 * (ended - begun)


def test_a_stage_that_fails_keeps_no_worker_from_the_next(tmp_path: Path) -> None:
    """What is given up, and what nobody foresaw, ends; the others are worked on."""
    embedded = open_state(tmp_path / "state", replace(Settings(), attempts=2))
    done = threading.Event()

    class Failing:
        def handle(self, message: Resolve) -> None:
            if message.profile == "refused":
                raise PermanentError("cannot do it")
            if message.profile == "broken":
                raise ZeroDivisionError
            done.set()

    output = io.StringIO()
    workers = Workers(embedded, {"deploy": Failing()}, Log(output))
    names = ("refused", "broken", "fine")
    embedded.installation.publisher.publish([Resolve(name) for name in names])
    workers.start()
    try:
        assert wait_for(done.is_set)
        assert wait_for(embedded.queues["deploy"].list)
    finally:
        workers.stop()
        [letter] = embedded.queues["deploy"].list()
        embedded.close()

    assert letter.message.body["profile"] == "broken"
    assert "Moved a message to the dead letters" in output.getvalue()


def test_workers_outlive_a_store_that_fails(tmp_path: Path) -> None:
    """Between messages too: each failure is a line of the log, and the next one is worked on."""
    embedded = open_state(tmp_path / "state", Settings())
    log = io.StringIO()
    slow = Slow(seconds=0.0)
    workers = Workers(embedded, {"deploy": slow}, Log(log))
    embedded.store.close()
    workers.start()
    try:
        assert wait_for(lambda: "Failed to look what is due" in log.getvalue())
        embedded.installation.publisher.publish([Resolve("a")])
        assert wait_for(lambda: slow.ended == Counter("a"))
    finally:
        workers.stop()
        embedded.close()


def test_whoever_has_much_to_do_leaves_one_thread_to_others(tmp_path: Path) -> None:
    """All of a cluster's work takes long and waits for something; another's is done meanwhile."""
    embedded = open_state(tmp_path / "state", Settings())
    let_go = threading.Event()
    begun: Counter[str] = Counter()

    class Stage:
        def handle(self, message: Evaluate) -> None:
            begun[message.cluster] += 1
            if message.cluster == "a/flood":
                assert let_go.wait(PATIENCE)

    def publish(cluster: str, count: int) -> None:
        embedded.installation.publisher.publish(
            Evaluate(cluster, f"/v1/X/n/{count}-{number}", rang="now") for number in range(count)
        )

    workers = Workers(embedded, {"evaluate": Stage()}, Log(io.StringIO()))
    publish("a/flood", 1)
    workers.start()
    try:
        assert wait_for(lambda: begun["a/flood"])
        publish("a/flood", 10)
        publish("a/single", 1)
        assert wait_for(lambda: begun["a/single"])
        assert begun["a/flood"] == 1
    finally:
        let_go.set()
        wait_for(lambda: begun["a/flood"] == 11)
        workers.stop()
        embedded.close()

    assert begun == Counter({"a/flood": 11, "a/single": 1})


def test_whoever_waits_keeps_no_place(tmp_path: Path) -> None:
    """A cluster's next event is taken by whoever is woken, not after the last one's wait."""
    embedded = open_state(tmp_path / "state", Settings())
    kept: list[Callable[[], Collection[str]]] = []
    done = threading.Event()

    class Asked(SqliteQueue):
        def receive(self, limit: int, **options: Any) -> Sequence[Delivery]:
            kept.append(options["but"])
            return super().receive(limit, **options)

    class Stage:
        def handle(self, message: Evaluate) -> None:
            del message
            done.set()

    queue = Asked(tmp_path / "state" / "queue.db", "evaluate", clock=SystemClock())
    workers = Workers(
        replace(embedded, queues={**embedded.queues, "evaluate": queue}),
        {"evaluate": Stage()},
        Log(io.StringIO()),
    )
    workers.start()
    try:
        queue.publish([Evaluate("a/b", "/v1/X/n/x", rang="now").message()])
        assert done.wait(PATIENCE)
        begun = time.monotonic()
        assert wait_for(lambda: not kept[0]())
        assert time.monotonic() - begun < CALM
    finally:
        workers.stop()
        queue.close()
        embedded.close()


@pytest.mark.timed
def test_nobody_begins_anything_while_others_finish(tmp_path: Path) -> None:
    """One who is at work for long keeps the end from coming, and nobody busy until then."""
    embedded = open_state(tmp_path / "state", Settings())
    slow, swept = Slow(seconds=1.5), Counter[str]()

    class Sweeping:
        def handle(self, message: Sweep) -> None:
            swept[message.cluster] += 1

    workers = Workers(embedded, {"deploy": slow, "sweep": Sweeping()}, Log(io.StringIO()))
    embedded.installation.publisher.publish([Resolve("a")])
    workers.start()
    try:
        assert wait_for(lambda: slow.begun)
        ending = threading.Thread(target=workers.stop)
        ending.start()
        assert wait_for(workers._stopping.is_set)
        time.sleep(0.2)
        used = time.process_time()
        embedded.installation.publisher.publish([Sweep("fleet/late")])
        ending.join()
        used = time.process_time() - used
    finally:
        workers.stop()
        embedded.close()

    assert (slow.ended["a"], swept) == (1, Counter())
    assert used < 0.5
