"""Hostile scripts end, soon, in a limit; the process and the next script do not notice."""

import subprocess
import sys
import threading

import pytest

from bellhop.luabox import Limits, LuaLimitError, LuaRuntimeError, Script, evaluate

MIB = 1024 * 1024
LOOP = "while true do end"


def output_of(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout


def run(text: str, limits: Limits | None = None) -> object:
    script = Script(f"function evaluate()\n{text}\nend", limits=limits)
    return script.call("evaluate", globals={})


def test_says_where_a_limit_was_met() -> None:
    """A limit has the line the script was at, and its own words."""
    with pytest.raises(LuaLimitError) as caught:
        run("local n = 0\nwhile true do n = n + 1 end", Limits(steps=1000))

    assert str(caught.value) == "script:3: the script took more than 1000 steps"
    assert caught.value.excerpt == "while true do n = n + 1 end"


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        pytest.param(Limits(steps=1), "steps", id="no steps at all"),
        pytest.param(Limits(steps=150), "steps", id="few steps"),
        pytest.param(Limits(seconds=0.01, steps=10**12), "time", id="little time"),
        pytest.param(Limits(memory=256 * 1024), "memory", id="little memory"),
    ],
)
def test_honours_the_limits_given(limits: Limits, kind: str) -> None:
    """Limits of the caller's own apply, however small."""
    with pytest.raises(LuaLimitError) as caught:
        run("local t = {} for i = 1, 1e7 do t[i % 1000000] = {} end " + LOOP, limits)

    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            'string.find(("b"):rep(9000000), "^[" .. ("a"):rep(240) .. "b]*$")', id="a long set"
        ),
        pytest.param(
            "local t = {} for i = 1, 1000000 do t[i] = i end table.sort(t, rawequal)",
            id="sorting by a function of C",
        ),
    ],
)
def test_counts_what_c_would_do_at_length(text: str) -> None:
    """What no hook could interrupt is done in Lua, where each step counts."""
    with pytest.raises(LuaLimitError) as caught:
        run(text, Limits(seconds=60))

    assert caught.value.kind == "steps"


def test_refuses_a_long_script() -> None:
    """A text beyond its limit is not even compiled."""
    with pytest.raises(LuaLimitError) as caught:
        Script("--" + "x" * 300_000)

    assert caught.value.kind == "size"


def test_input_is_not_charged_to_the_script() -> None:
    """An object larger than the memory limit can still be looked at."""
    value = {str(n): "x" * 1000 for n in range(10_000)}
    script = Script(
        "function evaluate() return {matching = true} end", limits=Limits(memory=4 * MIB)
    )

    assert evaluate(script, value).matching


def test_memory_of_the_process_is_bounded() -> None:
    """A process that runs memory bombs one after another stays small."""
    program = """
from pathlib import Path
from bellhop.luabox import LuaLimitError, Script
text = "local s = 'x' while true do s = s .. s end"
tables = "local t = {} while true do t[#t + 1] = {} end"
for bomb in [text, tables] * 4:
    try:
        Script("function evaluate() " + bomb + " end").call("evaluate", globals={})
    except LuaLimitError as error:
        assert error.kind == "memory"
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""
    peak_kib = int(output_of(program))

    assert peak_kib < 160 * 1024


def test_threads_evaluate_side_by_side() -> None:
    """Several threads share a script; each gets its own answer, and errors stay with theirs."""
    script = Script(
        "function evaluate()\n n = obj.n\n for i = 1, 2000 do n = n + 1 end\n"
        " if obj.n % 7 == 0 then error('seven') end\n"
        " return {matching = true, message = tostring(n)}\nend"
    )
    wrong: list[object] = []

    def work(first: int) -> None:
        for n in range(first, first + 100):
            try:
                answer: object = evaluate(script, {"n": n}).message
            except LuaRuntimeError as error:
                answer = error.wording
            if answer != ("seven" if n % 7 == 0 else str(n + 2000)):
                wrong.append((n, answer))

    threads = [threading.Thread(target=work, args=(1000 * index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_a_stuck_script_does_not_hold_up_others() -> None:
    """While one thread loops in Lua, another thread's script is evaluated."""
    stuck = Script(f"function evaluate() {LOOP} end", limits=Limits(seconds=0.5, steps=10**12))
    quick = Script("function evaluate() return {matching = true} end")
    ended: list[str] = []

    def loop() -> None:
        with pytest.raises(LuaLimitError):
            stuck.call("evaluate", globals={})
        ended.append("stuck")

    thread = threading.Thread(target=loop)
    thread.start()
    for _ in range(20):
        evaluate(quick, {})
    ended.append("quick")
    thread.join()

    assert ended == ["quick", "stuck"]


def test_loads_lupa_only_for_the_first_script() -> None:
    """Importing the package stays cheap where no script is ever compiled."""
    program = (
        "import sys, bellhop.luabox as box; before = 'lupa' in sys.modules;"
        "box.Script('x = 1'); print(before, 'lupa.lua51' in sys.modules)"
    )

    assert output_of(program).split() == ["False", "True"]
