"""Which word was meant: found for words of people, and not looked for among long ones."""

from __future__ import annotations

import time

import pytest

from bellhop.core.suggestion import closest


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("nmae", ["name", "namespace"], "name"),
        ("name", [], ""),
        ("name", ["x" * 200, "names"], "names"),
        ("n" * 200, ["n" * 200], ""),
    ],
)
def test_finds_the_word_that_is_most_like_it(word: str, known: list[str], found: str) -> None:
    """Words longer than people write are left out on both sides."""
    assert closest(word, known) == found


@pytest.mark.clocked
def test_takes_no_time_for_many_long_words() -> None:
    """The longest words that are compared, and more of them than are compared, end soon."""
    word = "ab" * 50
    known = [f"{'ba' * 48}{number:04d}" for number in range(5_000)]

    start = time.process_time()
    closest(word, known)
    assert time.process_time() - start < 5
