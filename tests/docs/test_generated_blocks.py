"""Blocks of a page are filled by name, and each has exactly one place."""

from __future__ import annotations

import pytest

from infra.generated_blocks import fill, table

PAGE = "# Page\n<!-- one two -->\nold\n<!-- end -->\nprose\n<!-- three -->\n<!-- end -->\n"


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    """Prose around a block stays."""
    assert fill(PAGE, {"one two": "1\n", "three": "3\n"}) == (
        "# Page\n<!-- one two -->\n1\n<!-- end -->\nprose\n<!-- three -->\n3\n<!-- end -->\n"
    )


@pytest.mark.parametrize(
    ("page", "blocks", "odd"),
    [
        (PAGE, {"one two": ""}, "three"),
        (PAGE, {"one two": "", "three": "", "four": ""}, "four"),
        (PAGE + PAGE, {"one two": "", "three": ""}, "one two"),
    ],
    ids=["unknown", "missing", "twice"],
)
def test_a_block_without_its_one_place_is_an_error(
    page: str, blocks: dict[str, str], odd: str
) -> None:
    """Otherwise a new command would be left out in silence."""
    with pytest.raises(ValueError, match=odd):
        fill(page, blocks)


def test_an_empty_cell_stays_a_cell() -> None:
    """Two bars with one blank between them are a cell for every reader of Markdown."""
    assert table(("A", "B"), [("1", "")]) == "| A | B |\n| --- | --- |\n| 1 | |\n"
