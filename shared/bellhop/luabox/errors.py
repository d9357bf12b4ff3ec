"""Errors of a script, in Lua's own wording, with the place.

LuaError                .name of the script, .line (from 1, or None), .excerpt (that line), .wording
├─ LuaSyntaxError       the text is no Lua program
├─ LuaRuntimeError      the script raised an error
├─ LuaLimitError        the script was stopped; .kind says by which limit
└─ LuaResultError       the script ran, and what it returned is not what was asked for

The engine maps them to its own errors; this package knows nothing of the rest of Bellhop.
"""

from __future__ import annotations

from typing import Literal

LimitKind = Literal["time", "steps", "memory", "depth", "size"]


class LuaError(Exception):
    """A script failed; the text is `name:line: wording`, as Lua writes it."""

    def __init__(
        self, wording: str, *, name: str, line: int | None = None, excerpt: str = ""
    ) -> None:
        super().__init__(f"{name}:{line}: {wording}" if line else f"{name}: {wording}")
        self.name = name
        self.line = line
        self.excerpt = excerpt
        self.wording = wording

    @property
    def plain(self) -> str:
        """Say what failed without the words of the script, which may quote what it was given."""
        place = f"{self.name}:{self.line}" if self.line else self.name
        return f"{place}: the script fails here" if self.line else f"{place}: the script fails"


class LuaSyntaxError(LuaError):
    """The text is no Lua 5.1 program."""

    @property
    def plain(self) -> str:
        """Say it whole: the script was given nothing yet."""
        return str(self)


class LuaRuntimeError(LuaError):
    """The script raised an error, or has no function of the name."""


class LuaLimitError(LuaError):
    """The script, or a value, went beyond a limit and was stopped."""

    def __init__(
        self,
        wording: str,
        *,
        kind: LimitKind,
        name: str,
        line: int | None = None,
        excerpt: str = "",
    ) -> None:
        super().__init__(wording, name=name, line=line, excerpt=excerpt)
        self.kind = kind

    @property
    def plain(self) -> str:
        """Say it whole: the words are ours."""
        return str(self)


class LuaResultError(LuaError):
    """The script returned something that is not JSON, or not what its contract asks for."""

    @property
    def plain(self) -> str:
        """Say that without the names of what it returned."""
        return f"{self.name}: the script returns a result of the wrong form"
