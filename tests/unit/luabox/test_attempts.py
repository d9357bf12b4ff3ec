"""Attempts to get out of the box, or to exhaust it, each with the end that it must come to.

Whatever it is, the process stays small, and the next script starts afresh.
"""

from __future__ import annotations

import resource
import time

import pytest

from bellhop.luabox import (
    Limits,
    LuaError,
    LuaLimitError,
    LuaResultError,
    LuaRuntimeError,
    LuaSyntaxError,
    Script,
)

MIB = 1024 * 1024
LOOP = "while true do end"
TRAP = f"function() {LOOP} end"
TRAPPED = f"setmetatable({{}}, {{__index = {TRAP}, __tostring = {TRAP}, __len = {TRAP}}})"
TABLES = "local t = {} while true do t[#t + 1] = {} end"

STOPPED: dict[str, tuple[str, str]] = {
    "loops": (LOOP, "steps"),
    "counts for ever": ("for i = 1, 1 / 0 do end", "steps"),
    "loops under pcall": (f"while true do pcall({TRAP}) end", "steps"),
    "loops under pcall under pcall": (f"return pcall(pcall, {TRAP})", "steps"),
    "fails for ever": ("while true do pcall(error) end", "steps"),
    "loops where errors are handled": (f"xpcall(error, {TRAP})", "steps"),
    "loops where a limit is handled": (f"xpcall({TRAP}, {TRAP})", "steps"),
    "goes on after a limit": (f"pcall({TRAP}) return 'escaped'", "steps"),
    "goes on after its memory": (f"pcall(function() {TABLES} end) return 'escaped'", "memory"),
    "uses memory where errors are handled": (
        f"return xpcall(error, function() {TABLES} end)",
        "memory",
    ),
    "loops in a thread": (f"coroutine.wrap({TRAP})()", "steps"),
    "loops in C in a thread": (f"return coroutine.wrap(pcall)({TRAP})", "steps"),
    "loops in threads that are resumed": (
        f"while true do coroutine.resume(coroutine.create({TRAP})) end",
        "steps",
    ),
    "loops in threads in threads": (
        f"local function f() coroutine.resume(coroutine.create(f)) end f() {LOOP}",
        "steps",
    ),
    "goes on when a thread met a limit": (
        f"coroutine.resume(coroutine.create({TRAP})) return 'escaped'",
        "steps",
    ),
    "goes on when a thread used its memory": (
        f"pcall(coroutine.wrap(function() {TABLES} end)) return 'escaped'",
        "memory",
    ),
    "makes threads for ever": (
        "while true do coroutine.wrap(function() coroutine.yield() end)() end",
        "steps memory",
    ),
    "keeps threads": (
        "local t = {} while true do t[#t + 1] = coroutine.create(print) end",
        "memory",
    ),
    "yields for ever": (
        "for _ in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end",
        "steps",
    ),
    "wraps threads in threads": (
        "local function f() return coroutine.wrap(f)() end return f()",
        "depth",
    ),
    "calls a chain of threads": (
        (
            "local f = print for _ = 1, 300 do local g = f"
            " f = function() return coroutine.wrap(g)() end end return f()"
        ),
        "depth",
    ),
    "calls itself": ("local function f() return 1 + f() end return f()", "depth"),
    "calls itself at its end": ("local function f() return f() end return f()", "steps"),
    "calls itself through gsub": (
        "local function f() return (('x'):gsub('x', f)) end return f()",
        "depth",
    ),
    "calls itself through sort": ("local function f() table.sort({2, 1}, f) end f()", "depth"),
    "calls itself through tostring": (
        (
            "local m = {} m.__tostring = function(t) return tostring(t) end"
            " return tostring(setmetatable({}, m))"
        ),
        "depth",
    ),
    "calls itself through a comparison": (
        (
            "local m = {} m.__lt = function(a, b) return a < b end"
            " return setmetatable({}, m) < setmetatable({}, m)"
        ),
        "depth",
    ),
    "calls itself through a join": (
        (
            "local m = {} m.__concat = function(a, b) return a .. b end"
            " return setmetatable({}, m) .. 'x'"
        ),
        "depth",
    ),
    "calls itself through an index": (
        "return setmetatable({}, {__index = function(t, k) return t[k .. 'x'] end}).a",
        "depth",
    ),
    "handles errors by errors": (
        "local function h() return xpcall(error, h) end return xpcall(error, h)",
        "depth",
    ),
    "pretends that memory is gone": ("error('not enough memory', 0)", "memory"),
    "pretends that the stack is gone": ("error('stack overflow', 0)", "depth"),
    "loops in tostring": (f"return tostring({TRAPPED})", "steps"),
    "loops in a format": (f"return ('%s'):format({TRAPPED})", "steps"),
    "loops in a minus": (f"return -setmetatable({{}}, {{__unm = {TRAP}}})", "steps"),
    "loops in a module's name": (f"return require({TRAPPED})", "steps"),
    "loops in a date": (f"return os.time({TRAPPED})", "steps"),
    "loops in a helper": (f"return getLabel({TRAPPED}, 'x')", "steps"),
    "loops in a method of texts": (f"string.x = {TRAP} return ('a'):x()", "steps"),
    "loops in a replacement": (f"return (('x'):gsub('x', {TRAPPED}))", "steps"),
    "loops in a comparison": (f"table.sort({{1, 2}}, {TRAP})", "steps"),
    "loops in foreach": (f"table.foreach({{1}}, {TRAP})", "steps"),
    "waits for the clock": ("while os.clock() >= 0 do end", "time"),
    "doubles a text": ("local s = 'x' while true do s = s .. s end", "memory"),
    "joins a letter to a text": (
        "local s = ('x'):rep(5e6) while true do local t = s .. 'a' end",
        "time",
    ),
    "repeats a text": ("return ('x'):rep(1e9)", "memory"),
    "repeats without end": ("return ('x'):rep(1 / 0)", "memory"),
    "repeats by a number in a text": ("return ('x'):rep('1e9')", "memory"),
    "repeats what was repeated": ("return #('x'):rep(1e4):rep(1e4)", "memory"),
    "repeats by a module": ("return require('strings').Repeat('x', 1e9)", "memory"),
    "repeats in C in a thread": ("return coroutine.wrap(string.rep)('x', 1e9)", "memory"),
    "makes tables": (TABLES, "memory"),
    "makes closures": (
        "local t = {} for i = 1, 1e9 do t[i] = function() return i end end",
        "memory",
    ),
    "makes names": ("local t = {} for i = 1, 1e9 do t['k' .. i] = true end", "memory steps time"),
    "replaces each letter by many": (
        "local s = ('x'):rep(1e5) return (s:gsub('x', s))",
        "memory",
    ),
    "replaces each letter by itself, often": (
        "return #(('x'):rep(1e6):gsub('.', ('%0'):rep(100)))",
        "memory",
    ),
    "replaces by what it doubles": (
        "local s = ('x'):rep(100) return (s:gsub('x', function() s = s .. s return s end))",
        "memory",
    ),
    "joins by something long": (
        "local t = {} for i = 1, 5e5 do t[i] = 'x' end return #table.concat(t, ('y'):rep(1e3))",
        "memory",
    ),
    "quotes a long text": ("return #('%q'):format(('\\0'):rep(1e7))", "memory"),
    "writes a date for ever": ("return #os.date(('%c'):rep(1e6))", "memory"),
    "splits into letters": (
        "return #require('strings').Split(('x'):rep(2e7), '')",
        "memory steps time",
    ),
    "takes the bytes of all": ("return ('x'):rep(1e6):byte(1, -1)", "depth"),
    "encodes a long text": ("return #base64Encode(('x'):rep(2e7))", "steps time memory"),
    "reverses a long text": ("local s = ('x'):rep(5e6) while true do s:reverse() end", "time"),
    "shifts a list": ("local t = {} while true do table.insert(t, 1, 1) end", "time"),
    "sorts long texts": (
        "local t, s = {}, ('y'):rep(1e6) for i = 1, 1e5 do t[i] = s end table.sort(t)",
        "time",
    ),
    "writes JSON of forty doublings": (
        "local t = 'x' for _ = 1, 40 do t = {t, t} end return require('json').encode(t)",
        "steps time memory",
    ),
    "returns forty doublings": (
        "local t = 'x' for _ = 1, 40 do t = {t, t} end return t",
        "steps time memory",
    ),
    "returns a text a thousand times": (
        "local s, t = ('x'):rep(1e6), {} for i = 1, 1e3 do t[i] = s end return t",
        "memory time",
    ),
    "returns a million levels": ("local t = {} for _ = 1, 1e6 do t = {t} end return t", "memory"),
    "returns millions of keys": (
        "local t = {} for i = 1, 3e6 do t[i] = 1 end return t",
        "steps time memory",
    ),
    "returns what JSON writes sixfold": ("return ('\\0'):rep(1.2e7)", "memory"),
    "says a long error": ("error(('x'):rep(4e7))", "memory"),
    "backtracks by options": ("('a'):rep(30):find(('a?'):rep(30) .. ('a'):rep(30))", "steps time"),
    "backtracks lazily": ("('a'):rep(1e5):find('.-.-.-.-b')", "steps time depth"),
    "backtracks greedily": ("('a'):rep(1e5):match('a*a*a*b')", "steps time depth"),
    "backtracks in gsub": ("('a'):rep(1e5):gsub('a*a*a*b', '')", "steps time depth"),
    "backtracks in gmatch": ("('a'):rep(1e5):gmatch('a-a-a-b')()", "steps time depth"),
    "backtracks by what it captured": ("('a'):rep(1e4):find('(.-)%1%1%1b')", "steps time depth"),
    "backtracks by seven captures": (
        "('a'):rep(100):find(('(a*)'):rep(7) .. '%1b')",
        "steps time depth",
    ),
    "balances what is never closed": ("('('):rep(1e6):find('%b()')", "steps time depth"),
    "has a pattern of 200,000 letters": (
        "('a'):rep(1e5):find(('a?'):rep(1e5))",
        "steps time depth",
    ),
    "searches a long text in a long text": (
        "('a'):rep(1e6):find(('a'):rep(5e5) .. 'b', 1, true)",
        "steps time",
    ),
    "finds nothing for ever": ("for _ in ('x'):rep(1e7):gmatch('.-') do end", "steps time memory"),
}

