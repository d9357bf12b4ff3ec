"""The figures of the project do not rise; `make house` prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import fields, ratchet, traces
from tests.house.source import Source
from tests.house.words import places

pytestmark = pytest.mark.rest  # It reads every file: once for each landing is enough.


def test_no_figure_of_the_files_rose() -> None:
    """Lines, files, concepts, what a field touches, and private words: at most as many as were."""
    assert not (problems := ratchet.risen(ratchet.static())), "\n".join(problems)


def test_no_figure_of_the_two_traces_rose() -> None:
    """An event and a chart enter as many modules, and cost as many store operations, at most."""
    assert not (problems := ratchet.risen(traces.traces())), "\n".join(problems)


def test_the_page_of_partitions_has_all_that_traces_use() -> None:
    """Tables are counted on that page: one that is missing there would not count."""
    assert not traces.unlisted()


def test_fields_are_followed_by_names_that_exist() -> None:
    """A name that was changed in the code is to be changed in `tests/house/fields.py`, too."""
    assert not fields.unknown()


def test_lines_are_counted_by_what_they_are() -> None:
    """Code is neither blank, nor docstring, comment or import, wherever these stand."""
    text = (
        '"""Text.\n\n# no comment\n"""\n\nimport os\n\n# A comment.\n'
        'X = """\n# text\n"""\nY = 1  # Why.\n'
    )
    file = Source("a.py", text)

    assert (file.lines, file.code, file.imports) == (12, {9, 10, 11, 12}, {6})
    assert [each.strip() for each in file.comments.values()] == ["# A comment.", "# Why."]


def test_words_are_read_in_prose_and_in_names_but_not_in_stored_fields() -> None:
    """Text in backticks, strings and fields of structs keep the words that are stored."""
    text = (
        'class Sweep:\n    """It is brought, but `told`."""\n\n    told: bool = False\n\n\n'
        'def read_trail(told: str) -> str:\n    return "anew"  # anew\n'
    )

    assert sorted(word for word, _ in places((Source("x/desk.py", text),))) == [
        *("anew", "bring", "desk", "sweep", "told", "trail")
    ]


def test_a_figure_that_rose_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure may fall, and then the file is lowered; one that rises stays, and is reported."""
    monkeypatch.setattr(ratchet, "FILE", tmp_path / "ratchet.json")
    ratchet.lower({"tables": 4, "word told, tests": 8, "product lines": 1001})
    ratchet.lower({"tables": 5, "word told, tests": 3, "product lines": 1400})

    assert ratchet.most() == {"tables": 4, "word told, tests": 5, "product lines": 1500}
    tables, word = ratchet.risen({"tables": 5, "word told, tests": 6, "product lines": 1500})
    assert tables.startswith("'tables' is 5, and may be 4 at most: take away elsewhere")
    assert word.endswith(
        "write another word; `python -m tests.house --word 'told'` lists its files"
    )
