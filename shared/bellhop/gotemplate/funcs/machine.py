"""Sprig's functions that would read the machine: here they say that they do not."""

from __future__ import annotations

from typing import NoReturn

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.functions import Table

FUNCTIONS = Table()
_add = FUNCTIONS.add


@_add("env", "string")
def env(name: str) -> NoReturn:
    """Fail: templates see no environment."""
    del name
    raise FunctionError("env is not available: templates cannot read the environment")


@_add("expandenv", "string")
def expandenv(text: str) -> NoReturn:
    """Fail: templates see no environment."""
    del text
    raise FunctionError("expandenv is not available: templates cannot read the environment")


@_add("getHostByName", "string")
def get_host_by_name(name: str) -> NoReturn:
    """Fail: templates see no network."""
    del name
    raise FunctionError("getHostByName is not available: templates cannot use the network")
