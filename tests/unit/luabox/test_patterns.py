"""Patterns that may backtrack for long are matched in Lua, and must match as C does."""

import random

import pytest
from lupa import lua51

from bellhop.luabox import LuaRuntimeError, Script

# Matches nothing but the empty string in subjects without byte 1, and makes any pattern look
# dear enough to be matched in Lua.
DEAR = "\1?" * 24

PIECES = (
    *("a", "b", ".", "%a", "%d", "%w", "%s", "[ab]", "[^a]", "[a-c]", "[%d_]", "[]]", "[^]]"),
    *("%.", "%%", "^", "-", "%b()", "%f[%w]", "%f[^a]", "()", "%u", "%z"),
)
QUANTIFIERS = ("", "", "", "*", "+", "-", "?")

CALLS = """
function evaluate(given)
  local s, p = given.subject, given.pattern
  local function show(...)
    local out = {}
    for index = 1, select("#", ...) do out[index] = tostring((select(index, ...))) end
    return table.concat(out, "|")
  end
  local function try(f, ...)
    local ok, got = pcall(function(...) return show(f(...)) end, ...)
    return ok and got or "error"
  end
  local words = {}
  local ok = pcall(function()
    for a, b in string.gmatch(s, p) do words[#words + 1] = show(a, b) end
  end)
  return {
    try(string.find, s, p), try(string.find, s, p, 3), try(string.find, s, p, -2),
    try(string.match, s, p), try(string.match, s, p, 2),
    try(string.gsub, s, p, "<%0>"), try(string.gsub, s, p, "%1", 2),
    try(string.gsub, s, p, {a = "A", ab = false}), try(string.gsub, s, p, function(x) return x end),
    ok and table.concat(words, ",") or "error",
  }
end
"""


def patterns(seed: int, count: int) -> list[tuple[str, str]]:
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        parts = [
            piece + (dice.choice(QUANTIFIERS) if not piece.startswith(("%b", "%f", "()")) else "")
            for piece in dice.choices(PIECES, k=dice.randint(1, 4))
        ]
        if dice.random() < 0.5:
            first = dice.randint(0, len(parts) - 1)
            last = dice.randint(first, len(parts) - 1)
            parts[first] = "(" + parts[first]
            parts[last] += ")"
            if dice.random() < 0.3:
                parts.append("%1")
        anchor = "^" if dice.random() < 0.2 else ""
        subject = "".join(dice.choices("aab1 _(.)%-]^B", k=dice.randint(0, 12)))
        made.append((subject, anchor + "".join(parts)))
    return made


@pytest.mark.parametrize("seed", range(3))
def test_lua_and_c_match_alike(seed: int) -> None:
    """Whatever C's matcher answers to random patterns, the box's own answers too."""
    boxed = Script(CALLS)
    plain = lua51.LuaRuntime(encoding="latin-1")
    plain.execute(CALLS)
    for subject, pattern in patterns(seed, 200):
        given = {"subject": subject, "pattern": pattern + DEAR}
        expected = list(plain.globals().evaluate(plain.table_from(given)).values())

        assert (pattern, boxed.call("evaluate", globals={}, args=[given])) == (pattern, expected)


@pytest.mark.parametrize(
    ("pattern", "wording"),
    [
        pytest.param("(a", "unfinished capture", id="open group"),
        pytest.param(".)", "invalid pattern capture", id="close without open"),
        pytest.param("[a", "malformed pattern (missing ']')", id="open class"),
        pytest.param("a%", "malformed pattern (ends with '%')", id="dangling escape"),
        pytest.param("%1", "invalid capture index", id="no such capture"),
        pytest.param("%b(", "unbalanced pattern", id="half a balance"),
        pytest.param("%fa", "missing '[' after '%f' in pattern", id="frontier without class"),
        pytest.param("()" * 33, "too many captures", id="too many captures"),
    ],
)
@pytest.mark.parametrize("length", [pytest.param(1, id="in C"), pytest.param(50000, id="in Lua")])
def test_words_a_malformed_pattern_as_lua_does(pattern: str, wording: str, length: int) -> None:
    """Both matchers refuse a malformed pattern in Lua's own words, at the script's line."""
    script = Script("function evaluate(g)\n local found = (g.s):find(g.p) end")
    given = {"s": "ba" * length, "p": ".-.-" * (length > 1) + pattern}
    with pytest.raises(LuaRuntimeError) as caught:
        script.call("evaluate", globals={}, args=[given])

    assert (caught.value.line, caught.value.wording) == (2, wording)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("('x'):rep(5e4) .. ' end'", "end", id="long subject"),
        pytest.param("'  end'", "end", id="short subject"),
    ],
)
def test_matches_long_texts_too(expression: str, expected: str) -> None:
    """A pattern too dear for C on a long text still gives its match."""
    script = Script(f"function evaluate() return ({expression}):match('^%s*(.-)%s*$') end")
    found = script.call("evaluate", globals={})

    assert found.endswith(expected)


def test_finds_plain_text_beyond_the_first_window() -> None:
    """A long plain search, split into windows, finds its text and the right place."""
    text = "('a'):rep(2e6) .. 'b' .. ('a'):rep(10)"
    script = Script(
        f"function evaluate() return {{({text}):find(('a'):rep(99) .. 'b', 5, true)}} end"
    )

    assert script.call("evaluate", globals={}) == [1999902, 2000001]
