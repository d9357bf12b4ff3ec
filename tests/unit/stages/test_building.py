"""What was built is kept: bounded, shared between threads, and never where it failed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bellhop.stages.features.resources.building import Built


def test_a_build_is_made_once() -> None:
    """And again under another name."""
    built, made = Built(), list[str]()

    def build(text: str) -> str:
        made.append(text)
        return text

    for name in ("a", "b", "a"):
        assert built.get(name, lambda name=name: build(name)) == name  # type: ignore[misc]
    assert made == ["a", "b"]


def test_who_comes_while_it_is_made_waits_for_it() -> None:
    """Thirty-two workers that meet one new tarball run kubectl once."""
    built, began, goes_on, made = Built(), threading.Event(), threading.Event(), list[str]()

    def build() -> str:
        began.set()
        assert goes_on.wait(30)
        made.append("once")
        return "built"

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(built.get, "a", build)
        assert began.wait(30)
        others = [threads.submit(built.get, "a", build) for _ in range(3)]
        goes_on.set()
        assert {each.result() for each in (first, *others)} == {"built"}
    assert made == ["once"]


def test_a_build_that_fails_is_made_again() -> None:
    """It may have been for want of memory."""
    built = Built()

    def fail() -> str:
        raise RuntimeError("no")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            built.get("a", fail)
    assert built.get("a", lambda: "built") == "built"


@pytest.mark.parametrize(("most", "largest"), [(2, 100), (9, 8)])
def test_the_oldest_are_forgotten(most: int, largest: int) -> None:
    """By their number, and by how large they are together; what is used stays."""
    built, made = Built(most, largest), list[str]()

    def build(name: str) -> str:
        made.append(name)
        return name * 4

    for name in ("a", "b", "a", "c", "a", "b"):
        built.get(name, lambda name=name: build(name))  # type: ignore[misc]
    assert made == ["a", "b", "c", "b"]


def test_the_newest_is_kept_however_large_it_is() -> None:
    """Else it were built for each cluster."""
    built, made = Built(largest=1), list[str]()

    def build() -> str:
        made.append("a")
        return "large"

    assert [built.get("a", build) for _ in range(2)] == ["large", "large"]
    assert made == ["a"]
