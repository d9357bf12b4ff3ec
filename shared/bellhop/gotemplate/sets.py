"""The sets of functions that templates are given, each made when first asked for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.functions import FunctionSet

if TYPE_CHECKING:
    from collections.abc import Mapping


@cache
def sprig_functions() -> FunctionSet:
    """Return the functions of sprig 3; those that would read the machine only say so."""
    return FunctionSet({})


@cache
def event_functions() -> FunctionSet:
    """Return all functions of a template rendered for an event: sprig, Helm's, resources'."""
    return FunctionSet({})


@cache
def _deploy() -> FunctionSet:
    return FunctionSet({})


def deploy_functions(resources: Mapping[str, dict[str, Any]]) -> FunctionSet:
    """Return all functions of a template rendered at deploy time, over resources by identifier."""
    return _deploy().with_context(resources)
