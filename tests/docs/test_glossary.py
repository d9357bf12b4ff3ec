"""The glossary knows the words that the code is made of, each once."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec import Struct

from bellhop import messages
from bellhop.model import record

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "glossary.md"
SAID_OTHERWISE = {
    "askrights": "ask rights",
    "envelope": "message",
    "patchtext": "patch",
    "publisher": "message",
    "readkeys": "read keys",
    "relevant_kind": "gate",
    "watchedkind": "kind",
}
"""Names in code whose concept has another word, since that one is taken, or plainer."""

PLUMBING = {"comparing", "handover", "inbox", "execute", "work", "ending", "refusals"}
"""Modules of the stages that are parts of another, or are named for a record."""


def words() -> list[str]:
    """Return the words that the page explains, as often as it does."""
    rows = re.findall(r"^\| (\*\*.+?) \|", PAGE.read_text(), re.MULTILINE)
    return [word for row in rows for word in re.findall(r"\*\*(.+?)\*\*", row)]


def classes(module: object) -> list[str]:
    return [
        name.lower()
        for name, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Struct) and each.__module__ == getattr(module, "__name__", "")
    ]


def stages() -> list[str]:
    found = (ROOT / "shared" / "bellhop" / "stages").glob("[a-z]*.py")
    return [path.stem.removesuffix("s") for path in found if path.stem not in PLUMBING]


@pytest.mark.parametrize("word", sorted({*classes(record), *classes(messages), *stages()}))
def test_knows_every_record_message_and_stage(word: str) -> None:
    """Whoever reads the code finds each of its nouns and verbs on one page."""
    assert SAID_OTHERWISE.get(word, word) in words()


def test_explains_each_word_once() -> None:
    """A word with two rows means two things."""
    assert [word for word, times in Counter(words()).items() if times > 1] == []
