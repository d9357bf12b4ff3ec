"""How many threads feed an inbox, in real time."""

from __future__ import annotations

import io
import queue
import threading
import time
from collections.abc import Callable

from bellhop.embedded import pool as pools
from bellhop.embedded.pool import Pool, Size
from bellhop.logs import Log

PATIENCE = 30.0


class Jobs:
    """Something to do, one after the other, and the pool that does it."""

    def __init__(self, few: int, most: int) -> None:
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue()
        self.pool = Pool("test", self._feed, Size(few, most), Log(io.StringIO()), wait=0.02)

    def add(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    def _feed(self, begin: Callable[[], None], wait: float) -> bool:
        try:
            job = self._jobs.get(timeout=wait)
        except queue.Empty:
            return False
        begin()
        job()
        return True


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_those_that_are_stuck_keep_nobody_waiting() -> None:
    """With every thread waiting for something, others are started, as far as the limit goes."""
    jobs, release, done = Jobs(2, 6), threading.Event(), threading.Event()
    jobs.pool.start()
    try:
        for _ in range(5):
            jobs.add(lambda: bool(release.wait(PATIENCE)))
        jobs.add(done.set)
        assert done.wait(PATIENCE)
        for _ in range(3):
            jobs.add(lambda: bool(release.wait(PATIENCE)))
        assert wait_for(lambda: jobs.pool.size == 6)
        time.sleep(3 * pools.STUCK)
        assert jobs.pool.size == 6
    finally:
        release.set()
        jobs.pool.stop()


def test_a_machine_without_more_threads_keeps_those_there_are() -> None:
    """Whoever cannot be started is a line of the log, and is tried again."""

    class Poor(Pool):
        refused = 0

        def _add(self) -> None:
            if self._started >= 1 and self.refused < 2:
                self.refused += 1
                raise RuntimeError("can't start new thread")
            super()._add()

    jobs, release, done, log = Jobs(1, 3), threading.Event(), threading.Event(), io.StringIO()
    jobs.pool = Poor("test", jobs._feed, Size(1, 3), Log(log), wait=0.02)
    jobs.pool.start()
    try:
        jobs.add(lambda: bool(release.wait(PATIENCE)))
        jobs.add(done.set)
        assert done.wait(PATIENCE)
    finally:
        release.set()
        jobs.pool.stop()

    assert log.getvalue().count("Cannot start another thread") == 2


def test_nobody_is_added_while_somebody_is_free() -> None:
    """One stuck thread of two is no reason for a third."""
    jobs, release = Jobs(2, 6), threading.Event()
    jobs.pool.start()
    try:
        jobs.add(lambda: bool(release.wait(PATIENCE)))
        time.sleep(4 * pools.STUCK)
        assert jobs.pool.size == 2
    finally:
        release.set()
        jobs.pool.stop()


def test_who_was_added_ends_when_there_is_nothing_to_do() -> None:
    """After a while without a message there are as few as at the start."""
    jobs, release = Jobs(1, 4), threading.Event()
    jobs.pool.idle = 0.1
    jobs.pool.start()
    try:
        for _ in range(3):
            jobs.add(lambda: bool(release.wait(PATIENCE)))
        assert wait_for(lambda: jobs.pool.size > 1)
        release.set()
        assert wait_for(lambda: jobs.pool.size == 1)
    finally:
        release.set()
        jobs.pool.stop()


def test_busy_threads_are_not_given_company() -> None:
    """Where this process keeps a core busy, more threads would only be in each other's way."""
    jobs, stop = Jobs(1, 8), threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(1000))

    jobs.pool.start()
    try:
        jobs.add(spin)
        jobs.add(lambda: None)
        time.sleep(5 * pools.STUCK)
        # A neighbour on the machine may take the core away for a tick or two.
        assert jobs.pool.size <= 3
    finally:
        stop.set()
        jobs.pool.stop()


def test_goes_on_after_a_failure_and_ends_with_what_is_in_hand() -> None:
    """An error between messages ends no thread; stopping waits for the job that has begun."""
    jobs, begun, ended = Jobs(1, 1), threading.Event(), threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    def work() -> None:
        begun.set()
        time.sleep(0.3)
        ended.set()

    jobs.pool.start()
    jobs.add(fail)
    jobs.add(work)
    assert begun.wait(PATIENCE)
    jobs.pool.stop()

    assert ended.is_set()
    assert jobs.pool.size == 0
