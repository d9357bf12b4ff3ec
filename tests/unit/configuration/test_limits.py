"""The size of written objects: lists are cut, and the annotation says how far."""

from __future__ import annotations

import json
from typing import Any

from bellhop.configuration.limits import MOST_BYTES, TRUNCATED, truncate
from bellhop.configuration.names import cut_name


def size(manifest: dict[str, Any]) -> int:
    return len(json.dumps(manifest, separators=(",", ":")))


def report(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "status": status}


def test_an_object_that_fits_is_as_it_is() -> None:
    """It gets no annotation."""
    small = report(clusters=[1, 2, 3])

    assert truncate(small) is small


def test_the_largest_list_is_cut() -> None:
    """The others stay; the object that was given does not change."""
    large = report(clusters=[{"name": f"cluster-{each:050}"} for each in range(20_000)], other=[1])

    cut = truncate(large)

    left = len(cut["status"]["clusters"])
    assert size(cut) <= MOST_BYTES
    assert left > 10_000
    assert cut["metadata"]["annotations"] == {TRUNCATED: f"{left} of 20000"}
    assert cut["status"]["other"] == [1]
    assert len(large["status"]["clusters"]) == 20_000
    assert "annotations" not in large["metadata"]


def test_a_list_in_a_list_is_cut_and_not_the_one_around_it() -> None:
    """A profile with many objects stays beside one with few."""
    few = {"name": "few", "resources": ["a"]}
    many = {"name": "many", "resources": ["r" * 100] * 20_000}

    cut = truncate(report(profiles=[few, many]))

    assert [each["name"] for each in cut["status"]["profiles"]] == ["few", "many"]
    assert cut["status"]["profiles"][0] == few
    assert size(cut) <= MOST_BYTES


def test_a_list_of_huge_items_is_cut_to_nothing() -> None:
    """An object that cannot be written at all would say less."""
    cut = truncate(report(charts=["v" * 2 * MOST_BYTES]))

    assert cut["status"]["charts"] == []
    assert cut["metadata"]["annotations"] == {TRUNCATED: "0 of 1"}


def test_a_long_name_is_cut_with_a_digest() -> None:
    """Two that begin alike stay apart."""
    one, other = cut_name("a" * 300), cut_name("a" * 301)

    assert cut_name("a" * 253) == "a" * 253
    assert len(one) == len(other) == 253
    assert one != other