FAILED: dict[str, tuple[str, str]] = {
    **{
        f"calls {name}": (f"{name}()", "a nil value")
        for name in (
            *("load", "loadstring", "loadfile", "dofile", "getfenv", "setfenv", "newproxy"),
            *("collectgarbage", "gcinfo", "string.dump", "debug.getregistry", "io.open"),
            *("os.execute", "os.getenv", "os.exit", "os.remove", "os.tmpname", "os.setlocale"),
            *("package.loadlib", "python.eval", "python.builtins.open", "_ENV.io.open", "module"),
        )
    },
    "requires io": ("require('io')", "module 'io' not found"),
    "requires a path": ("require('../../etc/passwd')", "not found"),
    "changes the methods of texts": ("getmetatable('').__index = nil", "attempt to index"),
    "replaces the metatable of texts": ("setmetatable('', {})", "table expected, got string"),
    "replaces a metatable that is guarded": (
        "setmetatable(setmetatable({}, {__metatable = false}), {})",
        "cannot change a protected metatable",
    ),
    "leaves something in what joins": ("__joint.x = 1 .. 'x'", "a userdata value"),
    "leaves something in it raw": (
        "local s = 'a' .. 'b' rawset(__joint, 'x', s)",
        "table expected, got userdata",
    ),
    "raises a table that cannot be read": (f"error({TRAPPED})", "error object is a table"),
    "raises what pretends to be ours": (
        "error(setmetatable({}, {__index = function() return ('x'):rep(1e7) end}))",
        "error object is a table",
    ),
    "raises a function": (f"error({TRAP})", "error object is a function"),
    "raises nothing": ("error(nil)", "error object is a nil"),
    "raises far above": ("error('x', 1e9)", "x"),
    "raises what looks like the box": ("error('[box]:1: mine', 0)", "mine"),
    "resumes itself": ("local f f = coroutine.wrap(function() f() end) f()", "running coroutine"),
    "yields out of the box": ("coroutine.yield(1)", "attempt to yield"),
    "yields out of a metamethod": (
        "coroutine.wrap(function() return setmetatable({}, {__index = coroutine.yield}).x end)()",
        "attempt to yield",
    ),
    "yields out of a comparison": (
        "coroutine.wrap(function() table.sort({2, 1}, coroutine.yield) end)()",
        "attempt to yield",
    ),
    "sorts without an order": (
        "local t = {} for i = 1, 1e3 do t[i] = i end table.sort(t, function() return true end)",
        "invalid order function",
    ),
    "sorts what cannot be compared": ("table.sort({1, 'a', {}})", "attempt to compare"),
    "goes on from what is not there": ("next({}, 'x')", "invalid key to 'next'"),
    "indexes in circles": (
        (
            "local a, b = {}, {} setmetatable(a, {__index = b}) setmetatable(b, {__index = a})"
            " return a.x"
        ),
        "loop in gettable",
    ),
    "unpacks too many": ("return unpack({}, -1 / 0, 1 / 0)", "too many results"),
    "unpacks around an int": ("return unpack({}, -2 ^ 31, 2 ^ 31 - 1)", "too many results"),
    "formats to a width": ("return ('%99999d'):format(1)", "width or precision too long"),
    "formats to a precision": ("return ('%.999999999f'):format(1)", "width or precision too long"),
    "formats into memory": ("return ('%n'):format(1)", "invalid option"),
    "formats with a thousand flags": (
        "return ('%' .. ('-'):rep(1e3) .. 'd'):format(1)",
        "repeated flags",
    ),
    "joins what is not there": (
        "return table.concat({}, '', -2 ^ 31, 2 ^ 31 - 1)",
        "invalid value",
    ),
    "inserts at no number": ("table.insert({}, 0 / 0, 1)", "out of bounds"),
    "inserts far below": ("table.insert({}, -2e9, 1)", "out of bounds"),
    "captures too often": ("return ('a'):rep(1e6):find(('(a)'):rep(33))", "too many captures"),
    "has no method": ("local s = 'x' s.y = 1", "attempt to index"),
}

