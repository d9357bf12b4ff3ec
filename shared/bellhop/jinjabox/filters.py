"""The filters on texts and numbers, and how all filters are declared."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote as percent_quote

from jinja2 import Undefined, pass_context
from jinja2.runtime import Context

from bellhop.errors import InvalidError
from bellhop.gotemplate import Budget
from bellhop.jinjabox import methods
from bellhop.jinjabox.operations import formatted
from bellhop.jinjabox.values import (
    RefusedError,
    defined,
    dumped,
    glance,
    measured,
    number,
    paid,
    shown,
    string,
    whole,
)

Filter = Callable[..., Any]
_Filter = TypeVar("_Filter", bound=Filter)

_WIDEST = 1000
_BASES = (0, 2, 8, 10, 16)
_PLACES = 15
_LARGEST_YAML = 256 * 1024
_JSON_PER_STEP = 8


class Table(dict[str, Filter]):
    """Collects filters under their names; each gets the budget, or the whole context."""

    def add(
        self, names: str, *, lenient: bool = False, whole: bool = False
    ) -> Callable[[_Filter], _Filter]:
        """Register under the space-separated names; a lenient one takes undefined values."""

        def register(function: _Filter) -> _Filter:
            @pass_context
            def call(context: Context, value: Any, *arguments: Any, **named: Any) -> Any:
                budget: Budget = context.environment.budget  # type: ignore[attr-defined]
                budget.spend(1)
                glance(budget, value)
                if not lenient:
                    defined(value)
                return function(context if whole else budget, value, *arguments, **named)

            for name in names.split():
                self[name] = call
            return function

        return register


FILTERS = Table()


@FILTERS.add("default d", lenient=True)
def default(_budget: Budget, value: Any, otherwise: Any = "", boolean: Any = False) -> Any:  # noqa: FBT002 - Jinja2's signature
    """Return another value for one that is not there, or, if asked, for an empty one."""
    return otherwise if isinstance(value, Undefined) or (boolean and not value) else value


@FILTERS.add("capitalize")
def capitalize(budget: Budget, value: Any) -> str:
    """Write a value with its first letter large, and all others small."""
    return methods.cased(budget, str.capitalize, shown(budget, value))


@FILTERS.add("lower")
def lower(budget: Budget, value: Any) -> str:
    return methods.cased(budget, str.lower, shown(budget, value))


@FILTERS.add("title")
def title(budget: Budget, value: Any) -> str:
    """Write a value with the first letter of each word large."""
    return methods.cased(budget, str.title, shown(budget, value))


@FILTERS.add("upper")
def upper(budget: Budget, value: Any) -> str:
    return methods.cased(budget, str.upper, shown(budget, value))


@FILTERS.add("string")
def to_string(budget: Budget, value: Any) -> str:
    return shown(budget, value)


@FILTERS.add("trim")
def trim(budget: Budget, value: Any, characters: Any = None) -> str:
    return methods.strip(budget, shown(budget, value), characters)


@FILTERS.add("replace")
def replace(budget: Budget, value: Any, old: Any, new: Any) -> str:
    return methods.replace(budget, shown(budget, value), old, new)


@FILTERS.add("truncate")
def truncate(budget: Budget, value: Any, length: Any = 63, end: Any = "") -> str:
    """Cut a text to a length, the end that marks the cut included."""
    text, mark, most = shown(budget, value), string(end), whole(length, 2**31)
    return text if len(text) <= most else paid(budget, text[: max(most - len(mark), 0)] + mark)


@FILTERS.add("indent")
def indent(
    budget: Budget,
    value: Any,
    width: Any = 4,
    first: Any = False,  # noqa: FBT002 - Jinja2's signature
    blank: Any = False,  # noqa: FBT002 - Jinja2's signature
) -> str:
    """Indent all lines but the first, and, if asked, the first and blank ones too."""
    text = shown(budget, value)
    prefix = str(width) if isinstance(width, str) else " " * whole(width, _WIDEST)
    count = text.count("\n") + 1
    budget.spend(count)
    budget.reserve(len(text) + count * len(prefix))
    rows = text.split("\n")
    moved = [
        prefix + row if (row or blank) and (at or first) else row for at, row in enumerate(rows)
    ]
    return paid(budget, "\n".join(moved))


@FILTERS.add("nindent")
def nindent(budget: Budget, value: Any, width: Any = 4) -> str:
    """Begin a new line, and indent every line, as sprig's nindent does."""
    return "\n" + indent(budget, value, width, first=True)


@FILTERS.add("quote")
def quote(budget: Budget, value: Any) -> str:
    """Put a value in double quotes, escaped, so that YAML reads it as a text."""
    return paid(budget, json.dumps(shown(budget, value), ensure_ascii=False))


