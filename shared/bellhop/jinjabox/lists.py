"""The filters on lists and mappings."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from jinja2 import Undefined
from jinja2.runtime import Context

from bellhop.gotemplate import Budget
from bellhop.jinjabox import methods
from bellhop.jinjabox.checks import TESTS
from bellhop.jinjabox.filters import FILTERS, Table
from bellhop.jinjabox.operations import calculate
from bellhop.jinjabox.values import RefusedError, defined, items_of, kind, less, string, whole

LISTS = Table()
PARTS = {"grouper": 0, "list": 1}
_MISSING = object()


class Group(list[Any]):
    """A group that groupby yields: a value and its items, also by the names in `PARTS`."""


@LISTS.add("length count")
def length(_budget: Budget, value: Any) -> int:
    """Count characters, items or entries."""
    if not isinstance(value, str | list | dict):
        raise RefusedError(f"{kind(value)} has no length")
    return len(value)


@LISTS.add("list")
def to_list(budget: Budget, value: Any) -> list[Any]:
    """Return a text's characters, a list's items or a mapping's keys."""
    if isinstance(value, str):
        budget.spend(len(value))
        return list(value)
    return list(items_of(budget, value))


@LISTS.add("first", whole=True)
def first(context: Context, value: Any) -> Any:
    return _end(context, value, 0)


@LISTS.add("last", whole=True)
def last(context: Context, value: Any) -> Any:
    return _end(context, value, -1)


def _end(context: Context, value: Any, position: int) -> Any:
    items = value if isinstance(value, str) else items_of(_budget(context), value)
    return items[position] if items else context.environment.undefined("the list is empty")