UNFIT: dict[str, tuple[str, str]] = {
    "a table that contains itself": ("local t = {} t.t = t return t", "contains itself"),
    "two that contain each other": ("local a, b = {}, {} a.b = b b.a = a return a", "itself"),
    "too many levels": ("local t = {} for _ = 1, 200 do t = {t} end return t", "deeper than 100"),
    "no number": ("return {a = 0 / 0}", "not finite"),
    "an endless number": ("return {1 / 0}", "not finite"),
    "an endless key": ("return {[1 / 0] = 1}", "not finite"),
    "a function": ("return {a = print}", "a function at 'a'"),
    "a thread": ("return coroutine.create(print)", "a thread"),
    "a table as a key": ("return {[{}] = 1}", "a key of type table"),
    "a bool as a key": ("return {[true] = 1}", "a key of type boolean"),
    "names and numbers": ("return {1, a = 2}", "both names and numbers"),
    "what joins": ("local s = 'a' .. 'b' return {__joint}", "a userdata"),
}

REFUSED: dict[str, tuple[str, str]] = {
    "precompiled code": ("\x1bLuaQ\0", "precompiled"),
    "code behind a NUL": ("return 1\0 os.exit()", "'<eof>' expected"),
    "half a letter": ("return '\ud800'", "half a letter"),
    "what corrupts memory": ("function f(a, b, c, d, ...) end", "at most 3 parameters"),
    "28,000 functions": ("local x = '...' ... " + "function " * 28_000, "unexpected symbol"),
    "100,000 parentheses": ("return " + "(" * 100_000, "too many syntax levels"),
    "100,000 tables": ("return " + "{" * 100_000, "too many syntax levels"),
    "14,000 functions in functions": ("return function() " * 14_000, "too many syntax levels"),
    "30,000 joins": ("return " + " .. ".join(["'x'"] * 30_000), "too many syntax levels"),
    "300 variables": ("\n".join(f"local a{n}" for n in range(300)), "200 local variables"),
    "an endless text": ("return [==[" + "x" * 100_000, "unfinished long string"),
    "a later Lua's goto": ("::a:: goto a", "unexpected symbol"),
    "a later Lua's close": ("local x <close> = nil", "unexpected symbol"),
}

