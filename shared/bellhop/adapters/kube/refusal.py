"""An API server's answer that is no success, and the call that it answers.

The decoder recurses, and fails on the whole of an answer where one object is nested some thousand
levels deep: a custom resource may be. The rest is enough to identify the object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from msgspec import Struct

from bellhop.core.digest import DEEPEST

_LONGEST_DELAY = 3600


class Call(Struct, frozen=True):
    """An operation, for messages: `cannot apply Service 'default/web' on cluster 'a/b'`."""

    cluster: str
    doing: str
    namespace: str = ""
    private: bool = False
    """Whether the API server's words may quote what nobody should see."""

    def __str__(self) -> str:
        return f"cannot {self.doing} on cluster '{self.cluster}'"


class Refusal(Struct, frozen=True):
    """An answer that is no success: the `Status` of an API server, or what stands for one."""

    code: int
    reason: str = ""
    message: str = ""
    details: Mapping[str, Any] = {}
    retry_after: timedelta | None = None
    account: str = ""
    """The service account as which it was asked for."""

    @classmethod
    def read(cls, code: int, body: bytes | str | None, headers: Mapping[str, str]) -> Refusal:
        """Read the answer; if its body is no Status (a proxy's page), only its code counts."""
        status = _status(body)
        details = status.get("details")
        details = details if isinstance(details, dict) else {}
        return cls(
            code=code,
            reason=str(status.get("reason") or ""),
            message=_printable(str(status.get("message") or "")),
            details=details,
            retry_after=_delay(headers.get("Retry-After") or details.get("retryAfterSeconds")),
        )

    def names(self, plural: str, kind: str, name: str) -> bool:
        """Say if it is a NotFound of this very object, and not of its kind or namespace."""
        return (
            self.code == HTTPStatus.NOT_FOUND
            and self.reason == "NotFound"
            and self.details.get("name") == name
            and str(self.details.get("kind", "")).lower() in {plural.lower(), kind.lower()}
        )

    def causes(self) -> list[Mapping[str, Any]]:
        """Return the single causes that the API server lists."""
        causes = self.details.get("causes")
        return [c for c in causes if isinstance(c, dict)] if isinstance(causes, list) else []


def _status(body: bytes | str | None) -> dict[str, Any]:
    try:
        status = json.loads(body or b"")
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _printable(words: str) -> str:
    """Leave out characters that would control a terminal, or a log."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def _delay(seconds: object) -> timedelta | None:
    text = str(seconds or "")
    if not (
        text.isascii() and text.isdigit()
    ):  # A date is allowed too, and no API server sends it.
        return None
    return timedelta(seconds=min(int(text), _LONGEST_DELAY))


_KEPT = DEEPEST + 20
"""Levels that are kept: an object in a list is still seen to be nested too deep."""

# Possessive: a text of megabytes leaves no way back. One that never ends is a text up to the end:
# else each quote in it begins another search for its end.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def read_shallow(text: bytes) -> Any:
    """Return the value of JSON of any depth, in which null stands for what is nested too deep.

    Python's decoder recurses, and fails on the whole of an answer where one object is nested some
    thousand levels deep: a custom resource may be. The rest is enough to identify the object.

    Raises:
        ValueError: it is not JSON.
    """
    pieces, depth, kept = [], 0, 0
    for token in _TOKEN.finditer(text):
        mark = token[0][:1]
        if mark in b"[{":
            depth += 1
            if depth == _KEPT + 1:
                pieces.append(text[kept : token.start()] + b"null")
        elif mark in b"]}":
            if depth == _KEPT + 1:
                kept = token.end()
            depth -= 1
    if depth:
        raise ValueError("the JSON ends early")
    return json.loads(b"".join(pieces) + text[kept:])
