"""Sveltos' functions on Kubernetes objects, at event time and at deploy time.

At event time they are given the object, at deploy time the identifier of one that the template's
owner refers to. None of them writes into the object: each works on a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.funcs import yamls
from bellhop.gotemplate.funcs.dicts import MAP
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.values import ANY, copied

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

EVENT_FUNCTIONS = Table()
DEPLOY_FUNCTIONS = Table()
_event = EVENT_FUNCTIONS.add
_deploy = DEPLOY_FUNCTIONS.add

_Object = dict[str, Any]
_VOLATILE = ("managedFields", "resourceVersion", "uid")


def _without_volatile(source: _Object) -> _Object:
    """Leave out what the API server writes for itself."""
    made = dict(source)
    metadata = made.get("metadata")
    if isinstance(metadata, dict):
        made["metadata"] = {k: v for k, v in metadata.items() if k not in _VOLATILE}
    return made


def _owned(budget: Budget, source: _Object) -> _Object:
    budget.walk(source)
    made: _Object = copied(source)
    return made


def _path(path: str) -> list[str]:
    return [part for part in path.split(".") if part]


def _field(source: Any, path: str) -> Any:
    for name in _path(path):
        if not isinstance(source, dict) or name not in source:
            return ""
        source = source[name]
    return source


def _set(budget: Budget, source: _Object, path: str, value: Any) -> _Object:
    """Return a copy with a field set; maps on the way are made."""
    made = target = _owned(budget, source)
    names = _path(path)
    if not names:
        raise FunctionError("a field path is empty")
    for name in names[:-1]:
        target = target.setdefault(name, {})
        if not isinstance(target, dict):
            raise FunctionError(f"'{name}' in the field path '{path}' is not a map")
    if isinstance(value, dict | list):
        budget.walk(value)
    target[names[-1]] = copied(value)
    return made


def _printed(budget: Budget, source: _Object) -> str:
    """Write YAML without its last line break, as Sveltos does."""
    return yamls.dump(budget, source).removesuffix("\n")


def _remove(budget: Budget, source: _Object, path: str) -> _Object:
    """Return a copy without a field."""
    made = _owned(budget, source)
    target: Any = made
    names = _path(path)
    for name in names[:-1]:
        target = target.get(name) if isinstance(target, dict) else None
    if names and isinstance(target, dict):
        target.pop(names[-1], None)
    return made


# -- event time


@_event("getResource", MAP)
def get_resource(source: _Object) -> _Object:
    """Return an object without managedFields, resourceVersion and uid."""
    return _without_volatile(source)


@_event("copy", MAP, budgeted=True)
def copy_(budget: Budget, source: _Object) -> str:
    """Return an object as YAML, without managedFields, resourceVersion and uid."""
    return _printed(budget, _without_volatile(source))


@_event("getField", MAP, "string")
def get_field(source: _Object, path: str) -> Any:
    """Return a field by its dotted path, or an empty text."""
    return _field(source, path)


@_event("setField", MAP, "string", ANY, budgeted=True)
def set_field(budget: Budget, source: _Object, path: str, value: Any) -> str:
    """Return an object as YAML, with a field set."""
    return _printed(budget, _without_volatile(_set(budget, source, path, value)))


@_event("removeField", MAP, "string", budgeted=True)
def remove_field(budget: Budget, source: _Object, path: str) -> str:
    """Return an object as YAML, without a field."""
    return _printed(budget, _without_volatile(_remove(budget, source, path)))


@_deploy("chainSetField", MAP, "string", ANY, budgeted=True)
@_event("chainSetField", MAP, "string", ANY, budgeted=True)
def chain_set_field(budget: Budget, source: _Object, path: str, value: Any) -> _Object:
    """Return a copy of an object with a field set, for the next in a pipeline."""
    return _set(budget, source, path, value)


@_deploy("chainRemoveField", MAP, "string", budgeted=True)
@_event("chainRemoveField", MAP, "string", budgeted=True)
def chain_remove_field(budget: Budget, source: _Object, path: str) -> _Object:
    """Return a copy of an object without a field, for the next in a pipeline."""
    return _remove(budget, source, path)


# -- deploy time


def _referred(budget: Budget, identifier: str) -> _Object:
    resources = budget.context or {}
    if identifier not in resources:
        known = ", ".join(f"'{name}'" for name in sorted(resources)) or "none"
        raise FunctionError(f"no resource has the identifier '{identifier}'; there are: {known}")
    return _without_volatile(resources[identifier])


@_deploy("getResource", "string", budgeted=True)
def get_resource_by_id(budget: Budget, identifier: str) -> _Object | None:
    """Return a referred object, or nil where the identifier has none."""
    source = (budget.context or {}).get(identifier)
    if source is None:
        return None
    return _without_volatile(_owned(budget, source) if budget.owned else source)


@_deploy("copy", "string", budgeted=True)
def copy_by_id(budget: Budget, identifier: str) -> str:
    """Return a referred object as YAML."""
    return _printed(budget, _referred(budget, identifier))


@_deploy("getField", "string", "string", budgeted=True)
def get_field_by_id(budget: Budget, identifier: str, path: str) -> Any:
    """Return a referred object's field by its dotted path, or an empty text."""
    found = _field(_referred(budget, identifier), path)
    if not budget.owned:
        return found
    if isinstance(found, dict | list):
        budget.walk(found)
    return copied(found)


@_deploy("setField", "string", "string", ANY, budgeted=True)
def set_field_by_id(budget: Budget, identifier: str, path: str, value: Any) -> str:
    """Return a referred object as YAML, with a field set."""
    return _printed(budget, _set(budget, _referred(budget, identifier), path, value))


@_deploy("removeField", "string", "string", budgeted=True)
def remove_field_by_id(budget: Budget, identifier: str, path: str) -> str:
    """Return a referred object as YAML, without a field."""
    return _printed(budget, _remove(budget, _referred(budget, identifier), path))
