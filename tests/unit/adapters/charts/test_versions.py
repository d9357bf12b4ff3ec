"""Versions of charts as Helm chooses them."""

from __future__ import annotations

import pytest

from bellhop.adapters.sources.charts.versions import choose, newer_than
from bellhop.errors import InvalidError, MissingError

THERE = [
    "v1.0.0",
    "1.2.0",
    "1.2.9",
    "1.10.0",
    "2.0.0-rc.1",
    "2.0.0",
    "2.1.0+build.5",
    "3.0.0-beta",
    "junk",
]


@pytest.mark.parametrize(
    ("requested", "version"),
    [
        ("", "2.1.0+build.5"),
        ("*", "2.1.0+build.5"),
        ("1.2.0", "1.2.0"),
        ("v1.2.0", "1.2.0"),
        ("1.0.0", "v1.0.0"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("3.0.0-beta", "3.0.0-beta"),
        ("^1.2.0", "1.10.0"),
        ("~1.2.0", "1.2.9"),
        ("~v1.2.0", "1.2.9"),
        ("1.x", "1.10.0"),
        ("1", "1.10.0"),
        (">=1.0.0, <2.0.0", "1.10.0"),
        (">=1.0.0 <1.10.0", "1.2.9"),
        ("1.0.0 - 1.2.5", "1.2.0"),
        ("<1.1.0 || >=2.0.0", "2.1.0+build.5"),
        (">0.0.0-0", "3.0.0-beta"),
        (">=3.0.0-alpha", "3.0.0-beta"),
        (">= 1.2", "2.1.0+build.5"),
        ("= 1.2.0", "1.2.0"),
        (">= 1.0.0 < 2.0.0", "1.10.0"),
        (">= 1.0.0, < 2.0.0", "1.10.0"),
        ("~> 1.2.0", "1.2.9"),
        ("=<1.10.0", "1.10.0"),
        ("=>1.0.0, <1.10.0", "1.2.9"),
        (">=1.0.0, <2.0.0, !=1.10.0", "1.2.9"),
        ("!= 2.1.x", "2.0.0"),
        ("*-0", "3.0.0-beta"),
    ],
)
def test_the_version_that_is_meant(requested: str, version: str) -> None:
    assert choose(THERE, requested, of="chart 'demo'") == version


def test_what_is_not_there_names_what_is() -> None:
    with pytest.raises(MissingError) as caught:
        choose(THERE, "9.9.9", of="chart 'demo'")
    assert str(caught.value) == (
        "cannot find version '9.9.9' of chart 'demo'; the newest are 3.0.0-beta, 2.1.0+build.5,"
        " 2.0.0, 2.0.0-rc.1, 1.10.0"
    )
    with pytest.raises(MissingError, match="there is no version at all"):
        choose([], "", of="chart 'demo'")


@pytest.mark.parametrize(
    "requested", ["latest", "1.2.x.y", ">>1", "1.2.3 and more", "!=", "1 || !=2"]
)
def test_what_is_no_range_is_refused(requested: str) -> None:
    with pytest.raises(InvalidError, match=r"neither a version nor a range|beside"):
        choose(THERE, requested, of="chart 'demo'")


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        ("1.0.0", ("v1.2.0", "1.0.3")),
        ("1.0.3", ("v1.2.0", "")),
        ("v1.1.9", ("v1.2.0", "")),
        ("1.2.0", ("", "")),
        ("2.0.0-alpha", ("2.0.0-rc.1", "2.0.0-rc.1")),
        ("9.0.0", ("", "")),
        ("none", ("", "")),
    ],
)
def test_newer_versions_are_of_the_chart_and_of_its_patches(
    current: str, expected: tuple[str, str]
) -> None:
    """As the repository spells them; a pre-release counts where one is in use."""
    there = ["1.0.0", "1.0.3", "1.0.1", "v1.2.0", "2.0.0-rc.1", "no version"]

    assert newer_than(there, current) == expected
