"""Sprig's functions on maps. `set`, `unset` and the merges write into their first argument.

Go gives keys and values in random order; here it is the sorted order of the keys, always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.funcs.casting import to_text_of
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.values import (
    ANY,
    StringList,
    StringMap,
    Struct,
    copied,
    sorted_keys,
    type_name,
)

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

MAP = "map[string]interface {}"
_Map = dict[str, Any]
_LEAST_DIG = 3


@_add("dict", f"...{ANY}", budgeted=True)
def dict_(budget: Budget, *pairs: Any) -> _Map:
    """Make a map of keys and values in turn; a last key without a value gets an empty text."""
    made: _Map = {}
    for position in range(0, len(pairs), 2):
        key = to_text_of(pairs[position], budget)
        made[key] = pairs[position + 1] if position + 1 < len(pairs) else ""
    return made


@_add("get", MAP, "string")
def get(values: _Map, key: str) -> Any:
    """Return a key's value, or an empty text."""
    return values.get(key, "")


@_add("set", MAP, "string", ANY, mutates=True)
def set_(values: _Map, key: str, value: Any) -> _Map:
    """Set a key, in the map itself."""
    values[key] = value
    return values


@_add("unset", MAP, "string", mutates=True)
def unset(values: _Map, key: str) -> _Map:
    """Remove a key, from the map itself."""
    values.pop(key, None)
    return values


@_add("hasKey", MAP, "string")
def has_key(values: _Map, key: str) -> bool:
    return key in values


@_add("pluck", "string", f"...{MAP}")
def pluck(key: str, *maps: _Map) -> list[Any]:
    """Return a key's values in the maps that have it."""
    return [values[key] for values in maps if key in values]


@_add("keys", f"...{MAP}", budgeted=True)
def keys(budget: Budget, *maps: _Map) -> StringList:
    budget.spend(sum(map(len, maps)))
    return StringList(key for values in maps for key in sorted_keys(values))


@_add("values", MAP)
def values_(values: _Map) -> list[Any]:
    return [values[key] for key in sorted_keys(values)]


@_add("pick", MAP, "...string")
def pick(values: _Map, *expected: str) -> _Map:
    return {key: values[key] for key in expected if key in values}


@_add("omit", MAP, "...string")
def omit(values: _Map, *unwanted: str) -> _Map:
    left_out = set(unwanted)
    return {key: value for key, value in values.items() if key not in left_out}


@_add("dig", f"...{ANY}")
def dig(*path: Any) -> Any:
    """Follow keys into a map, and return the value or the default before the map."""
    if len(path) < _LEAST_DIG:
        raise FunctionError("dig needs at least three arguments")
    *steps, default, values = path
    _must_be_map(values)
    for step in steps:
        if not isinstance(step, str):
            raise FunctionError(_not_a(step, "string"))
    for position, step in enumerate(steps):
        if position:
            _must_be_map(values)
        if step not in values:
            return default
        values = values[step]
    return values


def _must_be_map(value: Any) -> None:
    if not isinstance(value, dict) or isinstance(value, Struct | StringMap):
        raise FunctionError(_not_a(value, MAP))


def _not_a(value: Any, expected: str) -> str:
    given = "nil" if value is None else type_name(value)
    return f"interface conversion: interface {{}} is {given}, not {expected}"


# -- merging


@_add("merge mustMerge", MAP, f"...{MAP}", budgeted=True, mutates=True)
def merge(budget: Budget, target: _Map, *sources: _Map) -> _Map:
    """Fill what is empty in the first map from the others, into the map itself."""
    for source in sources:
        budget.walk(source)
        _merge(target, source, overwrite=False)
    return target


@_add("mergeOverwrite mustMergeOverwrite", MAP, f"...{MAP}", budgeted=True, mutates=True)
def merge_overwrite(budget: Budget, target: _Map, *sources: _Map) -> _Map:
    """Put the others' keys over the first map's, into the map itself."""
    for source in sources:
        budget.walk(source)
        _merge(target, source, overwrite=True)
    return target


def _merge(target: _Map, source: _Map, *, overwrite: bool) -> None:
    for key, value in list(source.items()):
        current = target.get(key)
        if value is None:
            if overwrite:
                target[key] = None
        elif isinstance(value, dict) and isinstance(current, dict) and current:
            _merge(current, value, overwrite=overwrite)
        elif key not in target or not current or (overwrite and not _is_kept(value)):
            target[key] = value


def _is_kept(value: Any) -> bool:
    """Return whether a value leaves what it meets: a map does, over something that is none."""
    return isinstance(value, dict)


# -- copies


@_add("deepCopy mustDeepCopy", ANY, budgeted=True)
def deep_copy(budget: Budget, value: Any) -> Any:
    if isinstance(value, dict | list):
        budget.walk(value)
    return copied(value)