@LISTS.add("reverse")
def reverse(budget: Budget, value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else items_of(budget, value)[::-1]


@LISTS.add("items")
def items(budget: Budget, value: Any) -> list[Any]:
    """Return key and value of each entry, by key."""
    if not isinstance(value, dict):
        raise RefusedError(f"{kind(value)} has no entries")
    return methods.pairs(budget, value)


@LISTS.add("dictsort")
def dictsort(budget: Budget, value: Any, _case: Any = True, by: Any = "key") -> list[Any]:  # noqa: FBT002 - Jinja2's signature
    """Return key and value of each entry, in the order of keys, or of values."""
    found = items(budget, value)
    return found if by == "key" else _sorted(budget, found, [each[1] for each in found])


@LISTS.add("join", whole=True)
def join(context: Context, value: Any, between: Any = "", attribute: Any = None) -> str:
    """Join items into one text."""
    chosen = _attributes(context, value, attribute)
    return methods.joined(_budget(context), string(between), chosen)


@LISTS.add("sort", whole=True)
def sort(
    context: Context,
    value: Any,
    reverse: Any = False,  # noqa: FBT002 - Jinja2's signature
    case_sensitive: Any = False,  # noqa: FBT002 - Jinja2's signature
    attribute: Any = None,
) -> list[Any]:
    """Order numbers or texts, or whatever has such an attribute."""
    budget = _budget(context)
    keys = _attributes(context, value, attribute)
    keys = _folded(budget, keys, case_sensitive)
    found = _sorted(budget, items_of(budget, value), keys)
    return found[::-1] if reverse else found


@LISTS.add("unique", whole=True)
def unique(
    context: Context,
    value: Any,
    case_sensitive: Any = False,  # noqa: FBT002 - Jinja2's signature
    attribute: Any = None,
) -> list[Any]:
    """Return the items that differ, each where it stood first."""
    found: dict[Any, Any] = {}
    budget = _budget(context)
    keys = _folded(budget, _attributes(context, value, attribute), case_sensitive)
    for each, item in zip(keys, items_of(budget, value), strict=True):
        found.setdefault(_scalar(each), item)
    return list(found.values())


@LISTS.add("min", whole=True)
def least(context: Context, value: Any, attribute: Any = None) -> Any:
    return first(context, sort(context, value, attribute=attribute, case_sensitive=True))


@LISTS.add("max", whole=True)
def most(context: Context, value: Any, attribute: Any = None) -> Any:
    return last(context, sort(context, value, attribute=attribute, case_sensitive=True))


@LISTS.add("sum", whole=True)
def total(context: Context, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    """Add numbers up."""
    for each in _attributes(context, value, attribute):
        start = calculate(_budget(context), "+", start, each)
    return start


@LISTS.add("batch", whole=False)
def batch(budget: Budget, value: Any, size: Any) -> list[Any]:
    """Return the items in lists of a size; the last may be shorter."""
    every = whole(size, 2**31)
    if every < 1:
        raise RefusedError("the size of a batch is at least 1")
    found = items_of(budget, value)
    return [found[at : at + every] for at in range(0, len(found), every)]


@LISTS.add("groupby", whole=True)
def groupby(context: Context, value: Any, attribute: Any, default: Any = _MISSING) -> list[Any]:
    """Return groups of items that share an attribute, as pairs of the value and its items."""
    budget = _budget(context)
    groups: dict[Any, list[Any]] = {}
    keys = _attributes(context, value, attribute, default)
    for each, item in zip(keys, items_of(budget, value), strict=True):
        groups.setdefault(_scalar(each), []).append(item)
    ordered = _sorted(budget, list(groups), list(groups))
    return [Group((each, groups[each])) for each in ordered]


@LISTS.add("map", whole=True)
def mapped(
    context: Context,
    value: Any,
    *arguments: Any,
    attribute: Any = None,
    default: Any = _MISSING,
    **named: Any,
) -> list[Any]:
    """Return an attribute of each item, or what a filter makes of each."""
    if attribute is not None:
        return _attributes(context, value, attribute, default)
    if not arguments:
        raise RefusedError("map takes the name of a filter, or attribute=…")
    name, *rest = arguments
    function = ALL.get(string(name))
    if function is None:
        raise RefusedError("map names a filter that is not there")
    return [function(context, each, *rest, **named) for each in items_of(_budget(context), value)]


@LISTS.add("select", whole=True)
def select(context: Context, value: Any, *test: Any) -> list[Any]:
    """Return the items that pass a test."""
    found = items_of(_budget(context), value)
    return [each for each in found if _passes(context, each, test)]


@LISTS.add("reject", whole=True)
def reject(context: Context, value: Any, *test: Any) -> list[Any]:
    """Return the items that fail a test."""
    found = items_of(_budget(context), value)
    return [each for each in found if not _passes(context, each, test)]


@LISTS.add("selectattr", whole=True)
def selectattr(context: Context, value: Any, attribute: Any, *test: Any) -> list[Any]:
    """Return the items with an attribute that passes a test."""
    return _by_attribute(context, value, attribute, test, passes=True)


@LISTS.add("rejectattr", whole=True)
def rejectattr(context: Context, value: Any, attribute: Any, *test: Any) -> list[Any]:
    """Return the items with an attribute that fails a test."""
    return _by_attribute(context, value, attribute, test, passes=False)


def _by_attribute(
    context: Context, value: Any, attribute: Any, test: tuple[Any, ...], *, passes: bool
) -> list[Any]:
    return [
        each
        for each in items_of(_budget(context), value)
        if _passes(context, _attribute(context, each, attribute), test) == passes
    ]


def _passes(context: Context, value: Any, test: tuple[Any, ...]) -> bool:
    if not test:
        return bool(value)
    function = TESTS.get(string(test[0]))
    if function is None:
        raise RefusedError("the name of a test that is not there")
    return bool(function(context, value, *test[1:]))


def _attributes(context: Context, value: Any, attribute: Any, default: Any = _MISSING) -> list[Any]:
    found = items_of(_budget(context), value)
    if attribute is None:
        return found
    chosen = [_attribute(context, each, attribute) for each in found]
    if default is _MISSING:
        return [defined(each) for each in chosen]
    return [default if isinstance(each, Undefined) else each for each in chosen]


def _attribute(context: Context, item: Any, path: Any) -> Any:
    """Look a path up, as in `metadata.name` or `ports.0.port`."""
    _budget(context).spend(1)
    if not isinstance(path, str):
        return context.environment.getitem(item, path)
    for step in path.split("."):
        item = context.environment.getitem(item, int(step) if step.isdecimal() else step)
    return item


def _folded(budget: Budget, keys: list[Any], case_sensitive: Any) -> list[Any]:
    """Return keys to compare; one text in many places counts in each."""
    budget.reserve(sum(len(each) for each in keys if isinstance(each, str)))
    if case_sensitive:
        return keys
    return [each.lower() if isinstance(each, str) else each for each in keys]


def _scalar(value: Any) -> Any:
    if isinstance(defined(value), dict | list):
        raise RefusedError(f"{kind(value)} cannot be compared here; name an attribute")
    return value


def _sorted(budget: Budget, found: list[Any], keys: list[Any]) -> list[Any]:
    budget.spend(len(found) * max(len(found).bit_length() // 4, 1))
    budget.reserve(sum(len(each) for each in keys if isinstance(each, str)))
    for one, other in pairwise(keys):
        less(budget, one, other)
    order = sorted(range(len(found)), key=keys.__getitem__)
    return [found[at] for at in order]


def _budget(context: Context) -> Budget:
    budget: Budget = context.environment.budget  # type: ignore[attr-defined]
    return budget


ALL = Table({**FILTERS, **LISTS})
