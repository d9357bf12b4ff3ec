"""What scripts are given: globals and arguments, converted once for any number of scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bellhop.luabox import convert
from bellhop.luabox.keys import Keys


class Given:
    """Values for the calls of scripts; none of which sees what another makes of them.

    A value given both as a global and as an argument is one table in Lua. Where `keys` are said,
    tables have no others.

    Raises:
        LuaLimitError: a value is nested deeper than `depth`, or contains itself; `name` is whose
            error it is.
        TypeError: a value is not JSON-like.
    """

    __slots__ = ("tokens",)

    def __init__(
        self,
        globals: Mapping[str, Any],  # noqa: A002 - Lua's own word for them.
        args: Iterable[Any] = (),
        *,
        depth: int,
        name: str,
        keys: Keys | None = None,
    ) -> None:
        descent = convert.Descent(depth + 1, name, keys)
        self.tokens = convert.flatten(dict(globals), descent)
        self.tokens += convert.flatten_args(args, globals, descent)
