"""Regular expressions: what they find in a text."""

from __future__ import annotations

from typing import Any

from bellhop.celbox.library import Function


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return str(found[0]) if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [str(found[0]) for found in _compiled(pattern).finditer(text)]


def _find_some(text: str, pattern: str, most: int) -> list[str]:
    found = _find_all(text, pattern)
    return found if most < 0 else found[:most]


def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - 4 ms, of use only to rules that search

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise ValueError("invalid regular expression") from None


FUNCTIONS = (
    Function("find", ("string", "string"), "string", _find),
    Function("findAll", ("string", "string"), "list", _find_all),
    Function("findAll", ("string", "string", "int"), "list", _find_some),
)
