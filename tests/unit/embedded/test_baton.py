"""The baton: one computes at a time, and nobody is locked out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from bellhop.embedded.baton import Baton

LONG = 30.0


def run(work: object) -> threading.Thread:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    return thread


def taken(baton: Baton) -> list[bool]:
    """Say whether another thread gets it."""
    got: list[bool] = []

    def other() -> None:
        with baton.held():
            got.append(baton.mine)

    run(other).join(LONG)
    return got


def test_one_thread_computes_at_a_time() -> None:
    """Whoever comes while it is held waits until it is given."""
    baton, order = Baton(LONG), []
    asked = threading.Event()

    def other() -> None:
        asked.set()
        with baton.held():
            order.append("other")

    with baton.held():
        thread = run(other)
        assert asked.wait(LONG)
        time.sleep(0.05)
        order.append("first")
    thread.join(LONG)

    assert order == ["first", "other"]


def test_who_waits_passes_it_and_takes_it_again() -> None:
    """Others compute meanwhile; then it is this thread's again, to the end of its own block."""
    baton = Baton(LONG)
    with baton.held():
        with baton.passed():
            assert not baton.mine
            assert taken(baton) == [True]
        assert baton.mine
    assert taken(baton) == [True]


def test_a_wait_within_another_one_is_a_part_of_that() -> None:
    """Whoever waits for several things in turn has it again once the whole is over."""
    baton = Baton(LONG)
    with baton.held():
        with baton.passed():
            with baton.passed():
                assert taken(baton) == [True]
            assert not baton.mine
            assert taken(baton) == [True]
        assert baton.mine


def test_who_computes_for_nobody_waits_without_taking_it() -> None:
    """A thread that does not take part has nothing to pass, and gets nothing by it."""
    baton = Baton(LONG)
    with baton.passed():
        assert taken(baton) == [True]

    assert not baton.mine


def test_who_is_lent_a_block_works_for_the_same_share() -> None:
    """A helper's time is counted for whom it helps, and not for nobody."""
    clock = [0.0]
    baton = Baton(LONG, seconds=lambda: clock[0])

    def help_out(block: Callable[[], AbstractContextManager[None]]) -> None:
        with block():
            clock[0] += 5.0

    with baton.held("flood"):
        block = baton.lend()
    run(lambda: help_out(block)).join(LONG)

    assert baton._tag("flood") >= 5.0
    assert baton._had.get("", 0.0) == 0.0


def test_nobody_is_locked_out() -> None:
    """Who keeps it and does not come back loses it, and gets it again where it would wait."""
    baton = Baton(0.05)
    with baton.held():
        begun = time.monotonic()
        assert taken(baton) == [True]
        assert not baton.mine
        with baton.passed():
            pass
        assert baton.mine
    assert time.monotonic() - begun < LONG / 2

    with baton.held():
        assert baton.mine


def test_who_lost_it_takes_it_from_nobody() -> None:
    """The end of a block in which it was lost leaves it with whoever has it by then."""
    baton, ended, kept = Baton(0.05), threading.Event(), []
    has = threading.Event()

    def other() -> None:
        with baton.held():
            has.set()
            assert ended.wait(LONG)
            kept.append(baton.mine)

    with baton.held():
        thread = run(other)
        assert has.wait(LONG)
    ended.set()
    thread.join(LONG)

    assert kept == [True]


class Race:
    """Threads that wait for a baton, in the order of their coming, and hold it for a while."""

    def __init__(self) -> None:
        self.now = 0.0
        self.baton = Baton(LONG, seconds=lambda: self.now)
        self.order: list[str] = []
        self._threads: list[threading.Thread] = []

    def join(self, share: str, *pieces: float) -> None:
        """Have a thread wait for a share, with work of so many seconds, piece by piece."""

        def work() -> None:
            with self.baton.held(share):
                for piece in pieces:
                    self.baton.go_on(share)
                    self.order.append(share)
                    self.now += piece

        before = self._waits()
        self._threads.append(run(work))
        deadline = time.monotonic() + LONG
        while self._waits() == before and time.monotonic() < deadline:
            time.sleep(0.001)

    def end(self) -> list[str]:
        for each in self._threads:
            each.join(LONG)
        return self.order

    def _waits(self) -> int:
        return sum(map(len, self.baton._waiting.values()))


def test_the_share_comes_first_that_has_had_least() -> None:
    """One with many at work gets one turn for each turn of another; within one, in order."""
    race = Race()
    with race.baton.held("before"):
        for _ in range(4):
            race.join("flood", 1.0)
        race.join("single", 1.0)
        race.join("other", 1.0)

    assert race.end() == ["flood", "single", "other", "flood", "flood", "flood"]


def test_whoever_has_had_much_lets_others_go_first_between_two_pieces_of_work() -> None:
    """A flood with a hundred pieces in hand delays a single event by one of them."""
    race = Race()
    with race.baton.held("before"):
        race.join("flood", *[1.0] * 3)
        race.join("single", 1.0)

    assert race.end() == ["flood", "single", "flood", "flood"]


def test_little_work_is_not_handed_over_each_time() -> None:
    """Shares that wait let each other go on for a few milliseconds."""
    race = Race()
    with race.baton.held("before"):
        race.join("some", *[0.002] * 6)
        race.join("others", *[0.002] * 3)

    assert race.end() == [*["some"] * 3, *["others"] * 3, *["some"] * 3]


def test_who_had_much_long_ago_does_not_pay_for_it_for_ever() -> None:
    """What a share has had counts against it only while others had less at the same time."""
    race = Race()
    with race.baton.held("busy"):
        race.now += 1000.0
    with race.baton.held("others"):
        race.now += 2000.0
        race.join("busy", 1.0)
        race.join("others", 1.0)
    assert race.end() == ["busy", "others"]


def test_shares_that_owe_nothing_are_forgotten() -> None:
    """A fleet of ten thousand clusters leaves no trace of each."""
    race = Race()
    for number in range(10_000):
        with race.baton.held(f"c{number}"):
            race.now += 1.0
    assert len(race.baton._had) < 2_000


def test_it_is_given_back_whatever_happens() -> None:
    """Work that fails keeps it from nobody, and a second block within the first takes nothing."""
    baton = Baton(LONG)
    with pytest.raises(ValueError, match="work"), baton.held(), baton.passed():
        raise ValueError("work")
    with baton.held():
        with baton.held():
            assert baton.mine
        assert baton.mine
    assert not baton.mine
    assert taken(baton) == [True]
