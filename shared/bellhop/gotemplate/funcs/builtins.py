"""Go's own template functions: what every template has."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

from bellhop.gotemplate.calls import call, decide
from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.functions import VALUE, Table
from bellhop.gotemplate.limits import SLOW, Budget, Limits
from bellhop.gotemplate.literals import to_bytes, to_text
from bellhop.gotemplate.printf import sprintf
from bellhop.gotemplate.values import (
    ANY,
    NO_VALUE,
    Opaque,
    StringMap,
    Struct,
    Uint8,
    kind_name,
    make_int,
    print_values,
    to_string,
    type_name,
)

FUNCTIONS = Table()
_add = FUNCTIONS.add

_HTML = {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HTML_TABLE = str.maketrans(_HTML)
_JS = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "<": "\\u003C",
    ">": "\\u003E",
    "&": "\\u0026",
    "=": "\\u003D",
}
_MOST_SLICE_INDEXES = 3

_add("and or", VALUE, f"...{VALUE}")(decide)


@_add("not", VALUE)
def negate(value: Any) -> bool:
    """Return whether a value is empty."""
    return not value


@_add("len", VALUE)
def length(value: Any) -> int:
    """Return how many items, keys or bytes a value has."""
    if isinstance(value, str):
        return make_int(len(value) if value.isascii() else len(to_bytes(value)))
    if isinstance(value, list | dict) and not isinstance(value, Struct):
        return make_int(len(value))
    if value is None:
        raise FunctionError("len of nil pointer")
    if value is NO_VALUE:
        raise FunctionError("reflect: call of reflect.Value.Type on zero Value")
    raise FunctionError(f"len of type {type_name(value)}")


def _position(index: Any, most: int) -> int:
    if isinstance(index, int) and not isinstance(index, bool):
        if not 0 <= index <= most:
            raise FunctionError(f"index out of range: {int(index)}")
        return int(index)
    if index is None or index is NO_VALUE:
        raise FunctionError("cannot index slice/array with nil")
    raise FunctionError(f"cannot index slice/array with type {type_name(index)}")


@_add("index", VALUE, f"...{VALUE}")
def index(item: Any, *indexes: Any) -> Any:
    """Return an element of a list, a map or a string, step by step."""
    if item is None or item is NO_VALUE:
        raise FunctionError("index of untyped nil")
    for step in indexes:
        if item is None:
            raise FunctionError("index of nil pointer")
        item = _element(item, step)
    return item


def _element(item: Any, step: Any) -> Any:
    if isinstance(item, dict) and not isinstance(item, Struct):
        return _entry(item, step)
    if isinstance(item, str):
        data = to_bytes(item)
        at = _position(step, len(data))
        if at == len(data):
            raise FunctionError("reflect: string index out of range")
        return Uint8(data[at])
    if isinstance(item, list):
        at = _position(step, len(item))
        if at == len(item):
            raise FunctionError("reflect: slice index out of range")
        return item[at]
    raise FunctionError(f"can't index item of type {type_name(item)}")


def _entry(item: dict[Any, Any], step: Any) -> Any:
    if step is None or step is NO_VALUE:
        raise FunctionError("value is nil; should be of type string")
    if not isinstance(step, str):
        raise FunctionError(f"value has type {type_name(step)}; should be string")
    missing = "" if isinstance(item, StringMap) else None
    return item.get(step, missing)


@_add("slice", VALUE, f"...{VALUE}")
def slice_of(item: Any, *indexes: Any) -> Any:
    """Return a part of a list or a string."""
    if item is None or item is NO_VALUE:
        raise FunctionError("slice of untyped nil")
    if len(indexes) > _MOST_SLICE_INDEXES:
        raise FunctionError(f"too many slice indexes: {len(indexes)}")
    data: Any
    if isinstance(item, str):
        if len(indexes) == _MOST_SLICE_INDEXES:
            raise FunctionError("cannot 3-index slice a string")
        data = to_bytes(item)
    elif isinstance(item, list):
        data = item
    else:
        raise FunctionError(f"can't slice item of type {type_name(item)}")
    bounds = [0, len(data), len(data)]
    for place, step in enumerate(indexes):
        bounds[place] = _position(step, len(data))
    for low, high in ((0, 1), (1, 2))[: max(len(indexes) - 1, 1)]:
        if bounds[low] > bounds[high]:
            raise FunctionError(f"invalid slice index: {bounds[low]} > {bounds[high]}")
    part = data[bounds[0] : bounds[1]]
    return to_text(part) if isinstance(item, str) else item.__class__(part)


_add("call", VALUE, f"...{VALUE}")(call)


# -- text


@_add("print", f"...{ANY}", budgeted=True)
def print_(budget: Budget, *values: Any) -> str:
    """Write values side by side."""
    return print_values(values, budget)


@_add("println", f"...{ANY}", budgeted=True)
def println(budget: Budget, *values: Any) -> str:
    """Write values with spaces between them and a newline after."""
    return " ".join(to_string(value, budget) for value in values) + "\n"


@_add("printf", "string", f"...{ANY}", budgeted=True)
def printf(budget: Budget, template: str, *values: Any) -> str:
    """Write values into a format."""
    return sprintf(template, values, budget)


def _joined(budget: Budget, values: tuple[Any, ...]) -> str:
    shown = ["<no value>" if value is None else value for value in values]
    return print_values(shown, budget)


@_add("html", f"...{ANY}", budgeted=True, most=SLOW)
def html(budget: Budget, *values: Any) -> str:
    return _joined(budget, values).translate(_HTML_TABLE)


@_add("js", f"...{ANY}", budgeted=True, most=SLOW)
def js(budget: Budget, *values: Any) -> str:
    return "".join(_js_character(character) for character in _joined(budget, values))


def _js_character(character: str) -> str:
    if character in _JS:
        return _JS[character]
    code = ord(character)
    if code < ord(" "):
        return f"\\u{code:04X}"
    if code >= 0x80 and not character.isprintable():  # noqa: PLR2004 - the end of ASCII
        return f"\\u{code:04X}"
    return character


@_add("urlquery", f"...{ANY}", budgeted=True, most=SLOW)
def urlquery(budget: Budget, *values: Any) -> str:
    return quote_plus(to_bytes(_joined(budget, values)), safe="")


# -- comparison

_BASIC = {
    "bool": "bool",
    "string": "string",
    "float64": "float",
    "int": "int",
    "int64": "int",
    "uint8": "int",
    "complex128": "complex",
}
_INVALID = "invalid type for comparison"


def _basic(value: Any) -> str:
    return _BASIC.get(kind_name(value), "")


@_add("eq", VALUE, f"...{VALUE}")
def equal(first: Any, *others: Any) -> bool:
    """Return whether the first value equals any of the others."""
    if not others:
        raise FunctionError("missing argument for comparison")
    return any(_same(first, other) for other in others)


def _same(first: Any, second: Any) -> bool:
    if first.__class__ is second.__class__ and first.__class__ in (str, int, bool):
        return bool(first == second)
    one, two = _basic(first), _basic(second)
    if one != two:
        if first is None or second is None or first is NO_VALUE or second is NO_VALUE:
            return False
        raise FunctionError(
            f"incompatible types for comparison: {type_name(first)} and {type_name(second)}"
        )
    if one:
        return bool(first == second)
    return _same_composite(first, second)


def _same_composite(first: Any, second: Any) -> bool:
    first_nil = first is None or first is NO_VALUE
    second_nil = second is None or second is NO_VALUE
    if first_nil or second_nil:
        return first_nil and second_nil
    if kind_name(first) != kind_name(second):
        raise FunctionError(
            f"non-comparable types {_brief(first)}: {type_name(first)}, "
            f"{type_name(second)}: {sprintf('%v', (second,), Budget(Limits()))}"
        )
    if isinstance(first, Opaque | Struct):
        return bool(first == second)
    raise FunctionError(f"non-comparable type {_brief(second)}: {type_name(second)}")


def _brief(value: Any) -> str:
    """Write a value that goes into a message, where Go uses %s."""
    return sprintf("%s", (value,), Budget(Limits()))


@_add("ne", VALUE, VALUE)
def unequal(first: Any, second: Any) -> bool:
    return not equal(first, second)


def _less(first: Any, second: Any) -> bool:
    one, two = _basic(first), _basic(second)
    if not one or not two:
        raise FunctionError(_INVALID)
    if one != two:
        raise FunctionError(
            f"incompatible types for comparison: {type_name(first)} and {type_name(second)}"
        )
    if one in ("bool", "complex"):
        raise FunctionError(_INVALID)
    return bool(first < second)


@_add("lt", VALUE, VALUE)
def less(first: Any, second: Any) -> bool:
    return _less(first, second)


@_add("le", VALUE, VALUE)
def less_or_equal(first: Any, second: Any) -> bool:
    return _less(first, second) or equal(first, second)


@_add("gt", VALUE, VALUE)
def greater(first: Any, second: Any) -> bool:
    return not less_or_equal(first, second)


@_add("ge", VALUE, VALUE)
def greater_or_equal(first: Any, second: Any) -> bool:
    return not _less(first, second)
