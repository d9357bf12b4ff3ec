"""Writes into the configuration cluster are spread over time, and Retry-After is obeyed."""

from __future__ import annotations

import heapq
from collections import Counter
from datetime import timedelta
from itertools import count

import pytest

from bellhop.configuration.write_limiter import LimitedAccess, WriteLimiter
from bellhop.core.gvk import GVK
from bellhop.errors import TemporaryError, ThrottledError
from bellhop.settings import Settings
from tests.fakes.fleet import FakeAccess
from tests.fakes.kube import FakeKube

CLUSTERS, PROFILES = 500, 40
MINUTES = 15
OWN = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "own", "namespace": "default"},
}


class Time:
    """Seconds that pass only if somebody says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """An API server that takes so many writes a second, and asks to retry in a second beyond."""

    def __init__(self, time: Time, most: int) -> None:
        self._time = time
        self._most = most
        self.taken: Counter[int] = Counter()
        self.refused = 0

    def write(self) -> None:
        second = int(self._time())
        if self.taken[second] >= self._most:
            self.refused += 1
            raise ThrottledError("it asks to slow down", delay=timedelta(seconds=1))
        self.taken[second] += 1


class Queue:
    """A queue whose messages all come at once, and again after the delay that their handler asks.

    Each has two writes; both are made again if the second one is refused.
    """

    def __init__(self, time: Time, server: Server, messages: int) -> None:
        self._time = time
        self._server = server
        self._limiter = WriteLimiter(time)
        self._messages = messages
        self.attempts: Counter[int] = Counter()

    def drain(self) -> float:
        """Handle all messages; return how many seconds it took."""
        begun, numbers = self._time(), count()
        due = [(begun, next(numbers), each) for each in range(self._messages)]
        while due:
            at, _, message = heapq.heappop(due)
            self._time.now = max(self._time.now, at)
            self.attempts[message] += 1
            try:
                self._handle(message)
            except TemporaryError as error:
                delay = error.delay or timedelta(minutes=5)
                again = self._time() + delay.total_seconds()
                heapq.heappush(due, (again, next(numbers), message))
        return self._time() - begun

    def _handle(self, message: int) -> None:
        self._limiter.admit(message)
        for _ in range(2):
            self._limiter.count()
            try:
                self._server.write()
            except ThrottledError as error:
                self._limiter.slow_down(error.delay)
                raise


@pytest.fixture
def time() -> Time:
    """The time of limiter and server."""
    return Time()


def test_summaries_of_a_large_fleet_are_written_within_a_quarter_of_an_hour(time: Time) -> None:
    """At fifty requests a second, each message being tried three times at most."""
    server = Server(time, most=10**6)
    queue = Queue(time, server, CLUSTERS * PROFILES)

    seconds = queue.drain()

    assert seconds < MINUTES * 60
    assert sum(server.taken.values()) == 2 * CLUSTERS * PROFILES
    assert max(server.taken.values()) <= 2 * 50 + 2
    assert max(queue.attempts.values()) <= 3


@pytest.mark.parametrize("most", [40, 20])
def test_a_slower_server_gets_all_writes_and_no_message_is_dead_lettered(
    time: Time, most: int
) -> None:
    """It refuses few requests, and each message is tried less often than dead letters are."""
    server = Server(time, most)
    queue = Queue(time, server, messages=2000)

    seconds = queue.drain()

    assert seconds < 3 * 4000 / most
    assert server.refused < 4000 / 4
    assert max(queue.attempts.values()) < Settings().attempts


def test_few_writes_do_not_wait(time: Time) -> None:
    """A second's worth may be written at once, also without any writes before."""
    limiter = WriteLimiter(time)
    for message in range(25):
        limiter.admit(message)
        limiter.count()
        limiter.count()


def test_work_that_waits_keeps_its_place(time: Time) -> None:
    """If it comes too early, or twice, it takes no second one."""
    limiter = WriteLimiter(time)
    for _ in range(101):
        limiter.count()

    delays = [delay_of(limiter, "a") for _ in range(2)]
    time.now += 0.5
    early = delay_of(limiter, "a")

    assert delays[0] == delays[1]
    assert early == delays[0] - timedelta(seconds=0.5)
    time.now += delays[0].total_seconds()
    limiter.admit("a")


def test_nobody_begins_before_retry_after(time: Time) -> None:
    """Neither new work nor work whose place comes meanwhile."""
    limiter = WriteLimiter(time)
    for _ in range(101):
        limiter.count()
    place = delay_of(limiter, "waiting")

    limiter.slow_down(timedelta(seconds=30))
    time.now += place.total_seconds()

    assert delay_of(limiter, "waiting") > timedelta(seconds=20)
    assert delay_of(limiter, "new") > timedelta(seconds=20)
    time.now += 60
    limiter.admit("waiting")
    limiter.admit("new")
    limiter.admit("third")


def test_places_that_nobody_comes_for_are_forgotten(time: Time) -> None:
    """Another process may have handled the work."""
    limiter = WriteLimiter(time)
    for _ in range(101):
        limiter.count()
    for message in range(100):
        delay_of(limiter, message)

    time.now += 3600
    limiter.admit("new")

    assert limiter._places == {}


def test_only_writes_count_and_a_refused_one_stops_all(time: Time) -> None:
    """What is read costs nothing; the error of the API server stays as it is."""
    limiter, access, kube = WriteLimiter(time), FakeAccess(), FakeKube()
    access.clusters["fleet/hub"] = kube
    limited = LimitedAccess(access, limiter).open("fleet/hub")
    for _ in range(200):
        limited.get(GVK("", "v1", "ConfigMap"), "default", "own")
    limiter.admit("a")
    limited.apply(OWN)

    kube.fail_with(ThrottledError("slow down", delay=timedelta(seconds=7)), "apply")
    with pytest.raises(ThrottledError, match="slow down"):
        limited.apply(OWN)

    assert delay_of(limiter, "a") >= timedelta(seconds=7)
    assert kube.get(GVK("", "v1", "ConfigMap"), "default", "own")


def delay_of(limiter: WriteLimiter, work: object) -> timedelta:
    """Return how long work has to wait, which must be so."""
    with pytest.raises(ThrottledError) as raised:
        limiter.admit(work)
    assert raised.value.delay is not None
    return raised.value.delay
