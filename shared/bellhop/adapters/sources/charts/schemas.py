"""Schemas of a chart's values, which must not make Helm read files or call servers.

Helm resolves any reference, `file://` and `http://` alike, with the rights and the network of the
worker that runs it.
"""

from __future__ import annotations

import json
import re
from typing import Any

NAME = "values.schema.json"

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
# Helm bundles these and fetches any other.
_KNOWN = re.compile(
    r"https?://json-schema\.org/(draft-0[467]/|draft/2019-09/|draft/2020-12/|)schema#?"
)
_SHOWN = 200


def problem_of(schema: bytes) -> str:
    """Return why a schema is refused; empty if it refers only to itself.

    A reference counts anywhere: another one may point to a value that is no schema by itself.
    """
    problems: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        problems.extend(
            f"refers by {name!r} to {value[:_SHOWN]!r}"
            for name, value in pairs
            if isinstance(value, str) and _is_remote(name, value)
        )

    try:
        json.loads(schema, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return "is not JSON"
    return problems[0] if problems else ""


def _is_remote(name: str, value: str) -> bool:
    if name == "$schema":
        return not _KNOWN.fullmatch(value)
    return name in _REFERENCES and not value.startswith("#")
