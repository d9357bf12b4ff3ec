"""JSON-like values to what Lua reads, and back.

In: a value becomes a flat stream of scalars and marks, which crosses into Lua in one call.
Out: the result arrives as JSON in ASCII, where a byte above 127 stands as the code point of
the same number, since Lua's strings are bytes and need not be UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from bellhop.luabox.errors import LuaLimitError
from bellhop.luabox.keys import Keys

# Bytes that begin no UTF-8 text, so that no string can be taken for a mark.
MAP = b"\xff{"
LIST = b"\xff["
END = b"\xff."
SAME = b"\xff="

_SURROGATES = re.compile("[\ud800-\udfff]")
_NOT_ASCII = re.compile(r"\\u00[89a-f]")


def flatten(value: dict[str, Any], descent: Descent) -> list[Any]:
    """Return a dict as the stream of its tokens, without its own opening mark.

    None is absent from Lua's tables: a key whose value is None is left out, and a list closes
    the gap, so that its length and `ipairs` hold. Integers beyond 2^53 round, as doubles do.
    """
    out: list[Any] = []
    _flatten_dict(value, out, descent)
    return out


class Descent:
    """The depth of a conversion, for its limit and for naming a script in errors.

    Of dicts it goes into what stands at `keys`: as if there was nothing else. None is all.
    """

    __slots__ = ("keys", "left", "name")

    def __init__(self, left: int, name: str, keys: frozenset[str] | None) -> None:
        self.left = left
        self.name = name
        self.keys = keys

    def down(self) -> None:
        """Go one deeper; who comes back up adds one to what is left."""
        self.left -= 1
        if self.left < 0:
            message = "the value given is nested too deeply, or contains itself"
            raise LuaLimitError(message, kind="depth", name=self.name)


def _flatten_dict(value: dict[str, Any], out: list[Any], descent: Descent) -> None:
    descent.down()
    keys = descent.keys
    for key in value if keys is None else value.keys() & keys:
        if not isinstance(key, str):
            raise TypeError(f"a key must be a string, not {type(key).__name__!r}")
        item = value[key]
        kind = type(item)
        if kind is str or kind is bool:
            out += (key, item)
        elif isinstance(item, dict):
            out += (MAP, key)
            _flatten_dict(item, out, descent)
        elif isinstance(item, list):
            out += (LIST, key)
            flatten_list(item, out, descent)
        elif item is not None:
            out += (key, _scalar(item))
    out.append(END)
    descent.left += 1


def flatten_list(value: list[Any], out: list[Any], descent: Descent) -> None:
    """Append the items of a list and the mark of its end."""
    descent.down()
    for item in value:
        kind = type(item)
        if kind is str or kind is bool:
            out.append(item)
        elif isinstance(item, dict):
            out.append(MAP)
            _flatten_dict(item, out, descent)
        elif isinstance(item, list):
            out.append(LIST)
            flatten_list(item, out, descent)
        elif item is not None:
            out.append(_scalar(item))
    out.append(END)
    descent.left += 1


def flatten_args(args: Iterable[Any], shared: Mapping[str, Any], descent: Descent) -> list[Any]:
    """Return arguments as tokens; one that is a global's very value becomes the same table."""
    out: list[Any] = []
    known = {id(value): key for key, value in shared.items() if value is not None}
    for arg in args:
        if id(arg) in known:
            out += (SAME, known[id(arg)])
        else:
            flatten_list([arg], out, descent)
            out.pop()
    out.append(END)
    return out


def _scalar(item: object) -> float | str:
    if isinstance(item, str):
        return str(item)
    if not isinstance(item, int | float):
        raise TypeError(f"a value of type {type(item).__name__!r} has no place in JSON")
    try:
        return float(item)
    except OverflowError:
        raise TypeError("an integer beyond 1e308 has no place in Lua") from None


def without_surrogates(tokens: list[Any]) -> list[Any]:
    """Return tokens with halves of surrogate pairs, which UTF-8 lacks, as U+FFFD."""
    return [_SURROGATES.sub("\ufffd", t) if isinstance(t, str) else t for t in tokens]


def restore(text: str) -> Any:
    """Return the value that Lua wrote; bytes that are not UTF-8 become U+FFFD."""
    value = json.loads(text)
    return _decoded(value) if _NOT_ASCII.search(text) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("latin-1").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_decoded(key): _decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value


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
        descent = Descent(depth + 1, name, keys)
        self.tokens = flatten(dict(globals), descent)
        self.tokens += flatten_args(args, globals, descent)
