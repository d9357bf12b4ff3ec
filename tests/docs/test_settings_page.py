"""Settings are documented as they are read, and Terraform sets those that functions read."""

from __future__ import annotations

import pytest
from msgspec.structs import fields

from bellhop.settings import Settings
from infra.settings_page import CLOUDS, LIBRARY, PAGE, describe, meanings, read_by, set_by, written


def test_the_page_has_the_tables_of_what_is_read() -> None:
    """`make reference` writes them."""
    assert PAGE.read_text() == written(), "the page is stale: run `make reference`"


def test_every_setting_says_what_it_means() -> None:
    """The sentence below it is its row."""
    documented = meanings(LIBRARY / "settings.py")

    assert [each.name for each in fields(Settings)] == [*documented]
    assert [name for name, text in documented.items() if not text.endswith(".")] == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_terraform_sets_what_functions_read(cloud: str) -> None:
    """A missing one stops a function, and one that no code reads misleads its readers."""
    assert set_by(cloud).keys() == read_by(cloud) == describe(cloud).keys()
    assert len(read_by(cloud)) > 5
