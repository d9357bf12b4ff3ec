"""The sets of functions that templates are given, each made when first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.functions import Function, FunctionSet

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPRIG = (
    "certificates",
    "crypto",
    "dates",
    "dicts",
    "encoding",
    "jsons",
    "lists",
    "logic",
    "numbers",
    "paths",
    "regex",
    "semver",
    "strings",
    "words",
)
_HELM = "serial"
_RESOURCES = "resources"


def _table(module: str, name: str = "FUNCTIONS") -> Mapping[str, Function]:
    table: Mapping[str, Function] = getattr(
        import_module(f"bellhop.gotemplate.funcs.{module}"), name
    )
    return table


@cache
def sprig_functions() -> FunctionSet:
    """Return the functions of sprig 3; those that would read the machine only say so."""
    functions: dict[str, Function] = {}
    for module in _SPRIG:
        functions.update(_table(module))
    return FunctionSet(functions)


@cache
def event_functions() -> FunctionSet:
    """Return all functions of a template rendered for an event: sprig, Helm's, and on objects."""
    own = _table(_RESOURCES, "EVENT_FUNCTIONS")
    return FunctionSet({**sprig_functions(), **_table(_HELM), **own})


@cache
def _deploy() -> FunctionSet:
    own = _table(_RESOURCES, "DEPLOY_FUNCTIONS")
    return FunctionSet({**sprig_functions(), **_table(_HELM), **own})


def deploy_functions(resources: Mapping[str, dict[str, Any]]) -> FunctionSet:
    """Return all functions of a template rendered at deploy time, over objects by identifier."""
    return _deploy().with_context(resources)
