"""Values cross into Lua and back as JSON would have them."""

import collections
import enum
from typing import Any

import pytest

from bellhop.luabox import LuaLimitError, LuaResultError, Script

ECHO = Script("function evaluate(value) return { value = value } end")


def echo(value: Any) -> Any:
    return ECHO.call("evaluate", globals={}, args=[value])["value"]


def returned(expression: str) -> Any:
    return Script(f"function evaluate() return {expression} end").call("evaluate", globals={})


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"a": {"b": [1, {"c": "d"}]}}, id="nesting"),
        pytest.param([], id="empty list"),
        pytest.param({}, id="empty dict"),
        pytest.param({"finalizers": [], "labels": {}}, id="both empty inside"),
        pytest.param([[], [[]], {}], id="empty within lists"),
        pytest.param("", id="empty text"),
        pytest.param("caf\u00e9 \u4e16\u754c \U0001f6ce", id="text beyond ASCII"),
        pytest.param('"\\\n\r\t\b\f\0\x01\x7f/', id="text with controls"),
        pytest.param("\u0080\u00ff", id="text of Latin-1"),
        pytest.param({"\u00e9": "\u00e9", 'a"b.c/d': 1}, id="odd keys"),
        pytest.param([True, False], id="booleans"),
        pytest.param([0, -1, 443, 1_000_000, 1_000_650_000, 2**53, -(2**53)], id="integers"),
        pytest.param([0.5, -1.25, 1e300, 5e-324, 3.141592653589793], id="fractions"),
        pytest.param([list(range(9000))], id="more than one batch"),
        pytest.param({str(n): {"n": n} for n in range(3000)}, id="many keys"),
    ],
)
def test_returns_what_it_was_given(value: Any) -> None:
    """A value that a script passes through comes back equal."""
    result = echo(value)

    assert result == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"a": None, "b": 1}, {"b": 1}, id="None in a dict is absent"),
        pytest.param([1, None, 2], [1, 2], id="None in a list leaves no hole"),
        pytest.param(3.0, 3, id="a whole fraction is an integer"),
        pytest.param(-0.0, 0, id="minus zero is zero"),
        pytest.param(2**53 + 1, 2**53, id="beyond 2^53 integers round"),
        pytest.param(2**80, float(2**80), id="beyond 2^63 they are fractions"),
        pytest.param("a\ud800b", "a\ufffdb", id="half a surrogate pair"),
        pytest.param(collections.OrderedDict(a=1), {"a": 1}, id="a kind of dict"),
        pytest.param(enum.StrEnum("E", "x")("x"), "x", id="a kind of text"),
        pytest.param(enum.IntEnum("N", "one")(1), 1, id="a kind of integer"),
    ],
)
def test_says_how_a_value_changes(value: Any, expected: Any) -> None:
    """What Lua cannot hold exactly changes in one documented way, type included."""
    result = echo(value)

    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"bytes", id="bytes"),
        pytest.param((1, 2), id="tuple"),
        pytest.param({1: "a"}, id="key that is no string"),
        pytest.param(object(), id="object"),
        pytest.param(10**400, id="integer beyond all doubles"),
    ],
)
def test_refuses_what_is_not_json(value: Any) -> None:
    """A caller's value that JSON does not know is a mistake of the caller."""
    with pytest.raises(TypeError):
        echo(value)

    assert echo("still usable") == "still usable"


def test_refuses_a_value_that_contains_itself() -> None:
    """A cycle in what is given meets the limit of depth."""
    value: dict[str, Any] = {}
    value["self"] = value
    with pytest.raises(LuaLimitError) as caught:
        echo(value)

    assert caught.value.kind == "depth"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("{}", {}, id="a new empty table is a dict"),
        pytest.param("{ 'a', 'b' }", ["a", "b"], id="keys 1 to n make a list"),
        pytest.param("{ [2] = 'b', [1] = 'a' }", ["a", "b"], id="in whatever order"),
        pytest.param("{ [443] = 'https' }", {"443": "https"}, id="other numbers become names"),
        pytest.param("{ [1.5] = 1, [-1] = 2 }", {"1.5": 1, "-1": 2}, id="even odd ones"),
        pytest.param("nil", None, id="nil"),
        pytest.param("'\\255\\254x'", "\ufffd\ufffdx", id="bytes that are not UTF-8"),
        pytest.param("10 / 2", 5, id="a whole number"),
    ],
)
def test_reads_what_lua_returns(expression: str, expected: Any) -> None:
    """Tables become lists or dicts by their keys."""
    assert returned(expression) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param("table.remove(obj.list)", [1, 2], id="shortened"),
        pytest.param("obj.list[2] = nil", [1, 3], id="with a hole"),
        pytest.param("while #obj.list > 0 do table.remove(obj.list) end", [], id="emptied"),
        pytest.param("table.insert(obj.list, 4)", [1, 2, 3, 4], id="lengthened"),
    ],
)
def test_keeps_a_list_a_list(change: str, expected: list[int]) -> None:
    """A table that came in as a list goes out as one, however it was changed."""
    script = Script(f"function evaluate() {change} return obj.list end")

    assert script.call("evaluate", globals={"obj": {"list": [1, 2, 3]}}) == expected


@pytest.mark.parametrize(
    ("expression", "wording"),
    [
        pytest.param("{ a = { f = print } }", "a function at 'a.f' cannot be JSON", id="function"),
        pytest.param(
            "{ { 0 / 0 } }", "a number that is not finite at '[1][1]' cannot be JSON", id="NaN"
        ),
        pytest.param(
            "{ a = { 1, x = 2 } }",
            "a table with both names and numbers as keys at 'a' cannot be JSON",
            id="mixed keys",
        ),
        pytest.param("{ [true] = 1 }", "a key of type boolean cannot be JSON", id="boolean key"),
        pytest.param(
            "(function() local t = {} t.up = { t } return t end)()",
            "a table that contains itself at 'up[1]' cannot be JSON",
            id="cycle",
        ),
        pytest.param(
            "(function() local t = {} for i = 1, 200 do t = { t } end return t end)()",
            "tables nested deeper than 100 cannot be JSON",
            id="depth",
        ),
    ],
)
def test_refuses_what_json_cannot_hold(expression: str, wording: str) -> None:
    """A result that JSON cannot hold is an error that says where."""
    with pytest.raises(LuaResultError) as caught:
        returned(expression)

    assert caught.value.wording == wording


def test_shares_tables_that_are_not_cycles() -> None:
    """The same table in two places is written twice."""
    assert returned("(function() local t = {1} return {a = t, b = t} end)()") == {
        "a": [1],
        "b": [1],
    }


def test_a_value_given_twice_is_one_table() -> None:
    """The argument and the global of one value are the same table, so changes show in both."""
    obj = {"n": 1}
    script = Script("function evaluate(o) o.n = 2 return { same = o == obj, n = obj.n } end")

    assert script.call("evaluate", globals={"obj": obj}, args=[obj]) == {"same": True, "n": 2}
    assert obj == {"n": 1}


def test_arguments_may_be_anything() -> None:
    """Arguments need not be globals, nor tables; a None is left out, as from every list."""
    script = Script("function evaluate(...) return { select('#', ...), ... } end")

    assert script.call("evaluate", globals={}, args=["a", 1, True, [2], {"k": []}]) == [
        5, "a", 1, True, [2], {"k": []},
    ]  # fmt: skip
