"""What scripts that ran in gopher-lua rely on, where Lua 5.1 itself says something else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bellhop.luabox import LuaRuntimeError, Script, Selection, Verdict, evaluate, select


def run(text: str, **given: object) -> object:
    return Script(f"function evaluate()\n{text}\nend").call("evaluate", globals=given)


NUMBERS = [
    pytest.param("2^53", "9007199254740992", id="whole, of more digits than Lua writes"),
    pytest.param("-2^63", "-9223372036854775808", id="the smallest whole number"),
    pytest.param("2^63", "9.223372036854776e+18", id="beyond whole numbers"),
    pytest.param("1/3", "0.3333333333333333", id="a fraction of many digits"),
    pytest.param("0.1", "0.1", id="a fraction of few"),
    pytest.param("-123.456", "-123.456", id="a negative fraction"),
    pytest.param("1234567.5", "1.2345675e+06", id="a large fraction"),
    pytest.param("0.0001234", "0.0001234", id="a small fraction"),
    pytest.param("0.00001234", "1.234e-05", id="a smaller one"),
    pytest.param("1e100", "1e+100", id="huge"),
    pytest.param("-(0)", "0", id="minus nothing"),
    pytest.param("1/0", "+Inf", id="endless"),
    pytest.param("-1/0", "-Inf", id="endless downwards"),
    pytest.param("0/0", "NaN", id="no number"),
]


@pytest.mark.parametrize(("number", "text"), NUMBERS)
@pytest.mark.parametrize(
    "written",
    [
        pytest.param("tostring({})", id="tostring"),
        pytest.param("{} .. ''", id="joined to a text behind it"),
        pytest.param("'' .. {}", id="joined to a text before it"),
        pytest.param("string.format('%s', {})", id="format"),
        pytest.param("table.concat({{{}}})", id="concat"),
        pytest.param("string.rep({}, 1)", id="taken for a text"),
    ],
)
def test_numbers_become_text_as_go_writes_them(number: str, text: str, written: str) -> None:
    """Whole numbers have all their digits, others as many as distinguish them."""
    assert run(f"local n = {number} return " + written.format("n")) == text


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param("'%s %s %s', nil, true, 'a'", "nil true a", id="nil and booleans"),
        pytest.param(
            "'%d%% %s|%3s|%-3s|', 3, 'a', 1, 2", "3% a|  1|2  |", id="widths and percents"
        ),
        pytest.param("'%.2s %5.2f %x', false, 1, 255", "fa  1.00 ff", id="other verbs as ever"),
        pytest.param("'%%s %s', 1/3", "%s 0.3333333333333333", id="a percent before a letter"),
    ],
)
def test_format_takes_any_value(code: str, text: str) -> None:
    """`%s` writes what `tostring` says; Lua 5.1 takes only texts and numbers."""
    assert run(f"return string.format({code})") == text


def test_format_writes_tables_too() -> None:
    """A table is written as an address, or as its metatable has it."""
    assert str(run("return string.format('%s', {})")).startswith("table: 0x")
    named = "setmetatable({}, {__tostring = function() return 'me' end})"
    assert run(f"return ('%s'):format({named})") == "me"


def test_a_format_with_too_few_values_is_an_error() -> None:
    """A missing value is named by its place."""
    with pytest.raises(LuaRuntimeError, match="bad argument #3 to 'format'"):
        run("local s = string.format('%s %s', 'a') return s")


@pytest.mark.parametrize(
    ("joined", "text"),
    [
        pytest.param("'a' .. 1 .. 'b' .. 0.5 .. 'c'", "a1b0.5c", id="a long chain"),
        pytest.param("1 .. 2", "12", id="numbers alone"),
        pytest.param("'..' .. [[ .. ]] .. '\\'..'", ".. .. '..", id="dots within texts"),
        pytest.param("(function(...) return select('#', ...) .. '' end)(7, 8)", "2", id="varargs"),
        pytest.param(
            "setmetatable({}, {__concat = function() return 'own' end}) .. 1", "own", id="own"
        ),
        pytest.param("'a' --[[ .. ]] .. 'b' -- .. 'c'", "ab", id="dots within comments"),
    ],
)
def test_texts_are_joined_as_ever(joined: str, text: str) -> None:
    """However numbers are written, `..` joins what it joined."""
    assert run(f"local s = {joined}\nreturn s") == text


@pytest.mark.parametrize(
    ("joined", "wording"),
    [
        pytest.param("'a' .. obj.absent", "field 'absent' (a nil value)", id="behind"),
        pytest.param("obj.absent .. 'a'", "field 'absent' (a nil value)", id="before"),
        pytest.param("'a' .. {}", "a table value", id="a table"),
    ],
)
def test_what_cannot_be_joined_is_called_by_its_name(joined: str, wording: str) -> None:
    """The error is Lua's own, with its line."""
    with pytest.raises(LuaRuntimeError) as caught:
        run(f"local s = {joined}", obj={})

    assert str(caught.value) == f"script:2: attempt to concatenate {wording}"


def test_the_time_is_there_and_nothing_else_of_the_system() -> None:
    """Of `os` scripts have what neither reads nor changes anything."""
    names = run("local n = {} for k in pairs(os) do n[#n + 1] = k end table.sort(n) return n")

    assert names == ["clock", "date", "difftime", "time"]
    now = run("return os.time()")
    assert isinstance(now, int)
    assert abs(now - datetime.now(UTC).timestamp()) < 60
    assert run("return type(os.clock())") == "number"
    assert run("return os.difftime(5, 3)") == 2


@pytest.mark.parametrize(
    "when",
    [
        pytest.param(datetime(1970, 1, 1, tzinfo=UTC), id="the first second"),
        pytest.param(datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC), id="a leap day"),
        pytest.param(datetime(2100, 3, 1, 12, tzinfo=UTC), id="a century without one"),
        pytest.param(datetime(1999, 12, 31, tzinfo=UTC), id="the end of a year"),
    ],
)
def test_times_are_in_utc(when: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's zone is, a date becomes the same second, and back."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    fields = f"year={when.year},month={when.month},day={when.day},hour={when.hour}"
    made = run(f"return os.time({{{fields},min={when.minute},sec={when.second}}})")

    assert made == when.timestamp()
    assert run(f"return os.date('%Y-%m-%d %H:%M:%S', {made})") == f"{when:%Y-%m-%d %H:%M:%S}"
    assert run(f"return os.date('*t', {made}).hour") == when.hour


def test_a_date_without_its_fields_is_an_error() -> None:
    """Year, month and day are needed; months beyond a year are counted on."""
    with pytest.raises(LuaRuntimeError, match="field 'month' missing in date table"):
        run("local t = os.time({year = 2024, day = 1})")
    with pytest.raises(LuaRuntimeError, match="table expected, got number"):
        run("local t = os.time(3)")
    assert (
        run("return os.time({year=2023, month=14, day=1, hour=0})")
        == datetime(2024, 2, 1, tzinfo=UTC).timestamp()
    )


def test_the_case_of_a_verdicts_fields_does_not_matter() -> None:
    """Sveltos reads a verdict as JSON, and Go finds a field in whatever case."""
    script = Script("function evaluate() return {Matching = true, MESSAGE = 'so'} end")
    assert Verdict(matching=True, message="so") == evaluate(script, {})
    both = Script("function evaluate() return {Matching = false, matching = true} end")
    assert evaluate(both, {}).matching
    chosen = Script("function evaluate() return {Resources = {{a = 1}}} end")
    assert Selection([{"a": 1}], "") == select(chosen, [])
