"""What Sveltos asks of scripts."""

import contextlib
from typing import Any

import pytest

from bellhop.luabox import (
    LuaResultError,
    LuaRuntimeError,
    LuaSyntaxError,
    Script,
    Selection,
    Subject,
    Verdict,
    diagnose,
    evaluate,
    select,
    write,
)

SERVICE = {"kind": "Service", "metadata": {"name": "front"}, "spec": {"ports": [{"port": 443}]}}


def body(text: str) -> Script:
    return Script(f"function evaluate()\n{text}\nend", name="source")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "function evaluate() return {matching = obj.kind == 'Service'} end", id="global"
        ),
        pytest.param(
            "function evaluate(o) return {matching = o.kind == 'Service'} end", id="argument"
        ),
        pytest.param(
            "kind = 'Service'\n"
            "function evaluate() hs = {} hs.matching = obj.kind == kind return hs end",
            id="globals of its own",
        ),
        pytest.param(
            "evaluate = function(...) local o = ... return {matching = o == obj} end", id="assigned"
        ),
    ],
)
def test_shows_the_object_as_global_and_as_argument(text: str) -> None:
    """Both forms that Sveltos documents work."""
    assert evaluate(Script(text), SERVICE) == Verdict(matching=True, message="")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "return {matching = true, message = 'yes'}",
            Verdict(matching=True, message="yes"),
            id="both",
        ),
        pytest.param(
            "return {matching = false}", Verdict(matching=False, message=""), id="no message"
        ),
        pytest.param(
            "return {message = 'eh'}", Verdict(matching=False, message="eh"), id="absent is false"
        ),
        pytest.param("return {}", Verdict(matching=False, message=""), id="empty table"),
        pytest.param(
            "return {matching = obj.no}", Verdict(matching=False, message=""), id="nil is false"
        ),
    ],
)
def test_reads_the_verdict(text: str, expected: Verdict) -> None:
    """`matching` and `message` are read as Sveltos reads them."""
    assert evaluate(body(text), SERVICE) == expected


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        pytest.param("return true", "lua script output is not a lua table", id="boolean"),
        pytest.param("", "lua script output is not a lua table", id="nothing"),
        pytest.param("return 'yes'", "lua script output is not a lua table", id="text"),
        pytest.param(
            "return {true, 'yes'}",
            "the table returned is a list, it must have named fields",
            id="list",
        ),
        pytest.param(
            "return {matching = 'true'}", "'matching' must be a boolean, not a string", id="word"
        ),
        pytest.param("return {matching = 1}", "'matching' must be a boolean, not a number", id="1"),
        pytest.param(
            "return {matching = {}}", "'matching' must be a boolean, not a table", id="table"
        ),
        pytest.param(
            "return {matching = true, message = false}",
            "'message' must be a string, not a boolean",
            id="message",
        ),
    ],
)
def test_refuses_another_result(text: str, wording: str) -> None:
    """A result that is no verdict is an error, never a guess."""
    with pytest.raises(LuaResultError) as caught:
        evaluate(body(text), SERVICE)

    assert str(caught.value) == f"source: {wording}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("return {resources = {resources[2]}}", [{"n": 2}], id="chosen"),
        pytest.param("return {resources = resources}", [{"n": 1}, {"n": 2}], id="all"),
        pytest.param("return {resources = {{new = true}}}", [{"new": True}], id="made"),
        pytest.param(
            "resources[1].n = 5 return {resources = {resources[1]}}", [{"n": 5}], id="changed"
        ),
        pytest.param("return {}", [], id="nil"),
        pytest.param("return {resources = {}}", [], id="empty"),
        pytest.param(
            "local r = {} for i, x in ipairs(resources) do if x.n > 1 then r[i] = x end end\n"
            "resources[1] = nil return {resources = resources}",
            [{"n": 2}],
            id="a hole closes",
        ),
    ],
)
def test_selects_resources(text: str, expected: list[dict[str, Any]]) -> None:
    """What is returned as resources are the resources."""
    assert select(body(text), [{"n": 1}, {"n": 2}]) == Selection(expected, "")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("{}", None),
        ("{message = 'no'}", None),
        ("{Matching = false, healthy = false, x = 1}", None),
        ("{matched = true}", "its script returns no field '{}', but 'matched'"),
        ("{b = 1, a = 1, message = 'x'}", "its script returns no field '{}', but 'a', 'b'"),
        (
            "{a1 = 1, a2 = 2, a3 = 3, a4 = 4, a5 = 5, a6 = 6}",
            "its script returns no field '{}', but 'a1', 'a2', 'a3', 'a4', 'a5', …",
        ),
    ],
)
def test_says_which_field_is_missing(returned: str, said: str | None) -> None:
    """A misspelt field is an error; a message without a result, or nothing, means no."""
    evaluated, health = (act(body(f"return {returned}"), SERVICE) for act in (evaluate, diagnose))

    assert not evaluated.matching
    assert (evaluated.lacks and str(evaluated.lacks)) == (said and said.format("matching"))
    assert (health.lacks and str(health.lacks)) == (said and said.format("healthy"))


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("function evaluate() end", True),
        ("evaluate = function() end", True),
        ("_G['evalu' .. 'ate'] = print", True),
        ("local function evaluate() end _G.evaluate = evaluate", True),
        ("local evaluate function evaluate() end", True),
        ("function evalute() end", False),
        ("local function evaluate() return {} end", False),
        ("-- function evaluate()\nfunction check() end", False),
    ],
)
def test_sees_that_a_script_cannot_define_the_function(text: str, may: bool) -> None:  # noqa: FBT001
    """Without running it, and never of one that might define it."""
    assert Script(text).may_define("evaluate") is may