@FILTERS.add("squote")
def squote(budget: Budget, value: Any) -> str:
    """Put a value in single quotes, with those inside doubled."""
    text = shown(budget, value)
    budget.reserve(2 * len(text) + 2)
    return paid(budget, "'" + text.replace("'", "''") + "'")


@FILTERS.add("format")
def printf(budget: Budget, value: Any, *arguments: Any, **named: Any) -> str:
    return formatted(budget, string(value), named or list(arguments))


@FILTERS.add("urlencode")
def urlencode(budget: Budget, value: Any) -> str:
    text = shown(budget, value)
    budget.reserve(12 * len(text))
    return paid(budget, percent_quote(text, safe="/"))


# Numbers ------------------------------------------------------------------------------------


@FILTERS.add("int")
def integer(budget: Budget, value: Any, otherwise: Any = 0, base: Any = 10) -> Any:
    """Read a whole number; what is none is another value."""
    budget.spend(1)
    if whole(base, 16) not in _BASES:
        raise RefusedError("the base of a number is 2, 8, 10 or 16")
    try:
        return number(int(value, base) if isinstance(value, str) else int(value))
    except (TypeError, ValueError, OverflowError):
        try:
            return number(int(float(value)))
        except (TypeError, ValueError, OverflowError):
            return otherwise


@FILTERS.add("float")
def floating(_budget: Budget, value: Any, otherwise: Any = 0.0) -> Any:
    """Read a number; what is none is another value."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return otherwise


@FILTERS.add("abs")
def absolute(_budget: Budget, value: Any) -> Any:
    return abs(number(value))


@FILTERS.add("round")
def rounded(_budget: Budget, value: Any, places: Any = 0, method: Any = "common") -> Any:
    if method not in {"common", "ceil", "floor"}:
        raise RefusedError("the method of rounding is common, ceil or floor")
    factor = 10 ** whole(places, _PLACES)
    if method == "common":
        return round(number(value), whole(places, _PLACES))
    scaled = number(value) * factor
    below = scaled // 1
    return (below if method == "floor" or below == scaled else below + 1) / factor


# Encodings ------------------------------------------------------------------------------------


@FILTERS.add("b64encode")
def b64encode(budget: Budget, value: Any) -> str:
    return paid(budget, base64.b64encode(_bytes(budget, value)).decode())


@FILTERS.add("b64decode")
def b64decode(budget: Budget, value: Any) -> str:
    """Decode a text from base64, as the data of Secrets are."""
    try:
        return paid(budget, base64.b64decode(string(value), validate=True).decode())
    except (binascii.Error, ValueError) as error:
        raise RefusedError("the value is not base64 of a UTF-8 text") from error


@FILTERS.add("sha256")
def sha256(budget: Budget, value: Any) -> str:
    return hashlib.sha256(_bytes(budget, value)).hexdigest()


@FILTERS.add("to_json tojson toJson")
def to_json(budget: Budget, value: Any, indent: Any = None) -> str:
    """Write a value as JSON, keys in order."""
    return dumped(budget, value, None if indent is None else whole(indent, 8))


@FILTERS.add("from_json fromJson")
def from_json(budget: Budget, value: Any) -> Any:
    text = string(value)
    budget.spend(sum(map(text.count, ",[{")))
    budget.reserve(2 * len(text))
    try:
        return measured(budget, json.loads(text))
    except ValueError as error:
        raise RefusedError("the value is not JSON") from error


@FILTERS.add("to_yaml toyaml toYaml")
def to_yaml(budget: Budget, value: Any) -> str:
    """Write a value as YAML, keys in order, without a line break at the end."""
    from bellhop.gotemplate.funcs import serial  # noqa: PLC0415 - few templates write YAML

    # What can be written as JSON can be written as YAML; each of its nodes takes far longer.
    budget.spend(len(dumped(budget, value)) // _JSON_PER_STEP)
    return serial.to_yaml(budget, value)


@FILTERS.add("from_yaml fromyaml fromYaml")
def from_yaml(budget: Budget, value: Any) -> Any:
    """Read one document of YAML."""
    from bellhop.documents.document import read_documents  # noqa: PLC0415 - few templates read YAML

    text = string(value)
    if len(text) > _LARGEST_YAML:
        raise RefusedError(f"YAML of more than {_LARGEST_YAML} characters is not read here")
    budget.spend(len(text))
    try:
        found = read_documents(text, source="the value", expand_lists=False)
    except InvalidError as error:
        raise RefusedError(f"the value is not YAML: {error}") from error
    if len(found) > 1:
        raise RefusedError("the value has more than one YAML document")
    return measured(budget, found[0].data) if found else None


def _bytes(budget: Budget, value: Any) -> bytes:
    text = shown(budget, value)
    budget.reserve(2 * len(text))
    return text.encode("utf-8", "replace")
