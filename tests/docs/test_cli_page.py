"""The reference of the command line has what the commands say of themselves."""

from __future__ import annotations

from bellhop.cli.kinds import NAMES
from infra.cli_page import PAGE, written


def test_the_page_has_what_the_commands_say() -> None:
    """`make reference` writes it; a command without a block, or a block without one, fails, too."""
    assert PAGE.read_text() == written(), "the page is stale: run `make reference`"


def test_every_kind_has_its_row() -> None:
    """By its plural, singular and short name."""
    page = PAGE.read_text()
    rows = [f"| {kind.plural} | {kind.singular} | {kind.short} |" for kind in NAMES]

    assert [row for row in rows if row not in page] == []
