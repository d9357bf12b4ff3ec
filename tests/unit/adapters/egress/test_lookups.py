"""A name that is never found keeps nobody, and no more than so many threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bellhop.adapters.egress.dialer import CrowdedError, Lookups
from tests.waiting import eventually


class Slow:
    """A resolver that answers for names only once it is let."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.asked: list[str] = []

    def resolve(self, host: str) -> list[str]:
        """Wait; then say that a name has an address, and has it twice."""
        self.asked.append(host)
        self.let.wait(30)
        if host == "nowhere.example":
            raise OSError("unknown")
        return ["192.0.2.1", "192.0.2.2", "192.0.2.1"]


@pytest.fixture
def slow() -> Iterator[Slow]:
    """Make one that hangs until the test has ended, at the latest."""
    slow = Slow()
    yield slow
    slow.let.set()


def threads() -> int:
    """Count the look-ups that have a thread."""
    return sum(each.name == "look-up" for each in threading.enumerate())


def ended() -> bool:
    """Wait until no look-up has a thread."""
    eventually("no look-up has a thread", lambda: not threads())
    return not threads()


def test_finds_a_name(slow: Slow) -> None:
    """An address that is listed twice is one, and nothing stays behind."""
    slow.let.set()

    assert Lookups(slow.resolve).addresses("eu.example", 10) == ["192.0.2.1", "192.0.2.2"]
    assert ended()


def test_a_name_is_resolved_again_each_time(slow: Slow) -> None:
    """It may lead to another address by now, or be known by now."""
    slow.let.set()
    lookups = Lookups(slow.resolve)

    for name in ("eu.example", "eu.example"):
        lookups.addresses(name, 10)
    for _ in range(2):
        with pytest.raises(OSError, match="unknown"):
            lookups.addresses("nowhere.example", 10)

    assert slow.asked == ["eu.example"] * 2 + ["nowhere.example"] * 2


def test_a_name_that_hangs_hangs_once(slow: Slow) -> None:
    """However often it is asked for, and however many ask at once."""
    lookups = Lookups(slow.resolve)

    for _ in range(5):
        with pytest.raises(TimeoutError):
            lookups.addresses("eu.example", 0.01)

    assert slow.asked == ["eu.example"]
    assert threads() == 1
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(lookups.addresses, "eu.example", 10) for _ in range(5)]
        slow.let.set()
        assert [each.result() for each in waiting] == [["192.0.2.1", "192.0.2.2"]] * 5
    assert ended()


def test_no_more_than_so_many_hang(slow: Slow) -> None:
    """Later lookups fail at once, and are served again when the others have ended."""
    lookups = Lookups(slow.resolve, at_once=3)
    for each in range(3):
        with pytest.raises(TimeoutError):
            lookups.addresses(f"{each}.example", 0.01)

    for each in range(9):
        with pytest.raises(CrowdedError):
            lookups.addresses(f"later-{each}.example", 10)

    assert threads() == 3
    slow.let.set()
    assert ended()
    assert lookups.addresses("later.example", 10) == ["192.0.2.1", "192.0.2.2"]


def test_asks_the_machine_by_default() -> None:
    """Its own name is known to every machine."""
    assert set(Lookups().addresses("localhost", 10)) <= {"127.0.0.1", "::1"}
