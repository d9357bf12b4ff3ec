"""Lua 5.1 in a box: evaluates scripts that nobody has to trust.

Standalone: it imports nothing of Bellhop, and lupa only when the first script is compiled.
A script sees JSON-like values, the harmless part of the standard library and a few modules;
it cannot reach the process, outlast its limits, or leave anything behind for the next one.

    script = Script("function evaluate() return {matching = obj.kind == 'Service'} end")
    evaluate(script, {"kind": "Service"})    # Verdict(matching=True, message='')

Many scripts for one object share a `Subject`, which is converted once.
"""

from bellhop.luabox.contract import (
    HEALTHY,
    Assessed,
    Health,
    Lacking,
    Selection,
    Subject,
    Verdict,
    assess,
    classify,
    diagnose,
    evaluate,
    select,
    write,
)
from bellhop.luabox.errors import (
    LuaError,
    LuaLimitError,
    LuaResultError,
    LuaRuntimeError,
    LuaSyntaxError,
)
from bellhop.luabox.script import Script
from bellhop.luabox.state import Limits

__all__ = [
    "HEALTHY",
    "Assessed",
    "Health",
    "Lacking",
    "Limits",
    "LuaError",
    "LuaLimitError",
    "LuaResultError",
    "LuaRuntimeError",
    "LuaSyntaxError",
    "Script",
    "Selection",
    "Subject",
    "Verdict",
    "assess",
    "classify",
    "diagnose",
    "evaluate",
    "select",
    "write",
]
