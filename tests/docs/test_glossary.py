"""The glossary is short, and has each word once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"
MOST = 30
"""Rows that a user reads through; a longer page is a language of our own."""


def words() -> list[str]:
    """Return the words that the page explains, as often as it does."""
    return re.findall(r"^\| \*\*(.+?)\*\* \|", PAGE.read_text(), re.MULTILINE)


def test_explains_each_word_once() -> None:
    """A word with two rows means two things."""
    assert [word for word, times in Counter(words()).items() if times > 1] == []


def test_is_short_and_sorted() -> None:
    """A reader finds a word at its place."""
    assert 0 < len(words()) <= MOST
    assert words() == sorted(words(), key=str.lower)
