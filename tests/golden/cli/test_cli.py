"""All that a scripted fleet's commands print is, byte for byte, as the golden files have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.cli.files import EXPECTED, printed
from tests.golden.cli.scenes import SCENES
from tests.golden.cli.world import opened_world

AGAIN = "if users are to see this, write the files again: python -m tests.golden.cli"
FILES = (*(f"{name}.txt" for name in SCENES), "errors.txt", "signals.txt")


@pytest.mark.parametrize("name", FILES)
def test_commands_print_what_they_printed(name: str) -> None:
    """A redesign changes no table, no document, no error, no exit code, no field of a log."""
    assert printed()[name] == (EXPECTED / name).read_text(encoding="utf-8"), AGAIN


def test_no_golden_file_is_left_over() -> None:
    """Each file belongs to a scene, or to the lists of errors and signals."""
    assert {path.name for path in EXPECTED.iterdir()} == {*FILES}, AGAIN


def test_ids_are_numbered_in_their_width(tmp_path: Path) -> None:
    """A drawn id becomes its number in all its spellings; a digest that looks like one stays."""
    with opened_world(tmp_path) as world:
        text = "e0000040 e000004000000000 ae0000041b e0000004"
        assert world.normal(text) == "<000001> <00000000000001> ae0000041b <000002>"
