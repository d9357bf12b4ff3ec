"""JSON, written as Go's encoding/json writes it.

Read back, a whole number stays an integer, where Go would make it a float.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.floats import format_float
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import WRITTEN
from bellhop.gotemplate.literals import MAX_UINT, MIN_INT, to_bytes
from bellhop.gotemplate.values import ANY, Bytes, Opaque, Struct, sorted_keys, type_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_LINES = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029"})
_TINY, _HUGE = 1e-6, 1e21


class _Writer:
    """Writes one value."""

    def __init__(self, indent: str, *, html: bool) -> None:
        self.indent = indent
        self.html = html

    def write(self, value: Any, lead: str) -> str:
        """Write a value; `lead` is what its lines begin with."""
        if isinstance(value, str):
            return self.text(value)
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return number(value)
        if isinstance(value, Opaque):
            return self.text(value.encoded())
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, dict):
            return self._map(value, lead)
        if isinstance(value, Bytes):
            import base64  # noqa: PLC0415 - nearly never

            return f'"{base64.b64encode(bytes(value)).decode()}"'
        if isinstance(value, list):
            inner = lead + self.indent
            return self._wrapped("[]", (self.write(item, inner) for item in value), lead)
        raise FunctionError(f"json: unsupported type: {type_name(value)}")

    def text(self, text: str) -> str:
        """Write a text, escaping what HTML would trip over."""
        try:
            text.encode()
        except UnicodeEncodeError:
            text = to_bytes(text).decode("utf-8", "replace")
        quoted = encode_basestring(text)
        if self.html:
            quoted = quoted.translate(_HTML)
        return quoted if quoted.isascii() else quoted.translate(_LINES)

    def _map(self, value: dict[str, Any], lead: str) -> str:
        if isinstance(value, Struct):
            value = struct_as_map(value)
            names = list(value)
        else:
            names = sorted_keys(value)
        inner = lead + self.indent
        colon = ": " if self.indent else ":"
        members = (
            f"{self.text(str(name))}{colon}{self.write(value[name], inner)}" for name in names
        )
        return self._wrapped("{}", members, lead)

    def _wrapped(self, brackets: str, members: Iterable[str], lead: str) -> str:
        if not self.indent:
            return brackets[0] + ",".join(members) + brackets[1]
        inner = f"\n{lead}{self.indent}"
        joined = f",{inner}".join(members)
        return f"{brackets[0]}{inner}{joined}\n{lead}{brackets[1]}" if joined else brackets


def struct_as_map(value: Struct) -> dict[str, Any]:
    """Name a struct's fields as Kubernetes' JSON does, leaving empty ones out."""
    named = {}
    for name, item in value.items():
        capitals = len(name) - len(name.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        small = capitals if capitals in (1, len(name)) else capitals - 1
        if item not in ("", None):
            named[name[:small].lower() + name[small:]] = item
    return named


def number(value: float) -> str:
    """Write a float as encoding/json does."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - not a number
        raise FunctionError(f"json: unsupported value: {format_float(value)}")
    size = abs(value)
    if value and (size < _TINY or size >= _HUGE):
        text = format_float(value, "e", -1)
        return text[:-2] + text[-1] if text[-4:-1] == "e-0" else text
    return format_float(value, "f", -1)


def to_json(budget: Budget, value: Any, indent: str = "", *, html: bool = True) -> str:
    """Write a value within the budget."""
    if isinstance(value, dict | list):
        budget.take(budget.walk(value, len(indent)))
    return _Writer(indent, html=html).write(value, "")


@_add("mustToJson", ANY, budgeted=True, most=WRITTEN)
def must_to_json(budget: Budget, value: Any) -> str:
    return to_json(budget, value)


@_add("mustToPrettyJson", ANY, budgeted=True, most=WRITTEN)
def must_to_pretty_json(budget: Budget, value: Any) -> str:
    return to_json(budget, value, "  ")


@_add("toRawJson mustToRawJson", ANY, budgeted=True, most=WRITTEN)
def to_raw_json(budget: Budget, value: Any) -> str:
    """Write JSON with <, > and & as they are."""
    return to_json(budget, value, html=False)


@_add("toJson", ANY, budgeted=True, most=WRITTEN)
def to_json_(budget: Budget, value: Any) -> str:
    """Write JSON, or nothing for what has none."""
    try:
        return to_json(budget, value)
    except FunctionError:
        return ""


@_add("toPrettyJson", ANY, budgeted=True, most=WRITTEN)
def to_pretty_json(budget: Budget, value: Any) -> str:
    """Write JSON over many lines, or nothing for what has none."""
    try:
        return to_json(budget, value, "  ")
    except FunctionError:
        return ""


# -- reading


def _integer(digits: str) -> int | float:
    if len(digits) > len(str(MIN_INT)):
        return float(digits)
    whole = int(digits)
    return whole if MIN_INT <= whole <= MAX_UINT >> 1 else float(whole)


def _refuse(name: str) -> Any:
    if name[0] == "-":
        raise ValueError(f"invalid character '{name[1]}' in numeric literal")
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


def from_json(budget: Budget, text: str) -> Any:
    """Read JSON, each of whose values is a step.

    Raises:
        FunctionError: in Go's words for the commonest mistakes.
    """
    budget.spend(sum(map(text.count, ",[{")))
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise FunctionError(_complaint(text, error)) from error
    except ValueError as error:
        raise FunctionError(str(error)) from error


_ENDS = "unexpected end of JSON input"


def _complaint(text: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    if at >= len(text) or error.msg.startswith("Unterminated"):
        return _ENDS
    shown = f"'{text[at]}'" if text[at] != "'" else "'\\''"
    if error.msg == "Extra data":
        return f"invalid character {shown} after top-level value"
    if error.msg.startswith("Expecting property name"):
        return f"invalid character {shown} looking for beginning of object key string"
    if error.msg.startswith("Expecting ',' delimiter"):
        inside = "object key:value pair" if text[:at].rfind("{") > text[:at].rfind("[") else ""
        return f"invalid character {shown} after {inside or 'array element'}"
    if error.msg.startswith("Expecting ':'"):
        return f"invalid character {shown} after object key"
    if text[at] == "-":
        # Go has begun to read a number, which Python has not.
        following = text[at + 1 : at + 2]
        return f"invalid character '{following}' in numeric literal" if following else _ENDS
    return f"invalid character {shown} looking for beginning of value"


@_add("fromJson", "string", budgeted=True)
def from_json_or_nil(budget: Budget, text: str) -> Any:
    """Read JSON, or nil where the text is none."""
    try:
        return from_json(budget, text)
    except FunctionError:
        return None


@_add("mustFromJson", "string", budgeted=True)
def must_from_json(budget: Budget, text: str) -> Any:
    return from_json(budget, text)
