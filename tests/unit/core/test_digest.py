"""Digests: equal for what is equal, and for nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.core.digest import content, digest, same

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_digests_stay_as_they_are() -> None:
    """A digest that changed would have everything applied again."""
    assert digest({"b": [1, "ü"], "a": None}) == (
        "e6079cc869da30fa7778650261b5c569a08642cba6de37e7cffd9ab5d28d87c8"
    )


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(_json)
def test_a_round_trip_changes_no_digest(value: Any) -> None:
    """What comes back from the store is what went in."""
    assert digest(json.loads(json.dumps(value))) == digest(value)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.text(), _json, min_size=2, max_size=4))
def test_the_order_of_keys_does_not_count(value: dict[str, Any]) -> None:
    """Manifests are mappings."""
    assert digest(dict(reversed(value.items()))) == digest(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(1, "1", id="a number and its text"),
        pytest.param(1, True, id="one and true"),
        pytest.param(0, None, id="zero and nothing"),
        pytest.param([1, 2], [2, 1], id="the order of a list"),
        pytest.param({"a": {}}, {"a": []}, id="an empty mapping and an empty list"),
        pytest.param({"a": None}, {}, id="null and absent"),
    ],
)
def test_what_differs_has_another_digest(one: Any, other: Any) -> None:
    """Also where Python finds it equal."""
    assert digest(one) != digest(other)


def test_what_every_write_moves_does_not_count() -> None:
    """Labels, spec and status do, and the object itself is not touched."""
    manifest = {
        "metadata": {
            "name": "a",
            "resourceVersion": "7",
            "managedFields": [1],
            "labels": {"x": "y"},
        },
        "status": {"ready": True},
    }

    assert content(manifest) == {
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "status": {"ready": True},
    }
    assert manifest["metadata"]["resourceVersion"] == "7"  # type: ignore[index]
    assert content({"kind": "X"}) == {"kind": "X", "metadata": {}}


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(_json, _json)
def test_values_are_the_same_as_their_digests_are(one: Any, other: Any) -> None:
    """The two ways to compare agree, also of a value with itself."""
    assert same(one, other) is (digest(one) == digest(other))
    assert same(one, json.loads(json.dumps(one)))


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (0, False), (1, 1.0), ([0], [False]), ({"a": 1}, {"a": True}), (1, "1")],
)
def test_a_number_is_no_truth_value(one: Any, other: Any) -> None:
    """Python takes some of them for equal; a custom resource may hold either."""
    assert not same(one, other)
    assert not same(other, one)


def test_compares_what_is_nested_deep() -> None:
    """Deeper than Python's own comparison goes."""
    one: Any = None
    other: Any = None
    for _ in range(5000):
        one, other = [one], {"a": other}

    assert same(one, [one[0]])
    assert not same(one, other)
