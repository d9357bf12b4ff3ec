"""The modules and functions scripts have beyond Lua's own library."""

from typing import Any

import pytest

from bellhop.luabox import LuaRuntimeError, Script

PRELUDE = """
local json, strings, runes = require("json"), require("strings"), require("runes")
local function upper_case(c) return c >= 65 and c <= 90 end
"""


def value_of(expression: str, **given: object) -> Any:
    script = Script(f"{PRELUDE}function evaluate() return {{ {expression} }} end")
    return script.call("evaluate", globals=given)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("strings.Compare('a', 'b')", -1, id="Compare"),
        pytest.param("strings.Contains('seafood', 'foo')", True, id="Contains"),
        pytest.param("strings.Contains('a', '')", True, id="Contains nothing"),
        pytest.param("strings.ContainsAny('team', 'xyzm')", True, id="ContainsAny"),
        pytest.param("strings.ContainsRune('caf\u00e9', 233)", True, id="ContainsRune"),
        pytest.param("strings.Count('cheese', 'e')", 3, id="Count"),
        pytest.param("strings.Count('f\u00efve', '')", 5, id="Count of nothing"),
        pytest.param("strings.EqualFold('Go', 'GO')", True, id="EqualFold"),
        pytest.param("strings.Fields('  a b  c ')", ["a", "b", "c"], id="Fields"),
        pytest.param("strings.FieldsFunc('aXbYc', upper_case)", ["a", "b", "c"], id="FieldsFunc"),
        pytest.param("strings.HasPrefix('front-v2', 'front')", True, id="HasPrefix"),
        pytest.param("strings.HasSuffix('front-v2', '-v2')", True, id="HasSuffix"),
        pytest.param("strings.HasSuffix('x', 'long')", False, id="HasSuffix longer"),
        pytest.param("strings.Index('chicken', 'ken')", 4, id="Index"),
        pytest.param("strings.Index('chicken', 'dmr')", -1, id="Index absent"),
        pytest.param("strings.IndexAny('golang', 'ny')", 4, id="IndexAny"),
        pytest.param("strings.IndexByte('golang', 108)", 2, id="IndexByte"),
        pytest.param("strings.IndexFunc('abCd', upper_case)", 2, id="IndexFunc"),
        pytest.param("strings.IndexRune('caf\u00e9', 233)", 3, id="IndexRune"),
        pytest.param("strings.Join({'a', 'b', 3}, '/')", "a/b", id="Join takes strings only"),
        pytest.param("strings.LastIndex('go gopher', 'go')", 3, id="LastIndex"),
        pytest.param("strings.LastIndex('aaa', 'aa')", 1, id="LastIndex overlapping"),
        pytest.param("strings.LastIndexAny('golang', 'gn')", 5, id="LastIndexAny"),
        pytest.param("strings.LastIndexByte('golang', 103)", 5, id="LastIndexByte"),
        pytest.param("strings.LastIndexFunc('aBcD', upper_case)", 3, id="LastIndexFunc"),
        pytest.param("strings.Map(function(c) return c + 1 end, 'HAL')", "IBM", id="Map"),
        pytest.param("strings.Repeat('ab', 3)", "ababab", id="Repeat"),
        pytest.param("strings.Replace('oink oink', 'k', 'ky', 1)", "oinky oink", id="Replace"),
        pytest.param("strings.Replace('a.b.c', '.', '%1', -1)", "a%1b%1c", id="Replace is plain"),
        pytest.param("strings.Replace('ab', '', '-', -1)", "-a-b-", id="Replace nothing"),
        pytest.param("strings.Split('a,b,c', ',')", ["a", "b", "c"], id="Split"),
        pytest.param("strings.Split('', ',')", [""], id="Split nothing"),
        pytest.param("strings.Split('a\u00e9', '')", ["a", "\u00e9"], id="Split by nothing"),
        pytest.param("strings.SplitAfter('a,b', ',')", ["a,", "b"], id="SplitAfter"),
        pytest.param("strings.SplitAfterN('a,b,c', ',', 2)", ["a,", "b,c"], id="SplitAfterN"),
        pytest.param("strings.SplitN('a,b,c', ',', 2)", ["a", "b,c"], id="SplitN"),
        pytest.param("tostring(strings.SplitN('a,b', ',', 0))", "nil", id="SplitN zero"),
        pytest.param("strings.Title('hello big-world')", "Hello Big-World", id="Title"),
        pytest.param("strings.ToLower('GoPher')", "gopher", id="ToLower"),
        pytest.param("strings.ToTitle('loud')", "LOUD", id="ToTitle"),
        pytest.param("strings.ToUpper('loud')", "LOUD", id="ToUpper"),
        pytest.param("strings.Trim('xx\u00e9abx', 'x\u00e9')", "ab", id="Trim"),
        pytest.param("strings.TrimFunc('ABcD', upper_case)", "c", id="TrimFunc"),
        pytest.param("strings.TrimLeft('00012', '0')", "12", id="TrimLeft"),
        pytest.param("strings.TrimLeftFunc('ABcD', upper_case)", "cD", id="TrimLeftFunc"),
        pytest.param("strings.TrimPrefix('v1.2', 'v')", "1.2", id="TrimPrefix"),
        pytest.param("strings.TrimRight('1200', '0')", "12", id="TrimRight"),
        pytest.param("strings.TrimRightFunc('ABcD', upper_case)", "ABc", id="TrimRightFunc"),
        pytest.param("strings.TrimSpace('\\t a b \\n')", "a b", id="TrimSpace"),
        pytest.param("strings.TrimSpace('  ')", "", id="TrimSpace of space"),
        pytest.param("strings.TrimSuffix('a.yaml', '.yaml')", "a", id="TrimSuffix"),
    ],
)
def test_strings_are_those_of_go(expression: str, expected: Any) -> None:
    """Each function answers as its namesake in Go's strings package."""
    result = value_of(f"value = {expression}")["value"]

    assert result == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("runes.bytestorune({195, 169})", 233, id="bytestorune"),
        pytest.param("runes.bytetostring({104, 105})", "hi", id="bytetostring"),
        pytest.param("runes.containsrune('caf\u00e9', 233)", True, id="containsrune"),
        pytest.param("runes.isinrange(5, 1, 9)", True, id="isinrange"),
        pytest.param("runes.isvalidutf8('caf\\195')", False, id="isvalidutf8"),
        pytest.param("runes.isvalidutf8('\\237\\160\\128')", False, id="a surrogate is invalid"),
        pytest.param("runes.reverserunes('h\u00e9!')", "!\u00e9h", id="reverserunes"),
        pytest.param("runes.runeat('h\u00e9', 2)", 233, id="runeat"),
        pytest.param("tostring(runes.runeat('h', 5))", "nil", id="runeat beyond"),
        pytest.param("runes.runecount('\u4e16\u754c!')", 3, id="runecount"),
        pytest.param("runes.runeindex('abca', 97, 2)", 4, id="runeindex"),
        pytest.param("runes.runerange('h\u00e9llo', 2, 4)", "\u00e9l", id="runerange"),
        pytest.param("runes.runerange('h\u00e9llo', 2)", "\u00e9llo", id="runerange open"),
        pytest.param("runes.runeslice('a\u00e9')", [97, 233], id="runeslice"),
        pytest.param("runes.runesplit('a\u00e9b', 233)", ["a", "b"], id="runesplit"),
        pytest.param("runes.runestring(72, 233, 128718)", "H\u00e9\U0001f6ce", id="runestring"),
        pytest.param("runes.runetobytes({233})", [195, 169], id="runetobytes"),
        pytest.param("runes.runewidth(128718)", 4, id="runewidth"),
        pytest.param("runes.stringtobytes('hi')", [104, 105], id="stringtobytes"),
        pytest.param("runes.validrune(55296)", False, id="validrune"),
        pytest.param("string.char(runes.toupper(97), runes.tolower(65))", "Aa", id="case"),
        pytest.param(
            "tostring(runes.isletter(65) and not runes.isdigit(65))", "true", id="classes"
        ),
        pytest.param(
            "tostring(runes.ispunct(33) and runes.issymbol(43))", "true", id="punctuation"
        ),
    ],
)
def test_runes_are_characters(expression: str, expected: Any) -> None:
    """Each function of runes answers for characters, not bytes."""
    result = value_of(f"value = {expression}")["value"]

    assert result == expected


