"""The baton: one computes at a time, and nobody is locked out."""

from __future__ import annotations

import threading
import time

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


def test_nobody_is_locked_out() -> None:
    """Who holds it and does not come back delays each other one by its patience, once."""
    baton = Baton(0.05)
    with baton.held():
        begun = time.monotonic()
        assert taken(baton) == [False]
    assert time.monotonic() - begun < LONG / 2

    with baton.held():
        assert baton.mine


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
