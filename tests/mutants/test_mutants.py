"""That the list of mutants is kept true; `make mutants` tells who notices them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT, asked
from tests.mutants.listed import EXPLAINED, MUTANTS
from tests.mutants.mutant import PACKAGE, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.story)
def test_fits_the_code(mutant: Mutant) -> None:
    """Its snippet stands in its file exactly once, and what replaces it is other Python."""
    text = (PACKAGE / mutant.file).read_text()
    broken = mutant.broken(text)

    ast.parse(broken)
    assert broken != text


@pytest.mark.parametrize("file", sorted({each.file for each in MUTANTS}))
def test_those_who_are_asked_first_are_there(file: str) -> None:
    """Else a question that could not be asked would count as an answer."""
    assert [each for each in asked("its own tests", file) if not (ROOT / each).exists()] == []


def test_tells_of_a_snippet_that_fits_no_more(tmp_path: Path) -> None:
    """A mutant without its place names itself and the snippet."""
    (tmp_path / "a.py").write_text("one = 1\n")
    Mutant("a.py", "one", "two", "One is two.").apply(tmp_path)
    assert (tmp_path / "a.py").read_text() == "two = 1\n"

    with pytest.raises(LookupError, match=r"'One is two.' fits 0 places of a.py, not one"):
        Mutant("a.py", "one", "two", "One is two.").apply(tmp_path)


def test_there_are_enough() -> None:
    """There are at least 40, each with a story of its own; who may survive is one of them."""
    stories = [mutant.story for mutant in MUTANTS]

    assert len(set(stories)) == len(stories) >= 40
    assert all(story.endswith(".") for story in stories)
    assert EXPLAINED.keys() <= set(stories)