def test_runes_beyond_ascii_are_not_guessed() -> None:
    """Asked what kind of character a code point beyond ASCII is, runes refuses."""
    with pytest.raises(LuaRuntimeError, match="knows ASCII only, not code point 233"):
        value_of("runes.isletter(233)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"a": [1, 2.5, true, false, "x"], "b": {}}', None, id="everything"),
        pytest.param('"\\u00e9\\ud83d\\udece"', "\u00e9\U0001f6ce", id="code points"),
        pytest.param('"\\n\\"\\\\\\/"', '\n"\\/', id="escapes"),
        pytest.param('"\\ud800"', "\ufffd", id="half a pair"),
        pytest.param("[1, null, 2]", [1, 2], id="null is absent"),
        pytest.param(" [ ] ", [], id="space"),
        pytest.param("-1.5e3", -1500, id="number"),
        pytest.param('"caf\u00e9\x7f"', "caf\u00e9\x7f", id="raw text"),
    ],
)
def test_decodes_json(text: str, expected: Any) -> None:
    """JSON becomes what the same value given by the host would be."""
    whole = {"a": [1, 2.5, True, False, "x"], "b": {}}
    result = value_of("value = json.decode(text)", text=text)

    assert result["value"] == (whole if expected is None else expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "unexpected end of JSON input at position 1", id="nothing"),
        pytest.param("{'a': 1}", "expected a string key at position 2", id="quotes"),
        pytest.param('{"a" 1}', "expected ':' at position 6", id="colon"),
        pytest.param("[1 2]", "invalid character at position 4", id="comma"),
        pytest.param("[1", "unexpected end of JSON input at position 3", id="cut off"),
        pytest.param('"abc', "unterminated string at position 1", id="string"),
        pytest.param('"\\x"', "invalid character in string at position 2", id="escape"),
        pytest.param("1 2", "invalid character after top-level value at position 3", id="two"),
        pytest.param("nope", "invalid character at position 1", id="word"),
        pytest.param("[" * 200, "nested too deeply at position 101", id="depth"),
    ],
)
def test_says_why_json_is_bad(text: str, why: str) -> None:
    """Bad JSON gives nil and a reason, not an error."""
    script = Script(
        "function evaluate() local v, e = require('json').decode(text)"
        " return {v = tostring(v), e = e} end"
    )
    result = script.call("evaluate", globals={"text": text})

    assert result == {"v": "nil", "e": why}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("{a = 1}", '{"a":1}', id="object"),
        pytest.param("{1, 'x', true}", '[1,"x",true]', id="list"),
        pytest.param("{}", "[]", id="an empty table is a list, as in Sveltos"),
        pytest.param("'caf\u00e9 \"q\"\\n'", '"caf\u00e9 \\"q\\"\\n"', id="text"),
        pytest.param("nil", "null", id="nil"),
    ],
)
def test_encodes_json(expression: str, expected: str) -> None:
    """Values become compact JSON."""
    assert value_of(f"value = json.encode({expression})") == {"value": expected}