def test_selects_with_a_message_by_argument() -> None:
    """The list is the argument too, and the message is kept."""
    script = Script("function evaluate(r) return {resources = r, message = #r .. ' found'} end")

    assert select(script, [{"n": 1}]) == Selection([{"n": 1}], "1 found")


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        pytest.param("return nil", "lua script output is not a lua table", id="nil"),
        pytest.param(
            "return {resources = 'all'}", "'resources' must be a list, not a string", id="text"
        ),
        pytest.param(
            "return {resources = {a = 1}}", "'resources' must be a list, not a table", id="map"
        ),
        pytest.param(
            "return {resources = {{}, 'x'}}",
            "'resources[2]' must be a table, not a string",
            id="item",
        ),
    ],
)
def test_refuses_another_selection(text: str, wording: str) -> None:
    """Resources must be a list of tables."""
    with pytest.raises(LuaResultError) as caught:
        select(body(text), [])

    assert caught.value.wording == wording


def test_asks_for_the_function() -> None:
    """A script without `evaluate` says so."""
    with pytest.raises(LuaRuntimeError, match="the script defines no function 'evaluate'"):
        evaluate(Script("function judge() end"), {})


def test_points_at_the_line_that_failed() -> None:
    """An error carries Lua's wording, the line and its text."""
    script = Script("function evaluate()\n  return obj.status.ip\nend", name="EventSource 'x'")
    with pytest.raises(LuaRuntimeError) as caught:
        evaluate(script, {})

    error = caught.value
    assert str(error) == "EventSource 'x':2: attempt to index field 'status' (a nil value)"
    assert (error.name, error.line, error.excerpt) == ("EventSource 'x'", 2, "return obj.status.ip")


@pytest.mark.parametrize(
    ("text", "line", "wording"),
    [
        pytest.param(
            "function evaluate(", 1, "<name> or '...' expected near '<eof>'", id="cut off"
        ),
        pytest.param("x = 1\ny = = 2", 2, "unexpected symbol near '='", id="symbol"),
        pytest.param("x = 'abc", 1, "unfinished string near '<eof>'", id="string"),
        pytest.param("goto done", 1, "'=' expected near 'done'", id="a later Lua's"),
        pytest.param("x = \u00e9", 1, "unexpected symbol near '\ufffd'", id="beyond ASCII"),
        pytest.param("\x1bLua", 1, "precompiled code is not accepted", id="bytecode"),
    ],
)
def test_refuses_what_is_no_lua(text: str, line: int, wording: str) -> None:
    """A syntax error is known when the script is made, with Lua's words and the place."""
    with pytest.raises(LuaSyntaxError) as caught:
        Script(text, name="s")

    assert str(caught.value) == f"s:{line}: {wording}"
    assert caught.value.excerpt == text.split("\n")[line - 1]


