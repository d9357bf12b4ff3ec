"""TOML, written as Helm's toToml writes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.floats import format_float
from bellhop.gotemplate.funcs.jsons import struct_as_map
from bellhop.gotemplate.values import Opaque, Struct, type_name

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

_INDENT = "  "
_MOST_PARTS = 150
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f"}
_ESCAPES["\r"] = "\\r"


def dump(budget: Budget, value: Any) -> str:
    """Write a map as TOML.

    Raises:
        FunctionError: for what TOML has no shape for.
    """
    if isinstance(value, Struct):
        value = struct_as_map(value)
    if not isinstance(value, dict):
        raise FunctionError("toml: top-level values must be Go maps or structs")
    budget.take(budget.walk(value, len(_INDENT)))
    lines: list[str] = []
    _table(budget, value, (), lines)
    return "\n".join(lines) + "\n" if lines else ""


def _table(budget: Budget, table: dict[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    lead = _INDENT * len(path)
    inner: list[str] = []
    for key in sorted(table):
        value = table[key]
        if isinstance(value, dict) or _is_table_list(value):
            inner.append(key)
        elif value is not None:
            lines.append(f"{lead}{_key(key)} = {_value(value)}")
    for key in inner:
        value = table[key]
        named = (*path, key)
        for item in value if isinstance(value, list) else [value]:
            if lines and not path:
                lines.append("")
            # Each table is headed by the keys of all that it lies in.
            budget.take(sum(map(len, named)))
            brackets = ("[[", "]]") if isinstance(value, list) else ("[", "]")
            lines.append(f"{lead}{brackets[0]}{'.'.join(map(_key, named))}{brackets[1]}")
            _table(budget, item, named, lines)


def _is_table_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _key(key: str) -> str:
    return key if _BARE.match(key) else _text(key)


def _text(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or _control(c) for c in text) + '"'


def _control(character: str) -> str:
    if ord(character) < ord(" ") or character == "\x7f":
        return f"\\u{ord(character):04x}"
    return character


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = format_float(value, "f", -1)
        return text if "." in text else f"{text}.0"
    if isinstance(value, Opaque):
        # TOML has times of its own; all else is a text.
        return value.encoded() if value.go_type == "time.Time" else _text(value.encoded())
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, list):
        if any(item is None for item in value):
            raise FunctionError("toml: cannot encode array with nil element")
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        members = ", ".join(f"{_key(key)} = {_value(value[key])}" for key in sorted(value))
        return f"{{{members}}}"
    raise FunctionError(f"unsupported type: {type_name(value)}")


def load(text: str) -> dict[str, Any]:
    """Read TOML.

    Raises:
        FunctionError: where the text is none.
    """
    import tomllib  # noqa: PLC0415 - few templates read TOML

    # The parser visits the parts of a key, and of the table that it is in, again and again.
    if any(line.partition("=")[0].count(".") > _MOST_PARTS for line in text.splitlines()):
        raise FunctionError(f"toml: a key of more than {_MOST_PARTS} parts")
    try:
        return _plain(tomllib.loads(text))  # type: ignore[no-any-return]
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise FunctionError(f"toml: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float) else str(value)