def test_says_why_it_cannot_encode() -> None:
    """What JSON cannot hold gives nil and a reason."""
    script = Script(
        "function evaluate() local v, e = require('json').encode({f = print})"
        " return {v = tostring(v), e = e} end"
    )

    assert script.call("evaluate", globals={}) == {
        "v": "nil",
        "e": "a function at 'f' cannot be JSON",
    }


@pytest.mark.parametrize("text", ["a", "ab", "abc", "abcd", "caf\u00e9 \U0001f6ce", "x" * 100])
def test_base64_there_and_back(text: str) -> None:
    """What base64Encode made, base64Decode reads."""
    assert value_of("base64Decode(base64Encode(text))", text=text) == [text]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("base64Encode('hello')", ["aGVsbG8=", "nil"], id="encode"),
        pytest.param("base64Decode('aGVs\\nbG8=')", ["hello", "nil"], id="line ends"),
        pytest.param("base64Encode('')", ["nil", "provided string is empty"], id="encode nothing"),
        pytest.param("base64Decode('')", ["nil", "provided string is empty"], id="decode nothing"),
        pytest.param("base64Decode('a$b=')", ["nil", "decoding failed"], id="not base64"),
        pytest.param("base64Decode('abc')", ["nil", "decoding failed"], id="cut off"),
        pytest.param("base64Decode('ab=c')", ["nil", "decoding failed"], id="padding within"),
        pytest.param("getLabel(obj, 'app')", ["front", "nil"], id="label"),
        pytest.param("getLabel(obj, 'tier')", ["nil", "nil"], id="absent label"),
        pytest.param("getLabel({}, 'app')", ["nil", "nil"], id="no metadata"),
        pytest.param("getLabel({metadata = 'x'}, 'app')", ["nil", "nil"], id="odd metadata"),
        pytest.param("getLabel(obj)", ["nil", "expected 2 arguments (table, key)"], id="no key"),
        pytest.param("getAnnotation(obj, 'note')", ["n", "nil"], id="annotation"),
        pytest.param("getResource({Web = 'w'}, 'Web')", ["w", "nil"], id="resource"),
        pytest.param("getResource({}, 'Web')", ["nil", "nil"], id="absent resource"),
    ],
)
def test_functions_for_kubernetes(call: str, expected: list[str]) -> None:
    """The global functions of Sveltos answer as there, errors as second results."""
    script = Script(
        f"function evaluate() local a, b = {call} return {{tostring(a), tostring(b)}} end"
    )
    obj = {"metadata": {"labels": {"app": "front"}, "annotations": {"note": "n"}}}

    assert script.call("evaluate", globals={"obj": obj}) == expected


@pytest.mark.parametrize(
    ("call", "wording"),
    [
        pytest.param(
            "strings.Split('a')",
            "bad argument #2 to 'Split' (string expected, got nil)",
            id="absent",
        ),
        pytest.param(
            "getLabel('x', 'y')",
            "bad argument #1 to 'getLabel' (table expected, got string)",
            id="kind",
        ),
        pytest.param(
            "json.decode({})", "bad argument #1 to 'decode' (string expected, got table)", id="json"
        ),
    ],
)
def test_words_bad_arguments_as_lua_does(call: str, wording: str) -> None:
    """A wrong argument is named as Lua's own library names it."""
    with pytest.raises(LuaRuntimeError) as caught:
        Script(f"{PRELUDE}function evaluate() local x = {call} end").call("evaluate", globals={})

    assert caught.value.wording == wording
