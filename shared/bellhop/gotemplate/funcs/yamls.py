"""YAML as Kubernetes' tools write and read it: sorted keys, go-yaml's quoting, YAML 1.1 scalars."""

from __future__ import annotations

import re
from functools import cmp_to_key, lru_cache
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import DepthLimitError, FunctionError, StepLimitError
from bellhop.gotemplate.floats import format_float
from bellhop.gotemplate.funcs.jsons import number, struct_as_map
from bellhop.gotemplate.limits import LONG, MAX_DATA_DEPTH, MAX_YAML_VALUES
from bellhop.gotemplate.literals import MAX_INT, MIN_INT, parse_integer, to_bytes
from bellhop.gotemplate.values import Opaque, Struct, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bellhop.gotemplate.limits import Budget

_TRUE = frozenset("y Y yes Yes YES true True TRUE on On ON".split())  # noqa: SIM905 - a word list
_FALSE = frozenset("n N no No NO false False FALSE off Off OFF".split())  # noqa: SIM905 - a word list
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]{1,9})?(?:[Zz]|[-+][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]{1,9})?)?\Z"
)
_NUMERIC = re.compile(r"[-+.:0-9A-Fa-fxXoO_]+\Z")
_INDENT = 2
_MOST_WRITTEN = 50_000
"""Values that are written; the largest definitions have some 30,000, and each takes 20 us."""
_STR_TAG = "tag:yaml.org,2002:str"
_LONGEST_KEY = 1024
_HINTS = frozenset("+-0123456789yYnNtTfFoO~.")


def resolve(text: str) -> Any:
    """Return what a plain scalar means in YAML 1.1 as go-yaml reads it; texts mean themselves."""
    if len(text) > LONG or (text and text[0] not in _HINTS):
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _SPECIAL.match(text):
        return float(text.replace(".", "", 1))
    return _resolve_number(text)


def _resolve_number(text: str) -> Any:
    plain = text.replace("_", "")
    if text[0] == ".":
        return float(text) if _FLOAT.match(text) else text
    whole = parse_integer(plain)
    if whole is not None and MIN_INT <= whole <= 2 * MAX_INT + 1 and plain:
        return whole
    if not _FLOAT.match(plain):
        return text
    number_ = float(plain)
    return text if number_ in (float("inf"), float("-inf")) else number_


def _is_plain_text(text: str) -> bool:
    """Return whether a text without quotes would be read back as itself."""
    if len(text) > LONG:
        return _NUMERIC.match(text) is None
    if _TIMESTAMP.match(text) or _BASE_60.match(text):
        return False
    return isinstance(resolve(text), str)


# -- writing


def _less(one: str, other: str) -> int:
    """Compare keys as go-yaml sorts them: digits by their number, letters after the rest.

    Of keys longer than any in Kubernetes the order is that of their characters.
    """
    if len(one) > _LONGEST_KEY and len(other) > _LONGEST_KEY:
        return (one > other) - (one < other)
    for position, (a, b) in enumerate(zip(one, other, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            if a.isalpha() and b.isalpha():
                return -1 if a < b else 1
            return -1 if b.isalpha() else 1
        return _less_digits(one, other, position)
    return len(one) - len(other)


def _less_digits(one: str, other: str, position: int) -> int:
    lead = 0
    if "0" in (one[position], other[position]):
        before = position - 1
        while before >= 0 and one[before].isdecimal():
            if one[before] != "0":
                lead = 1
                break
            before -= 1
    first, first_end = _digits(one, position, lead)
    second, second_end = _digits(other, position, lead)
    if first != second:
        return -1 if first < second else 1
    if first_end != second_end:
        return first_end - second_end
    return -1 if one[position] < other[position] else 1


def _digits(text: str, position: int, number_: int) -> tuple[int, int]:
    while position < len(text) and text[position].isdecimal():
        number_ = wrap(number_ * 10 + ord(text[position]) - ord("0"))
        position += 1
    return number_, position


@lru_cache(maxsize=1)
def _dumper() -> type[Any]:
    """Make the dumper: libyaml's emitter, with go-yaml's choice of styles."""
    import yaml  # noqa: PLC0415 - dear, and few templates write YAML

    class Dumper(yaml.CSafeDumper):
        """Writes the tree that `_represent` makes; resolves nothing by itself."""

    Dumper.yaml_implicit_resolvers = {}
    return Dumper


def _node(value: Any) -> Any:
    import yaml  # noqa: PLC0415 - as above

    if isinstance(value, Struct):
        value = struct_as_map(value)
    if isinstance(value, dict):
        keys = sorted(map(str, value), key=cmp_to_key(_less))
        pairs = [(_text_node(key), _node(value[key])) for key in keys]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=not pairs)
    if isinstance(value, list):
        items = [_node(item) for item in value]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=not items)
    if isinstance(value, Opaque):
        value = value.encoded()
    if isinstance(value, str):
        return _text_node(value)
    return yaml.ScalarNode(_STR_TAG, _plain(value), style=None)


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = number(value)
        return format_float(value) if "." in text or "e" in text else text
    if isinstance(value, complex):
        raise FunctionError("json: unsupported type: complex128")
    return int.__repr__(value)