HARMLESS: dict[str, tuple[str, object]] = {
    "looks for what is not there by name": ("return _G['i' .. 'o'] or _G['de' .. 'bug']", None),
    "looks for Python in what it is given": ("return obj.__class__ or obj.__dict__", None),
    "asks for the metatable of a function": ("return getmetatable(print)", None),
    "asks for the metatable of texts": ("return getmetatable('')", False),
    "asks for the metatable of what joins": ("return getmetatable(__joint or '') and ''", False),
    "waits for the garbage": (f"setmetatable({{}}, {{__gc = {TRAP}}}) return 1", 1),
    "returns what says that it is long": (
        "return setmetatable({1, 2}, {__len = function() return 1e9 end})",
        [1, 2],
    ),
    "returns what loops when it is read": (f"return {{a = {TRAPPED}}}", {"a": {}}),
    "returns bytes that are no text": ("return '\\237\\160\\128'", "\ufffd\ufffd\ufffd"),
    "returns a list with a hole": ("return {[1] = 1, [1e9] = 2}", {"1": 1, "1000000000": 2}),
    "reads a number without end": ("return require('json').decode('1e999') == 1 / 0", True),
    "reads a hundred thousand levels": ("return require('json').decode(('['):rep(1e5))", None),
    "repeats nothing, often": ("return string.rep('', 2e9)", ""),
    "repeats no number of times": ("return ('x'):rep(0 / 0)", ""),
    "begins far before the beginning": ("return ('x'):find('x', -1e300)", 1),
    "takes a part from end to end": ("return ('x'):sub(-1e9, 1e9)", "x"),
    "unpacks at the end of an int": ("return unpack({}, 2 ^ 31 - 1, -2 ^ 31)", None),
    "formats the longest number": ("return #('%99.99f'):format(1e308)", 409),
    "sorts what shrinks": (
        (
            "local t = {} for i = 1, 99 do t[i] = i % 7 end"
            " table.sort(t, function(a, b) t[#t] = nil return (a or 0) < (b or 0) end) return 1"
        ),
        1,
    ),
    "sorts what is no number": (
        "local t = {} for i = 1, 1e3 do t[i] = 0 / 0 end pcall(table.sort, t) return 1",
        1,
    ),
    "raises what raises": (f"return (pcall(error, {TRAPPED}))", False),
    "nests pcall": ("local function f() return pcall(f) end return (f())", True),
    "has a date in another age": ("return os.date('%c', 1e300)", None),
    "has no date": ("return os.date('%c', 0 / 0)", None),
    "takes all of its environment away": (
        "local env = _G for name in pairs(env) do env[name] = nil end return 1",
        1,
    ),
    "sets a trap for the next script": (
        "setmetatable(_G, {__index = function() error('trap') end}) string.rep = nil return 1",
        1,
    ),
    "leaves a global": ("leftover = 'here' require('json').leftover = leftover return 1", 1),
}

