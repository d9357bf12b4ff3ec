"""What may be set is told as it is read, and Terraform sets what functions read."""

from __future__ import annotations

import pytest
from msgspec.structs import fields

from bellhop.settings import Settings
from infra.settings_page import CLOUDS, LIBRARY, PAGE, meanings, read_by, set_by, told_by, written


def test_the_page_has_the_tables_of_what_is_read() -> None:
    """`make reference` writes them."""
    assert PAGE.read_text() == written(), "the page is stale: run `make reference`"


def test_every_setting_says_what_it_means() -> None:
    """The sentence below it is its row."""
    told = meanings(LIBRARY / "settings.py")

    assert [each.name for each in fields(Settings)] == [*told]
    assert [name for name, text in told.items() if not text.endswith(".")] == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_terraform_sets_what_functions_read(cloud: str) -> None:
    """One that is missing stops a function, and one that nobody reads misleads whoever sees it."""
    assert set_by(cloud).keys() == read_by(cloud) == told_by(cloud).keys()
    assert len(read_by(cloud)) > 5