def test_top_level_code_runs_before_the_object_is_there() -> None:
    """The text is run first, then the global is set, then the function called."""
    script = Script(
        "seen = obj == nil\nfunction evaluate() return {matching = seen and obj ~= nil} end"
    )

    assert evaluate(script, {}).matching


@pytest.mark.parametrize(
    "vandalism",
    [
        pytest.param("obj.kind = 'Pod' obj.spec.ports[1].port = 80", id="values"),
        pytest.param("obj.metadata = nil o.extra = {}", id="keys"),
        pytest.param("table.remove(o.spec.ports) table.insert(o.spec.ports, 7)", id="a list"),
        pytest.param("setmetatable(obj, {__index = function() return 'x' end})", id="a metatable"),
        pytest.param("setmetatable(o.metadata, {__newindex = error})", id="one further down"),
        pytest.param("rawset(obj, 'kind', nil) obj = nil", id="the global"),
        pytest.param("leftover = obj _G.kept = o", id="another global"),
        pytest.param("function string.kept() return o end", id="the methods of strings"),
        pytest.param("for key in pairs(o) do o[key] = nil end error('x')", id="an error after it"),
    ],
)
def test_no_script_sees_what_another_makes_of_its_object(vandalism: str) -> None:
    """An object is converted once for many scripts, and each has tables of its own."""
    spoils = Script(f"function evaluate(o) {vandalism} return {{matching = true}} end")
    looks = Script(
        "function evaluate(o)"
        " local same = o == obj and o.kind == 'Service' and o.metadata.name == 'front'"
        " local ports = #o.spec.ports == 1 and o.spec.ports[1].port == 443"
        " local bare = getmetatable(o) == nil and getmetatable(o.metadata) == nil"
        " local none = leftover == nil and kept == nil and o.extra == nil and ('x').kept == nil"
        " return {matching = same and ports and bare and none} end"
    )
    subject = Subject(SERVICE)
    assert evaluate(looks, subject).matching

    with contextlib.suppress(LuaRuntimeError):
        evaluate(spoils, subject)

    assert evaluate(looks, subject).matching
    assert evaluate(looks, Subject(SERVICE)).matching


def test_each_object_is_judged_as_itself() -> None:
    """The object of the last evaluation is not taken for the present one."""
    script = body("return {matching = obj.kind == 'Service', message = obj.metadata.name}")
    one, other = Subject(SERVICE), Subject({"kind": "Pod", "metadata": {"name": "back"}})

    said = [evaluate(script, each) for each in (one, other, one, other)]

    assert (
        said
        == [
            Verdict(matching=True, message="front"),
            Verdict(matching=False, message="back"),
        ]
        * 2
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("return {healthy = true, message = 'up'}", (True, "up"), id="healthy"),
        pytest.param("return {Healthy = true}", (True, ""), id="whatever the case"),
        pytest.param("return {matching = true}", (False, ""), id="absent is false"),
        pytest.param("return {healthy = metrics ~= nil}", (True, ""), id="metrics are there"),
    ],
)
def test_reads_the_health(text: str, expected: tuple[bool, str]) -> None:
    """`healthy` and `message` are read as Sveltos reads them."""
    assert diagnose(body(text), SERVICE)[:2] == expected


def test_refuses_health_that_is_no_word_for_it() -> None:
    """A result that says neither is an error, never a guess."""
    with pytest.raises(LuaResultError, match="'healthy' must be a boolean, not a string"):
        diagnose(body("return {healthy = 'yes'}"), SERVICE)


def test_a_script_writes_one_text() -> None:
    """Of what it is given by name, as a global and as its argument; nothing at all is fine."""
    text = "function evaluate(given) return {Resources = given.a.b .. resources.a.b} end"

    assert write(Script(text), {"a": {"b": "x"}}) == "xx"
    assert write(Script("function evaluate() return {} end"), {}) == ""


@pytest.mark.parametrize("returned", ["1", "{}", "{'a'}", "true"])
def test_what_is_written_is_a_text(returned: str) -> None:
    """Anything else is distinguished from it."""
    with pytest.raises(LuaResultError, match="'resources' must be a string, not a"):
        write(Script(f"function evaluate() return {{resources = {returned}}} end"), {})
