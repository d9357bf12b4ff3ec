"""Figures of the project, and the most that each may be: a figure may fall, and never rise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.house.concepts import concepts
from tests.house.fields import fields
from tests.house.sizes import sizes
from tests.house.traces import traces
from tests.house.words import words

FILE = Path(__file__).with_name("ratchet.json")

_GRAIN = {"product lines": 500, "product code lines": 500, "product import lines": 100}
_GRAIN |= {"product files": 5, "test lines": 500}
"""Figures that move with every commit are held by the next multiple of this."""

_WORDS = 5
"""So it is with each word."""


def static() -> dict[str, int]:
    """Return the figures that reading the files gives."""
    return sizes() | concepts() | fields() | words()


def figures() -> dict[str, int]:
    """Return all figures: those of the files, and those of the two traces."""
    return sizes() | concepts() | traces() | fields() | words()


def most() -> dict[str, int]:
    """Return the most that each figure may be."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def risen(now: Mapping[str, int]) -> list[str]:
    """Return a sentence for each figure that rose, or that the file does not have."""
    before = most()
    new = [f"'{name}' is not in {FILE.name}: add it" for name in now if name not in before]
    return new + [
        f"'{name}' is {value:,}, and may be {before[name]:,} at most: {_cure(name)}"
        for name, value in now.items()
        if value > before.get(name, value)
    ]


def lower(now: Mapping[str, int]) -> None:
    """Write the figures that fell, and those that are new; what rose stays as it was."""
    before = most() if FILE.exists() else {}
    kept = {
        name: min(_held(name, value), before.get(name, _held(name, value)))
        for name, value in now.items()
    }
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _held(name: str, value: int) -> int:
    grain = _WORDS if name.startswith("word ") else _GRAIN.get(name, 1)
    return -(-value // grain) * grain


def _cure(name: str) -> str:
    if name.startswith("word "):
        word = name.removeprefix("word ").rpartition(",")[0]
        return f"write another word; `python -m tests.house --word '{word}'` lists its files"
    if name.startswith("docstring sentences"):
        return "begin the sentence with its subject"
    return (
        "take away elsewhere what you add, or raise the figure in tests/house/ratchet.json in the"
        " same commit, and give the reason in its body"
    )
