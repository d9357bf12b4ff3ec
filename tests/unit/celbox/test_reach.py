"""What of an object a rule looks at, and that it sees no less."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.celbox import Rule
from bellhop.celbox.reach import within


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("true", {}, id="nothing"),
        pytest.param("resource.kind == 'A'", {"kind": None}, id="a field"),
        pytest.param("resource['kind'] == 'A'", {"kind": None}, id="a key"),
        pytest.param("has(resource.spec.a)", {"spec": {"a": None}}, id="whether it is there"),
        pytest.param(
            "resource.spec.a == 1 || resource.spec.b['c'].d == 1",
            {"spec": {"a": None, "b": {"c": {"d": None}}}},
            id="two",
        ),
        pytest.param(
            "resource.a.b == 1 && size(resource.a) == 1", {"a": None}, id="then the whole"
        ),
        pytest.param(
            "size(resource.a) == 1 && resource.a.b == 1", {"a": None}, id="the whole first"
        ),
        pytest.param("resource.a.all(x, x.b == resource.c)", {"a": None, "c": None}, id="a loop"),
        pytest.param("resource.a[resource.b] == 1", {"a": None, "b": None}, id="a key made"),
        pytest.param("resource.a[0].b == 1", {"a": None}, id="an index"),
        pytest.param(
            "[resource.a] == [] || {'x': resource.b} == {}", {"a": None, "b": None}, id="in"
        ),
        pytest.param("resource.a.all(resource, resource.b)", {"a": None, "b": None}, id="hidden"),
        pytest.param("resource == {}", None, id="all of it"),
        pytest.param("resource.exists(key, key == 'a')", None, id="its keys"),
        pytest.param("resource[string(1)] == 1", None, id="any key"),
        pytest.param("'kind' in resource", None, id="whether it has a key"),
    ],
)
def test_knows_what_a_rule_looks_at(text: str, expected: Any) -> None:
    """A chain of fields from `resource` on; where it ends, all that lies below."""
    assert Rule(text)._reach == expected


def test_leaves_out_what_is_not_looked_at() -> None:
    """What is no map stands as it is, what is not there stays away, and nothing is changed."""
    given = {"a": {"b": 1, "c": 2}, "d": 3, "e": {"f": {}}, "g": 4}

    assert within(given, {"a": {"b": None}, "d": {"x": None}, "e": {"f": {"y": None}}}) == {
        "a": {"b": 1},
        "d": 3,
        "e": {"f": {}},
    }
    assert given["a"] == {"b": 1, "c": 2}


def test_what_is_not_looked_at_costs_nothing() -> None:
    """A managed field of a megabyte, or one too deep, is not converted for a rule on the kind."""
    deep: Any = {}
    for _ in range(500):
        deep = {"a": deep}
    given = {"kind": "A", "status": {"deep": deep, "large": "x" * 1_000_000, "none": object()}}

    assert Rule("resource.kind == 'A'").holds(given)
