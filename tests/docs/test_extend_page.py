"""The page on extending Bellhop lists the files that take part, all of them and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/extend-bellhop.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
ROW = re.compile(r"^\| `([^`]+)` \| [^|]+ \| `([^`]+)` \|$", re.MULTILINE)
ROWS = [(title, *row) for title, text in SECTIONS.items() for row in ROW.findall(text)]
EXAMPLES = {
    "An adapter": r"\bSqliteStore\b",
    "A field of a kind": r"\bcontinue_on_conflict\b",
    "A table of records": r"\bWatches\(",
    "A template function": r'_add\("trunc"',
}


@pytest.mark.parametrize(("title", "path", "example"), ROWS, ids=str)
def test_every_listed_file_shows_the_example(title: str, path: str, example: str) -> None:
    """A reader who opens the file finds there what the row speaks of."""
    assert title in EXAMPLES
    assert (ROOT / path).is_file(), path
    assert example in (ROOT / path).read_text(), f"{path} does not mention {example}"


@pytest.mark.parametrize("title", EXAMPLES)
def test_no_file_of_the_library_is_left_out(title: str) -> None:
    """Whatever in the library mentions the example is in its list."""
    listed = {path for section, path, _ in ROWS if section == title}
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "shared").rglob("*.py")
        if re.search(EXAMPLES[title], path.read_text())
    }

    assert found
    assert found <= listed


def test_a_boolean_costs_few_files() -> None:
    """It is declared, carried with the policy of a profile, and acted on."""
    product = [
        path for section, path, _ in ROWS if section == "A field of a kind" and "shared/" in path
    ]

    assert len(product) <= 4


def test_every_file_that_is_named_is_there() -> None:
    """Files in the text count too."""
    named = re.findall(r"`((?:shared|tests|docs)/[\w/.-]+)`", PAGE)

    assert [path for path in named if not (ROOT / path).exists()] == []
