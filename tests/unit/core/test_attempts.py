"""Trying again: how often, what, and until when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bellhop.core.attempts import PASSING, TRIES, Attempts
from bellhop.errors import (
    BellhopError,
    BusyError,
    StaleError,
    TemporaryError,
    ThrottledError,
    UnreachableError,
)


class Call:
    """Something that fails so many times."""

    def __init__(self, failures: int) -> None:
        self.made = 0
        self._failures = failures

    def __call__(self) -> str:
        self.made += 1
        if self.made <= self._failures:
            raise OSError("a secret")
        return "done"


def attempts(hand: Iterator[float] | None = None) -> tuple[Attempts, list[float]]:
    slept: list[float] = []
    seconds = (lambda: next(hand)) if hand else (lambda: 0.0)
    return Attempts(10, seconds=seconds, sleep=slept.append), slept


def unreachable(error: Exception) -> BellhopError:
    return UnreachableError(f"cannot call: it does not answer ({type(error).__name__})")


@pytest.mark.parametrize("failures", range(TRIES))
def test_waits_out_what_passes(failures: int) -> None:
    """Resting after each failure, longer each time at most, and never for more than two seconds."""
    made, slept = attempts()
    call = Call(failures)

    assert made.make(call, (OSError,), unreachable) == "done"
    assert call.made == failures + 1
    assert len(slept) == failures
    assert all(0 <= pause <= min(0.05 * 2**n, 2) for n, pause in enumerate(slept, 1))


def test_a_lasting_error_has_our_words() -> None:
    """Chained to what was met last."""
    made, slept = attempts()
    call = Call(99)

    with pytest.raises(UnreachableError, match="cannot call") as caught:
        made.make(call, (OSError,), unreachable)

    assert (call.made, len(slept)) == (TRIES, TRIES - 1)
    assert isinstance(caught.value.__cause__, OSError)


def test_begins_none_after_its_time() -> None:
    """Who called has a deadline too."""
    made, _ = attempts(iter([0.0, 9.0, 11.0, 12.0]))
    call = Call(99)

    with pytest.raises(UnreachableError):
        made.make(call, (OSError,), unreachable)

    assert call.made == 2


@pytest.mark.parametrize("kind", [ThrottledError, UnreachableError, BusyError, StaleError])
def test_only_a_passing_error_is_tried_again(kind: type[TemporaryError]) -> None:
    """The caller of a write that lost to another reads it again."""
    made, _ = attempts()
    call = Call(1)
    if kind in PASSING:
        assert made.make(call, (OSError,), lambda _: kind("")) == "done"
    else:
        with pytest.raises(kind):
            made.make(call, (OSError,), lambda _: kind(""))
        assert call.made == 1


def test_what_is_no_failure_of_the_call_is_raised_as_it_is() -> None:
    """At once."""
    made, slept = attempts()

    with pytest.raises(ZeroDivisionError):
        made.make(lambda: 1 // 0, (OSError,), unreachable)

    assert slept == []