FRESH = Script(
    "first = ...\nfunction evaluate() return {leftover == nil, require('json').leftover == nil,"
    " absent == nil, ('x'):rep(2), 'a' .. 1, tostring(1e15), #table.concat({1, 2}),"
    " pcall(error), coroutine.wrap(function() return 7 end)()} end"
)


def ended(text: str, *, seconds: float = 10) -> object:
    """Run a script, and return what it returned or raise how it ended; nothing else came of it."""
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    try:
        script = Script(text, limits=Limits(seconds=seconds))
        return script.call("evaluate", globals={"obj": {"kind": "Service"}})
    finally:
        took = time.thread_time() - begun
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert took < 3
        assert grown * 1024 < 160 * MIB
        afresh = FRESH.call("evaluate", globals={})
        assert afresh == [True, True, True, "xx", "a1", "1000000000000000", 2, False, 7]


def wrapped(text: str) -> str:
    return f"function evaluate()\n{text}\nend"


@pytest.mark.rest
@pytest.mark.clocked
@pytest.mark.parametrize(("text", "kinds"), STOPPED.values(), ids=STOPPED.keys())
def test_stops_what_would_not_end(text: str, kinds: str) -> None:
    """It is stopped by the limit named, well within seconds, and says so in words of ours."""
    with pytest.raises(LuaLimitError) as caught:
        ended(wrapped(text), seconds=0.3 if "time" in kinds.split() else 10)

    assert caught.value.kind in kinds.split()
    assert caught.value.plain == str(caught.value)


