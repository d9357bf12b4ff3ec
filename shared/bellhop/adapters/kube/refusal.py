"""An API server's answer that is no success, and the call that it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from msgspec import Struct

_LONGEST_DELAY = 3600


class Call(Struct, frozen=True):
    """What is being done, for messages: `cannot apply Service 'default/web' on cluster 'a/b'`."""

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
        """Read the answer; a body that is no Status (a proxy's page) leaves its code alone."""
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
    """Leave out what would act on the terminal, or the log, that shows a stranger's words."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def _delay(seconds: object) -> timedelta | None:
    text = str(seconds or "")
    if not (
        text.isascii() and text.isdigit()
    ):  # A date is allowed too, and no API server sends it.
        return None
    return timedelta(seconds=min(int(text), _LONGEST_DELAY))
