"""Values that are kept for a moment, and made once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Self

import pytest

from bellhop.state.ttl_cache import SingleFlight, TtlCache
from tests.fakes.clock import FakeClock


def test_a_value_is_kept_for_so_long() -> None:
    clock = FakeClock()
    recent: TtlCache[str, int] = TtlCache(clock, 60, 10)
    assert recent.get("a", lambda: 1) == 1
    clock.jump(timedelta(hours=1))
    clock.advance(timedelta(seconds=59))
    assert recent.get("a", lambda: 2) == 1
    clock.advance(timedelta(seconds=1))
    assert recent.get("a", lambda: 3) == 3


def test_the_oldest_makes_room() -> None:
    recent: TtlCache[str, bytes] = TtlCache(FakeClock(), 60, 10, len)
    for key, size in (("a", 4), ("b", 4), ("c", 4), ("too much", 11)):
        recent.get(key, lambda size=size: b"1" * size)  # type: ignore[misc]
    assert [recent.get(key, lambda: b"") for key in ("c", "b", "a", "too much")] == [
        *(b"1111", b"1111"),
        *(b"", b""),
    ]


def test_what_was_used_last_stays() -> None:
    recent: TtlCache[str, bytes] = TtlCache(FakeClock(), 60, 8, len)
    for key in ("a", "b", "a", "c"):
        recent.get(key, lambda: b"1234")
    assert [recent.get(key, lambda: b"") for key in ("a", "c", "b")] == [b"1234", b"1234", b""]


def test_a_value_may_have_a_lifetime_of_its_own() -> None:
    """It makes space once it ends, whatever came before it."""
    clock = FakeClock()
    recent: TtlCache[str, bytes] = TtlCache(clock, 60, 8, len)
    recent.get("long", lambda: b"1234")
    recent.get("short", lambda: b"1234", 5)
    clock.advance(timedelta(seconds=5))
    recent.get("new", lambda: b"1234", 0)
    assert recent.get("long", lambda: b"") == b"1234"
    assert recent.get("short", lambda: b"", 5) == b""
    assert recent.get("new", lambda: b"", 0) == b""


def test_a_failure_is_not_kept() -> None:
    recent: TtlCache[str, int] = TtlCache(FakeClock(), 60, 10)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: 1 // 0)
    assert recent.get("a", lambda: 1) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_who_asks_meanwhile_shares_what_comes_of_it(*, fails: bool) -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    begun, go_on = threading.Event(), threading.Event()
    made = []

    def make() -> int:
        made.append(1)
        begun.set()
        go_on.wait()
        return 1 // 0 if fails else 1

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(flights.join, "a", make)
        begun.wait()
        # Each of them waits for the first one, for its flight lands only after they are there.
        others = [_Joining(flights, make) for _ in range(7)]
        futures = [pool.submit(other.join) for other in others]
        for other in others:
            other.there.wait()
        go_on.set()
        outcomes = [each.exception() or each.result() for each in (first, *futures)]
    if fails:
        assert all(isinstance(each, ZeroDivisionError) for each in outcomes)
    else:
        assert outcomes == [1] * 8
    assert made == [1]


class _Joining:
    """One that joins a flight, and lets it be known once the flight was looked for."""

    def __init__(self, flights: SingleFlight[str, int], make: object) -> None:
        self.there = threading.Event()
        self._flights, self._make = flights, make

    def join(self) -> int:
        return self._flights.join(_Key("a", self.there), self._make)  # type: ignore[arg-type]


class _Key(str):
    """A key that notices when it was looked up."""

    __slots__ = ("looked_up",)

    def __new__(cls, text: str, looked_up: threading.Event) -> Self:
        made = super().__new__(cls, text)
        made.looked_up = looked_up
        return made

    def __hash__(self) -> int:
        self.looked_up.set()
        return super().__hash__()
