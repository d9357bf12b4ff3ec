"""What a script can reach, and what it leaves behind: nothing."""

import pytest

from bellhop.luabox import LuaRuntimeError, LuaSyntaxError, Script, source

KNOWN = {
    *("_G", "_VERSION", "assert", "coroutine", "error", "evaluate", "getmetatable", "ipairs"),
    *("math", "next", "os", "pairs", "pcall", "print", "rawequal", "rawget", "rawset", "require"),
    *("select", "setmetatable", "string", "table", "tonumber", "tostring", "type", "unpack"),
    *("xpcall", "base64Encode", "base64Decode", "getLabel", "getAnnotation", "getResource"),
}


def run(text: str, **given: object) -> object:
    return Script(f"function evaluate()\n{text}\nend").call("evaluate", globals=given)


def test_has_these_globals_and_no_others() -> None:
    """The list of globals is closed: no io, debug, package, load, getfenv or python."""
    names = run(
        "local names = {} for name in pairs(_G) do names[#names + 1] = name end return names"
    )

    assert set(names) == KNOWN  # type: ignore[call-overload]


@pytest.mark.parametrize("library", ["string", "table", "math", "coroutine", "os"])
def test_holds_no_userdata_and_nothing_of_python(library: str) -> None:
    """Every member of every library is a plain Lua value."""
    kinds = run(f"local k = {{}} for _, v in pairs({library}) do k[type(v)] = true end return k")

    assert set(kinds) <= {"function", "number"}  # type: ignore[call-overload]
    assert run("return tostring(string.dump)") == "nil"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("string.rep = nil string.upper = function() return 'X' end", id="string"),
        pytest.param("table.insert = nil table.sort = error", id="table"),
        pytest.param(
            "local env = _G for name in pairs(env) do env[name] = nil end", id="every global"
        ),
        pytest.param("rawset(_G, 'tostring', error) rawset(string, 'format', error)", id="rawset"),
        pytest.param("require('json').encode = nil require('strings').Split = nil", id="modules"),
        pytest.param("getLabel = nil base64Encode = nil leftover = 'here'", id="helpers"),
        pytest.param("setmetatable(_G, {__index = function() error('trap') end})", id="metatable"),
        pytest.param("math.random = nil coroutine.wrap = nil", id="math and coroutine"),
    ],
)
def test_leaves_nothing_behind(text: str) -> None:
    """Whatever a script does to its environment, the next one starts afresh."""
    run(text)

    assert run(
        "local t = {3, 1} table.insert(t, 2) table.sort(t)"
        " local wrapped = coroutine.wrap(function() return 7 end)"
        " return {leftover == nil, ('x'):rep(2), ('a'):upper(), string.format('%d', 1), t,"
        " require('json').encode({a = 1}), require('strings').Split('a,b', ','),"
        " base64Encode('a'), wrapped(), tostring(math.random() < 1), absent == nil}"
    ) == [True, "xx", "A", "1", [1, 2, 3], '{"a":1}', ["a", "b"], "YQ==", 7, "true", True]


def test_a_script_may_extend_its_own_strings() -> None:
    """A method added to `string` works on texts, as in plain Lua, for this call."""
    text = "function string.trim(s) return (s:gsub('^%s+', '')) end return ('  x'):trim()"

    assert run(text) == "x"
    with pytest.raises(LuaRuntimeError, match="attempt to call method 'trim'"):
        run("local x = ('  x'):trim()")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("return _G['ma' .. 'th'].floor(1.5)", id="through all globals"),
        pytest.param("local f = {} f['ty' .. 'pe'] = 1 return f.type", id="a name of one's own"),
        pytest.param("local up = 'up' .. 'per' return #('a')[up]('b')", id="a method by its name"),
        pytest.param("return -- math\n math.floor(1.5)", id="beside a comment"),
    ],
)
def test_a_global_is_there_however_it_is_reached(text: str) -> None:
    """Only what a text cannot reach is not made for it."""
    assert run(text) == 1


def test_knows_only_its_own_modules() -> None:
    """`require` loads what is built in, and says what that is."""
    with pytest.raises(LuaRuntimeError, match="module 'os' not found: there are json, strings"):
        run("local os = require('os')")


def test_print_is_accepted() -> None:
    """Scripts that print still run."""
    assert run("print('x', nil, {}) return 1") == 1


def test_any_number_of_scripts_may_be_in_use() -> None:
    """A state forgets old scripts to stay small, and loads them again when they are called."""
    scripts = [Script(f"function evaluate() return {n} end") for n in range(600)]

    assert [script.call("evaluate", globals={}) for script in scripts] == list(range(600))
    assert scripts[0].call("evaluate", globals={}) == 0


PARAMETERS = "a,b,c,d,e,f,g,h"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"function f({PARAMETERS}, ...) return ... end", id="global"),
        pytest.param(f"local f = function ( {PARAMETERS} , ... ) end", id="anonymous"),
        pytest.param(f"function a.b:c({PARAMETERS}, ...) end", id="method"),
        pytest.param("function f(a,b,--[[ ) ]] c,d,\n--x )\ne, ...) end", id="comments"),
        pytest.param("-- [[\nfunction f(a,b,c,d, ...) end -- ]]", id="no long comment"),
        pytest.param("--x\rfunction f(a,b,c,d, ...) end", id="carriage return ends a comment"),
        pytest.param("s = '\\'' function f(a,b,c,d, ...) end s = '", id="quotes"),
        pytest.param("s = [==[ ]] ]==] function f(a,b,c,d, ...) end", id="long string"),
        pytest.param("function--[[]]f--[[]](a,b,c,d,...) end", id="no spaces"),
    ],
)
def test_refuses_functions_that_corrupt_memory(text: str) -> None:
    """CVE-2014-5461: many parameters before `...` are refused, however they are written."""
    with pytest.raises(LuaSyntaxError, match="may name at most 3 parameters"):
        Script(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("function f(a, b, c, ...) return ... end", id="three"),
        pytest.param(f"function f({PARAMETERS}) end x = '...'", id="no dots"),
        pytest.param("-- function f(a,b,c,d, ...)\n", id="in a comment"),
        pytest.param("--[=[ function f(a,b,c,d, ...) ]=]", id="in a long comment"),
        pytest.param(
            "x = 'function f(a,b,c,d, ...)' y = [[function f(a,b,c,d,...)]]", id="in strings"
        ),
    ],
)
def test_accepts_harmless_functions(text: str) -> None:
    """What only looks like such a function is fine, and three names are."""
    assert source.objection(text) is None
    Script(text)
