"""The workers of the embedded mode, in real time."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.errors import PermanentError
from bellhop.logs import Log
from bellhop.runtime.embedded.state import open_state
from bellhop.runtime.embedded.workers import Workers
from bellhop.settings import Settings
from bellhop.state.messages import Evaluate, Resolve, Resync
from tests.waiting import eventually

PATIENCE = 30.0


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
    """Work that takes longer than the visibility timeout is done once, however many are free.

    It takes seconds: the work itself lasts several visibility timeouts.
    """
    settings = replace(Settings(), visibility=timedelta(seconds=0.8), workers=3)
    embedded = open_state(tmp_path / "state", settings)
    slow = Slow(seconds=4.0)
    workers = Workers(embedded, {"deploy": slow}, Log(io.StringIO()))
    embedded.installation.publisher.publish([Resolve("a"), Resolve("b")])
    workers.start()
    try:
        eventually("both have ended", lambda: slow.ended == Counter("ab"))
    finally:
        workers.stop()
        embedded.close()

    assert slow.begun == Counter("ab")


@pytest.mark.clocked
def test_who_runs_scripts_that_take_long_rests(tmp_path: Path) -> None:
    """They take a quarter of a core at most, and events go on beside them."""
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
        eventually("it has begun", lambda: times)
        publish([Evaluate("a/b", "x", event_at="now")])
        eventually("the event is set", rings.is_set)
        resting = len(times) == 1
        eventually("it has begun again", lambda: len(times) > 1)
    finally:
        workers.stop()
        embedded.close()

    (begun, ended), (again, _) = times[:2]
    assert resting
    assert again - ended >= 3 * (ended - begun)


def test_a_stage_that_fails_keeps_no_worker_from_the_next(tmp_path: Path) -> None:
    """What is dead-lettered, and what nobody foresaw, ends; the others are worked on."""
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
        eventually("it is done", done.is_set)
        eventually("it is given up", embedded.queues["deploy"].list)
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
        eventually("the failure is logged", lambda: "Failed to look what is due" in log.getvalue())
        embedded.installation.publisher.publish([Resolve("a")])
        eventually("the work has ended", lambda: slow.ended == Counter("a"))
    finally:
        workers.stop()
        embedded.close()


def test_one_worker_is_left_to_other_clusters(tmp_path: Path) -> None:
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
            Evaluate(cluster, f"/v1/X/n/{count}-{number}", event_at="now")
            for number in range(count)
        )

    workers = Workers(embedded, {"evaluate": Stage()}, Log(io.StringIO()))
    publish("a/flood", 1)
    workers.start()
    try:
        eventually("the flood has begun", lambda: begun["a/flood"])
        publish("a/flood", 10)
        publish("a/single", 1)
        eventually("the single one has begun", lambda: begun["a/single"])
        assert begun["a/flood"] == 1
    finally:
        let_go.set()
        eventually("all of the flood has begun", lambda: begun["a/flood"] == 11)
        workers.stop()
        embedded.close()

    assert begun == Counter({"a/flood": 11, "a/single": 1})


@pytest.mark.clocked
def test_nobody_begins_anything_while_others_finish(tmp_path: Path) -> None:
    """One who is at work for long keeps the end from coming, and nobody busy until then."""
    embedded = open_state(tmp_path / "state", Settings())
    slow, swept = Slow(seconds=1.5), Counter[str]()

    class Sweeping:
        def handle(self, message: Resync) -> None:
            swept[message.cluster] += 1

    workers = Workers(embedded, {"deploy": slow, "sweep": Sweeping()}, Log(io.StringIO()))
    embedded.installation.publisher.publish([Resolve("a")])
    workers.start()
    try:
        eventually("the work has begun", lambda: slow.begun)
        ending = threading.Thread(target=workers.stop)
        ending.start()
        eventually("the workers stop", workers._stopping.is_set)
        time.sleep(0.2)
        used = time.process_time()
        embedded.installation.publisher.publish([Resync("fleet/late")])
        ending.join()
        used = time.process_time() - used
    finally:
        workers.stop()
        embedded.close()

    assert (slow.ended["a"], swept) == (1, Counter())
    assert used < 0.5
