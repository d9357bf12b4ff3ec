"""Sprig's functions on lists. They copy; the must forms differ in nothing a template can see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.funcs.casting import NIL_DEREFERENCE, strings_of, to_int64, to_text_of
from bellhop.gotemplate.funcs.logic import identity, same
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.values import ANY, StringList, kind_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add


def _items(value: Any, doing: str) -> list[Any]:
    if isinstance(value, list):
        return value
    if value is None:
        raise FunctionError(NIL_DEREFERENCE)
    raise FunctionError(f"Cannot {doing} type {kind_name(value)}")


@_add("list tuple", f"...{ANY}")
def list_(*values: Any) -> list[Any]:
    return list(values)


@_add("append push mustAppend mustPush", ANY, ANY)
def append(values: Any, value: Any) -> list[Any]:
    return [*_items(values, "push on"), value]


@_add("prepend mustPrepend", ANY, ANY)
def prepend(values: Any, value: Any) -> list[Any]:
    return [value, *_items(values, "prepend on")]


@_add("concat", f"...{ANY}", budgeted=True)
def concat(budget: Budget, *lists: Any) -> list[Any]:
    joined: list[Any] = []
    for values in lists:
        if not isinstance(values, list):
            _items(values, "find concat on") if values is None else None
            raise FunctionError(f"Cannot concat type {kind_name(values)} as list")
        budget.reserve(len(joined) + len(values))
        joined.extend(values)
    return joined


@_add("first mustFirst", ANY)
def first(values: Any) -> Any:
    """Return the first item, or nil."""
    items = _items(values, "find first on")
    return items[0] if items else None


@_add("last mustLast", ANY)
def last(values: Any) -> Any:
    """Return the last item, or nil."""
    items = _items(values, "find last on")
    return items[-1] if items else None


@_add("rest mustRest", ANY)
def rest(values: Any) -> list[Any]:
    return list(_items(values, "find rest on")[1:])


@_add("initial mustInitial", ANY)
def initial(values: Any) -> list[Any]:
    return list(_items(values, "find initial on")[:-1])


@_add("reverse mustReverse", ANY)
def reverse(values: Any) -> list[Any]:
    return list(reversed(_items(values, "find reverse on")))


@_add("compact mustCompact", ANY)
def compact(values: Any) -> list[Any]:
    """Return the items that are not empty."""
    return [item for item in _items(values, "compact on") if item]


@_add("sortAlpha", ANY, budgeted=True)
def sort_alpha(budget: Budget, values: Any) -> StringList:
    """Return the items as text, sorted."""
    if isinstance(values, list):
        return StringList(sorted(strings_of(values, budget)))
    return StringList([to_text_of(values, budget)])


class _Known:
    """Items met before, looked up fast where they are scalars."""

    def __init__(self, budget: Budget, items: Iterable[Any] = ()) -> None:
        self.budget = budget
        self.scalars: set[Any] = set()
        self.composites: list[Any] = []
        for item in items:
            self.add(item)

    def add(self, item: Any) -> None:
        key = identity(item)
        if key is None:
            self.composites.append(item)
        else:
            self.scalars.add(key)

    def __contains__(self, item: Any) -> bool:
        key = identity(item)
        if key is not None:
            return key in self.scalars
        for other in self.composites:
            for value in (item, other):
                if isinstance(value, dict | list):
                    self.budget.walk(value)
            if same(item, other):
                return True
        return False


@_add("uniq mustUniq", ANY, budgeted=True)
def uniq(budget: Budget, values: Any) -> list[Any]:
    known = _Known(budget)
    found = []
    for item in _items(values, "find uniq on"):
        if item not in known:
            known.add(item)
            found.append(item)
    return found


@_add("without mustWithout", ANY, f"...{ANY}", budgeted=True)
def without(budget: Budget, values: Any, *unwanted: Any) -> list[Any]:
    """Return the items that are none of the others."""
    known = _Known(budget, unwanted)
    return [item for item in _items(values, "find without on") if item not in known]


@_add("has mustHas", ANY, ANY, budgeted=True)
def has(budget: Budget, value: Any, values: Any) -> bool:
    if values is None:
        return False
    return value in _Known(budget, _items(values, "find has on"))


@_add("slice mustSlice", ANY, f"...{ANY}")
def slice_(values: Any, *bounds: Any) -> Any:
    """Return the items from one position to before another."""
    if not isinstance(values, list):
        _items(values, "slice") if values is None else None
        raise FunctionError(f"list should be type of slice or array but {kind_name(values)}")
    if not values:
        return None
    start = to_int64(bounds[0]) if bounds else 0
    end = to_int64(bounds[1]) if len(bounds) > 1 else len(values)
    if not 0 <= start <= end <= len(values):
        raise FunctionError("reflect.Value.Slice: slice index out of bounds")
    return values.__class__(values[start:end])


@_add("chunk mustChunk", "int", ANY)
def chunk(size: int, values: Any) -> list[Any]:
    """Split a list into lists of a size.

    A negative size is sprig's own arithmetic: it says how many lists there are by a division.
    """
    items = _items(values, "chunk")
    if size < 0 and 1 < len(items) <= 1 - size:
        return []
    if size < -1 and len(items) == 1:
        return [list(items)]
    if size <= 0:
        raise FunctionError("runtime error: makeslice: len out of range")
    return [list(items[start : start + size]) for start in range(0, len(items), size)]