@pytest.mark.clocked
@pytest.mark.parametrize(("text", "words"), FAILED.values(), ids=FAILED.keys())
def test_fails_what_reaches_out(text: str, words: str) -> None:
    """It is an error of the script at its line: there is nothing there, or it makes no sense."""
    with pytest.raises(LuaRuntimeError) as caught:
        ended(wrapped(text))

    assert words in caught.value.wording
    assert len(caught.value.wording) < 3000


@pytest.mark.clocked
@pytest.mark.parametrize(("text", "words"), UNFIT.values(), ids=UNFIT.keys())
def test_takes_no_result_that_is_not_json(text: str, words: str) -> None:
    """What is returned is written with nothing of the script running, and said to be unfit."""
    with pytest.raises(LuaResultError) as caught:
        ended(wrapped(text))

    assert words in caught.value.wording


@pytest.mark.clocked
@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses_what_must_not_be_loaded(text: str, words: str) -> None:
    """It is refused before anything of it runs, and soon."""
    with pytest.raises(LuaSyntaxError) as caught:
        ended(text)

    assert words in caught.value.wording


@pytest.mark.clocked
@pytest.mark.parametrize(("text", "value"), HARMLESS.values(), ids=HARMLESS.keys())
def test_lets_be_what_does_no_harm(text: str, value: object) -> None:
    """What is merely foolish ends at once, with what Lua makes of it."""
    assert ended(wrapped(text)) == value


def test_nothing_is_handed_on_by_what_joins() -> None:
    """A script can get hold of it as its chunk's argument: it keeps nothing for the next one."""
    taking = "local joint = ... function evaluate() return {} end\n"
    with pytest.raises(LuaError):
        ended(f"{taking} joint.secret = 'a' .. 'b'")

    assert ended(f"{taking} function evaluate() return type(joint) .. '!' end") == "userdata!"


def test_there_are_enough_attempts() -> None:
    """The list is kept: what was once tried is tried again."""
    assert len({**STOPPED, **FAILED, **UNFIT, **REFUSED, **HARMLESS}) >= 160
