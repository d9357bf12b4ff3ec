"""What a script cannot ask an object for is not copied into Lua, and no script can notice."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.luabox import LuaLimitError, Script, Subject, evaluate
from bellhop.luabox.keys import REACHING, keys_said

ALWAYS = {"obj", "matching", "message"}

WORDS = """
    _VERSION assert error ipairs pcall print rawequal rawset select tonumber tostring type unpack
    xpcall base64Decode base64Encode
    coroutine create resume running status wrap yield
    math abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max
    min mod modf pi pow rad random randomseed sin sinh sqrt tan tanh
    os clock date difftime
    string byte char find format gfind gmatch len lower match rep reverse sub upper
    table concat getn insert maxn remove setn sort
"""
HARMLESS = {*WORDS.split()}
"""What a script can call by name without a way to keys that it does not say."""


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param("return obj.spec.ports", {"spec", "ports"}, id="names"),
        pytest.param("a = obj . spec --[[ .c ]] . ports", {"a", "spec", "ports"}, id="space"),
        pytest.param("a = obj.spec -- obj.status", {"a", "spec"}, id="a comment"),
        pytest.param("a = obj['b.c/d']", {"a", "b.c/d"}, id="by a text"),
        pytest.param('a = obj[ "b" ]["c"][1].d', {"a", "b", "c", "d"}, id="texts in turn"),
        pytest.param("a = {['b'] = 'c'}", {"a", "b"}, id="a table's own key"),
        pytest.param("a = 'obj.status' .. [[ x.y ]]", {"a"}, id="a text that is no index"),
        pytest.param("a:b()", {"a", "b"}, id="a method"),
        pytest.param("for i = 1, #a do b(i) end", {"a", "b", "i"}, id="no keywords"),
        pytest.param("", set(), id="nothing"),
    ],
)
def test_says_its_keys(text: str, keys: set[str]) -> None:
    """The keys that a script may ask for are the names of its code and the texts it indexes by."""
    assert keys_said(text) == keys | ALWAYS


@pytest.mark.parametrize(
    "text",
    [
        "a = obj[b]",
        "a = obj['b' .. c]",
        "a = obj[('b')]",
        "a = obj['b\\99']",
        "a = obj[ [[b]] ]",
        "a = obj[--\n'b']",
        "a = obj['b'",
        "a = obj[b",
        "a = obj[1.5]",
        "a = {[b] = 1}",
        "a = obj.größe",
        "for k in pairs(obj) do end",
        "local every = pairs",
        "a = next(obj)",
        "a = ('b'):gsub('%w', obj)",
        "a = rawget(obj, b)",
        "a = string['gsub']('b', '%w', obj)",
        "a = _G.b",
        "local json = require('json')",
    ],
)
def test_may_ask_for_any_key(text: str) -> None:
    """Who goes through keys, or makes one, sees them all."""
    assert keys_said(text) is None


def test_knows_of_every_name_in_the_box_whether_it_reaches_keys() -> None:
    """Each function of the box either cannot read a key that nobody said, or is marked to do so."""
    script = Script("""
        local names = {}
        local function add(t)
          for name, value in pairs(t) do
            names[#names + 1] = name
            if type(value) == "table" and value ~= t then add(value) end
          end
        end
        function evaluate() add(_G) return names end""")

    names = {*script.call("evaluate", globals={})} - {"evaluate"}

    assert names - REACHING == HARMLESS


SECRET: dict[str, Any] = {
    "kind": "Secret",
    "metadata": {"name": "web", "labels": {"hidden": "h", "app": "a"}},
    "data": {"hidden": "v"},
    "list": [{"hidden": 1, "shown": 2}],
    "year": 2026,
    "month": 1,
    "day": 2,
    "unfit": "told",
}

SCRIPTS = {
    "says": "return {matching = obj.metadata.name == 'web', message = obj.data.hidden}",
    "hands on": "local d = obj.data return {message = tostring(d ~= nil) .. tostring(#obj.list)}",
    "its argument": "return {message = given.data.hidden}",
    "goes through": "local m = '' for k in pairs(obj.data) do m = m .. k end return {message = m}",
    "by another name": "local f = pairs local m = '' for k in f(obj.data) do m = k end"
    " return {message = m}",
    "takes the next": "return {message = (next(obj.data))}",
    "by a made key": "return {message = obj.data['hid' .. 'den']}",
    "by a variable": "local k = ('nedd' .. 'ih'):reverse() return {message = obj.data[k]}",
    "by its bytes": "return {message = obj.data['\\104idden']}",
    "by a replacement": "return {message = (('hid' .. 'den'):gsub('%w+', obj.data))}",
    "by a library's index": "return {message = (string['gsub']('hid' .. 'den', '%w+', obj.data))}",
    "its label": "return {message = getLabel(obj, 'hid' .. 'den')}",
    "a resource": "return {message = getResource(obj, 'da' .. 'ta').hidden}",
    "raw": "return {message = rawget(obj.data, 'hid' .. 'den')}",
    "behind a metatable": "local t = setmetatable({}, {__index = obj.data})"
    " return {message = t['hid' .. 'den']}",
    "through its environment": "return {message = _G['ob' .. 'j'].data['hid' .. 'den']}",
    "through a module": "return {message = require('json').encode(obj.data)}",
    "as a date": "return {message = tostring(os.time(obj))}",
    "each of a list": "local m = '' for _, e in ipairs(obj.list) do m = m .. e.shown end"
    " return {message = m}",
    "one of a list": "return {message = tostring(obj.list[1].shown)}",
    "by its number": "local i = 1 return {message = tostring(obj.list[i].hidden)}",
    "what is not there": "return {matching = obj.metadata.annotations == nil}",
    "the type of it": "return {message = type(obj.metadata) .. type(obj.data.none)}",
    "a part of it": "return {matching = true, object = obj.metadata}",
    "writes into it": "obj.data.mine = 'x' return {message = obj.data.mine}",
    "joins": "return {message = table.concat({obj.metadata.name, obj.kind}, '/')}",
    "unpacks": "local one = unpack(obj.list) return {message = tostring(one.shown)}",
    "in a coroutine": "local f = coroutine.wrap(function(o) return o.data.hidden end)"
    " return {message = f(obj)}",
    "caught": "local ok, e = pcall(function() error(obj) end) return {message = e.kind}",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_says_the_same_as_of_the_whole_object(name: str) -> None:
    """Whatever way a script takes, it finds what it would have found in all of the object."""
    script = Script(f"function evaluate(given) {SCRIPTS[name]} end")
    whole = script.call("evaluate", globals={"obj": SECRET}, args=[SECRET])

    verdict = evaluate(script, SECRET)

    assert verdict[:2] == (whole.get("matching", False), whole.get("message", ""))


def test_returns_a_part_of_the_object_that_says_so_itself() -> None:
    """The fields of a verdict are read from a part of the object, too."""
    script = Script("function evaluate() return obj.verdict end")

    verdict = evaluate(script, {"verdict": {"matching": True, "message": "its own"}})

    assert verdict[:2] == (True, "its own")


def test_copies_no_more_than_is_said() -> None:
    """An object costs a script what it can ask for, however much else is in it."""
    script = Script("function evaluate() return {matching = obj.kind == 'Secret'} end")
    huge = SECRET | {"data": {f"k{n}": "v" for n in range(10_000)}}

    small, large = (Subject(each).given_to(script).tokens for each in (SECRET, huge))

    assert len(large) == len(small) < 10


def test_converts_once_for_scripts_that_can_ask_the_same() -> None:
    """Scripts that differ in a comment share what was converted; those that say more do not."""
    text = "function evaluate() return {matching = obj.kind == 'Secret'} end"
    subject = Subject(SECRET)
    one, alike = (Script(f"{text} -- {comment}") for comment in "ab")
    more = Script(text.replace("kind", "metadata.name"))

    given = subject.given_to(one)

    assert subject.given_to(alike) is given
    assert subject.given_to(more) is not given


def test_minds_the_depth_of_what_it_copies() -> None:
    """What is nested too deeply is refused where a script can ask for it, and nowhere else."""
    deep: dict[str, Any] = {}
    at = deep
    for _ in range(200):
        at["down"] = at = {}
    obj = {"kind": "Secret", "spec": deep}

    assert evaluate(Script("function evaluate() return {matching = obj.kind ~= nil} end"), obj)
    with pytest.raises(LuaLimitError, match="nested too deeply"):
        evaluate(Script("function evaluate() return {matching = obj.spec.down ~= nil} end"), obj)
