"""A script: checked and compiled once, called many times, each time in a fresh environment."""

from __future__ import annotations

import itertools
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bellhop.luabox import convert, source
from bellhop.luabox.convert import Given
from bellhop.luabox.errors import (
    LuaError,
    LuaLimitError,
    LuaResultError,
    LuaRuntimeError,
    LuaSyntaxError,
)
from bellhop.luabox.keys import keys_said
from bellhop.luabox.state import Limits, Pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bellhop.luabox.errors import LimitKind
    from bellhop.luabox.keys import Keys

_pool = Pool()
_keys = itertools.count(1)
_PLACE = re.compile(r"script:(\d+): (.*)", re.DOTALL)
_WORDING: dict[LimitKind, str] = {
    "time": "took more than {0.seconds:g} s of processor time",
    "steps": "took more than {0.steps} steps",
    "memory": "needed more than {0.memory} bytes of memory",
    "depth": "called or nested too deeply",
    "size": "is longer than {0.size} bytes",
}


class Script:
    """A Lua 5.1 script in a box.

    Several threads may call the same script at the same time.

    Raises:
        LuaSyntaxError: the text is no Lua program.
        LuaLimitError: the text is longer than the limit.
    """

    def __init__(self, text: str, *, name: str = "script", limits: Limits | None = None) -> None:
        self.text = text
        self.name = name
        self.limits = limits or Limits()
        self._key = next(_keys)
        if len(text.encode("utf-8", "replace")) > self.limits.size:
            raise self._limit("size", None)
        objection = source.objection(text)
        if objection:
            raise self._failure(LuaSyntaxError, objection[1], objection[0])
        state = _pool.take()
        why = state.compile(self._key, text)
        _pool.put(state)
        if why is not None:
            raise self._failure(LuaSyntaxError, why, None)

    def may_define(self, function: str) -> bool:
        """Return whether running the text may define a global function of a name."""
        return source.may_define(self.text, function)

    @cached_property
    def keys(self) -> Keys | None:
        """Return which keys the script can ask an object for, or None: any."""
        return keys_said(self.text)

    def call(
        self,
        function: str,
        *,
        globals: Mapping[str, Any],  # noqa: A002 - Lua's own word for them.
        args: Iterable[Any] = (),
    ) -> Any:
        """Run the text, set the globals, call the function, and return its first result.

        A value given both as a global and as an argument is one table in Lua.

        Raises:
            LuaRuntimeError: the script raised an error, or defines no such function.
            LuaLimitError: the script, or a value, went beyond a limit.
            LuaResultError: what it returned cannot be JSON.
            TypeError: a value given is not JSON-like.
        """
        given = Given(globals, args, depth=self.limits.depth, name=self.name)
        return convert.restore(self.run(function, given))

    def run(self, function: str, given: Given) -> str:
        """Do what `call` does with values that were converted before; return what Lua wrote.

        Raises:
            LuaError: as `call` does, of the script.
        """
        state = _pool.take()
        state.compile(self._key, self.text)
        status, text, line, spent = state.call(self._key, function, given, self.limits)
        if not spent:
            _pool.put(state)
        if status == "ok":
            return text
        raise self._error(status, text, line, function)

    def _error(self, status: str, text: str, line: float | None, function: str) -> LuaError:
        place = int(line) if line is not None else None
        match status:
            case "limit":
                return self._limit(text, place)  # type: ignore[arg-type]
            case "missing":
                wording = f"the script defines no function {function!r}"
                return self._failure(LuaRuntimeError, wording, None)
            case "unfit":
                return self._failure(LuaResultError, convert.restore(text), None)
            case _:
                return self._failure(LuaRuntimeError, convert.restore(text), place)

    def _limit(self, kind: LimitKind, line: int | None) -> LuaLimitError:
        wording = "the script " + _WORDING[kind].format(self.limits)
        excerpt = self._line(line)
        return LuaLimitError(wording, kind=kind, name=self.name, line=line, excerpt=excerpt)

    def _failure(self, error: type[LuaError], wording: str, line: int | None) -> LuaError:
        place = _PLACE.match(wording)
        if place:
            line, wording = int(place[1]), place[2]
        return error(wording, name=self.name, line=line, excerpt=self._line(line))

    def _line(self, number: int | None) -> str:
        lines = self.text.split("\n")
        if number is None or not 0 < number <= len(lines):
            return ""
        return lines[number - 1].strip()