def _text_node(text: str) -> Any:
    import yaml  # noqa: PLC0415 - as above

    try:
        text.encode()
    except UnicodeEncodeError:
        text = to_bytes(text).decode("utf-8", "replace")
    plain = None if _is_plain_text(text) else '"'
    return yaml.ScalarNode(_STR_TAG, text, style="|" if "\n" in text else plain)


def dump(budget: Budget, value: Any) -> str:
    """Write a value as sigs.k8s.io/yaml does, with a newline at the end."""
    import yaml  # noqa: PLC0415 - as above

    if isinstance(value, dict | list):
        before = budget.steps
        budget.take(budget.walk(value, _INDENT))
        if before - budget.steps > _MOST_WRITTEN:
            raise StepLimitError(f"YAML of more than {_MOST_WRITTEN} values")
    text = yaml.serialize(
        _node(value), Dumper=_dumper(), allow_unicode=True, width=80, indent=_INDENT
    )
    return str(text).removesuffix("...\n")


# -- reading


class _Reader:
    """Builds a value from events, without recursion, within the budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.left = MAX_YAML_VALUES
        self.anchors: dict[str, Any] = {}
        self.stack: list[_Open] = []
        self.result: Any = None

    def read(self, events: Iterator[Any]) -> Any:
        """Consume one document."""
        import yaml  # noqa: PLC0415 - as above

        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._take(_scalar(event), event.anchor)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._open(event, isinstance(event, yaml.MappingStartEvent))
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._take(self.stack.pop().value, None)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentEndEvent):
                return self.result
        return None

    def _open(self, event: Any, is_map: bool) -> None:  # noqa: FBT001 - what the event is
        if len(self.stack) >= MAX_DATA_DEPTH:
            raise DepthLimitError(f"data nested more than {MAX_DATA_DEPTH} deep")
        value: Any = {} if is_map else []
        if event.anchor:
            self.anchors[event.anchor] = value
        self.stack.append(_Open(value))

    def _alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise FunctionError(f"yaml: unknown anchor '{event.anchor}' referenced")
        value = self.anchors[event.anchor]
        if any(opened.value is value for opened in self.stack):
            raise FunctionError(f"yaml: anchor '{event.anchor}' value contains itself")
        if isinstance(value, dict | list):
            self.budget.walk(value)
        self._take(value, None)

    def _take(self, value: Any, anchor: str | None) -> None:
        self.budget.spend(1)
        self.left -= 1
        if self.left < 0:
            raise StepLimitError(f"YAML of more than {MAX_YAML_VALUES} values")
        opened = self.stack[-1] if self.stack else None
        if value is _MERGE and not (opened and opened.expects_key):
            value = "<<"
        if anchor:
            self.anchors[anchor] = value
        if opened is None:
            self.result = value
            return
        if isinstance(opened.value, list):
            opened.value.append(value)
        elif opened.expects_key:
            opened.key, opened.has_key = value, True
        else:
            opened.has_key = False
            _put(opened.value, opened.key, value)


class _Open:
    """A map or list that is not closed yet."""

    __slots__ = ("has_key", "key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key: Any = None
        self.has_key = False

    @property
    def expects_key(self) -> bool:
        """Return whether what comes next is a key."""
        return isinstance(self.value, dict) and not self.has_key


class _Merge:
    """The key `<<`."""


_MERGE = _Merge()


def _put(target: dict[str, Any], key: Any, value: Any) -> None:
    if key is _MERGE:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise FunctionError("yaml: map merge requires map or sequence of maps as the value")
            for name, item in source.items():
                target.setdefault(name, item)
    elif isinstance(key, dict | list):
        raise FunctionError("yaml: invalid map key")
    else:
        target[key if isinstance(key, str) else _plain(key)] = value


def _scalar(event: Any) -> Any:
    text: str = event.value
    if event.tag not in (None, "!"):
        return _tagged(event.tag.removeprefix("tag:yaml.org,2002:"), text)
    if not event.implicit[0]:
        return text
    return _MERGE if text == "<<" else _whole(resolve(text))


def _whole(value: Any) -> Any:
    """Make a float an integer where its JSON would be one, for YAML is read by way of JSON."""
    if not isinstance(value, float):
        return value
    if value - value != 0:
        raise FunctionError(f"json: unsupported value: {format_float(value)}")
    return int(value) if value.is_integer() and MIN_INT <= value <= MAX_INT else value


def _tagged(tag: str, text: str) -> Any:
    if tag in ("int", "float", "bool", "null"):
        value = resolve(text)
        return float(value) if tag == "float" and isinstance(value, int) else value
    if tag == "binary":
        import base64  # noqa: PLC0415 - nearly never

        return base64.b64decode(text).decode("utf-8", "surrogateescape")
    return text


def load(budget: Budget, text: str) -> Any:
    """Read the first document.

    Raises:
        FunctionError: in go-yaml's words.
    """
    import yaml  # noqa: PLC0415 - as above

    try:
        return _Reader(budget).read(yaml.parse(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        line = f"line {mark.line + 1}: " if mark is not None and mark.line else ""
        raise FunctionError(f"yaml: {line}{problem}") from error
