"""Template values as Go sees them: the name of the type, the kind, and the written form.

Data is plain JSON-like Python. Where Go distinguishes types that Python does not, a subclass says
so: `Int` is Go's int, whereas a plain int is the int64 that Kubernetes decodes whole numbers to.
Attributes of Python objects are never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.floats import format_float

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bellhop.gotemplate.functions import Function
    from bellhop.gotemplate.limits import Budget

ANY = "interface {}"
_MASK, _SIGN = (1 << 64) - 1, 1 << 63


class NoValue:
    """Go's invalid value: what a pipeline has where there is nothing, not even a typed nil."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Final = NoValue()


class Int(int):
    """Go's int: constants, lengths, indexes."""

    __slots__ = ()


class Uint8(int):
    """Go's byte: what indexing a string gives."""

    __slots__ = ()


class Bytes(list[Any]):
    """Go's []byte."""

    __slots__ = ()


class StringList(list[Any]):
    """Go's []string."""

    __slots__ = ()


class IntList(list[Any]):
    """Go's []int."""

    __slots__ = ()


class DictList(list[Any]):
    """Go's []map[string]interface {}."""

    __slots__ = ()


class StringMap(dict[str, Any]):
    """Go's map[string]string."""

    __slots__ = ()


class Struct(dict[str, Any]):
    """A Go struct: its fields are the keys, and any other name is an error."""

    __slots__ = ("go_type",)

    def __init__(self, fields: Mapping[str, Any] | Iterable[tuple[str, Any]], go_type: str) -> None:
        super().__init__(fields)
        self.go_type = go_type

    def __bool__(self) -> bool:
        return True


class Opaque:
    """A value with a Go type of its own, such as a time: printable, with named methods."""

    __slots__ = ()
    go_type = "struct {}"
    kind = "struct"
    methods: Mapping[str, Function] = {}

    def go_string(self) -> str:
        """Return what Go's %v writes."""
        raise NotImplementedError

    def encoded(self) -> str:
        """Return the text that stands for it in JSON, YAML and TOML."""
        return self.go_string()


def wrap(value: int) -> int:
    """Wrap an integer around at int64, as Go's arithmetic does."""
    return ((value & _MASK) ^ _SIGN) - _SIGN


def make_int(value: int) -> Int:
    return _INTS[value] if 0 <= value < len(_INTS) else Int(value)


_INTS: Final = tuple(Int(i) for i in range(256))

_TYPE_NAMES: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    Int: "int",
    Uint8: "uint8",
    float: "float64",
    complex: "complex128",
    dict: "map[string]interface {}",
    StringMap: "map[string]string",
    list: "[]interface {}",
    StringList: "[]string",
    IntList: "[]int",
    DictList: "[]map[string]interface {}",
    Bytes: "[]uint8",
    type(None): "<nil>",
    NoValue: "<nil>",
}
_KINDS: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    Int: "int",
    Uint8: "uint8",
    float: "float64",
    complex: "complex128",
    dict: "map",
    StringMap: "map",
    list: "slice",
    StringList: "slice",
    IntList: "slice",
    DictList: "slice",
    Bytes: "slice",
    Struct: "struct",
    type(None): "invalid",
    NoValue: "invalid",
}
_BASES = (bool, int, float, str, dict, list)


def _plain_class(value: Any) -> type:
    """Return the class a foreign subclass of a plain type stands for."""
    for base in _BASES:
        if isinstance(value, base):
            return base
    raise FunctionError(f"a Python {type(value).__name__} is not a template value")


def type_name(value: Any) -> str:
    name = _TYPE_NAMES.get(value.__class__)
    if name is not None:
        return name
    if isinstance(value, Struct | Opaque):
        return value.go_type
    return _TYPE_NAMES[_plain_class(value)]


def kind_name(value: Any) -> str:
    kind = _KINDS.get(value.__class__)
    if kind is not None:
        return kind
    if isinstance(value, Opaque):
        return value.kind
    return _KINDS[_plain_class(value)]


def sorted_keys(value: Mapping[Any, Any]) -> list[Any]:
    """Return a map's keys in Go's printing and ranging order."""
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=lambda key: (type_name(key), str(key)))


def sorted_items(value: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Return a map's items in Go's order."""
    return [(key, value[key]) for key in sorted_keys(value)]


def to_string(value: Any, budget: Budget) -> str:
    """Write a value as Go's %v does, within the budget."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        budget.take(budget.walk(value))
    return write(value)


def write(value: Any) -> str:
    """Write a value as Go's %v does; its size is known to be small."""
    if isinstance(value, str):
        return value
    cls = value.__class__
    if cls is int or cls is Int:
        return int.__repr__(value)
    if value is None:
        return "<nil>"
    if value is NO_VALUE:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    return _write_other(value)


def _write_other(value: Any) -> str:
    if isinstance(value, Struct):
        return "{" + " ".join(write(item) for item in value.values()) + "}"
    if isinstance(value, dict):
        inner = " ".join(f"{write(key)}:{write(item)}" for key, item in sorted_items(value))
        return f"map[{inner}]"
    if isinstance(value, list):
        return "[" + " ".join(write(item) for item in value) + "]"
    if isinstance(value, Opaque):
        return value.go_string()
    if isinstance(value, complex):
        imaginary = format_float(value.imag)
        sign = "" if imaginary.startswith(("-", "+")) else "+"
        return f"({format_float(value.real)}{sign}{imaginary}i)"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, str):
        return str.__str__(value)
    raise FunctionError(f"a Python {type(value).__name__} is not a template value")


def print_values(values: Iterable[Any], budget: Budget) -> str:
    """Write values side by side as Go's fmt.Sprint does: a space between two non-strings."""
    pieces: list[str] = []
    after_string = True
    for value in values:
        is_string = isinstance(value, str)
        if not is_string and not after_string:
            pieces.append(" ")
        pieces.append(to_string(value, budget))
        after_string = is_string
    return "".join(pieces)


def copied(value: Any) -> Any:
    """Copy maps and lists to the last leaf; the caller has paid for all items."""
    if isinstance(value, Struct):
        return Struct({key: copied(item) for key, item in value.items()}, value.go_type)
    if isinstance(value, dict):
        return value.__class__({key: copied(item) for key, item in value.items()})
    if isinstance(value, list):
        return value.__class__(copied(item) for item in value)
    return value
