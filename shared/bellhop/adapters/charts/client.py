"""The HTTP client of chart sources; a failed request becomes a sentence about the chart."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from msgspec import Struct

from bellhop.egress.client import Answer
from bellhop.egress.download import Terms, download, shown
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    MissingError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.model.chart import Login
from bellhop.model.reach import Reach

_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY)


class Limits(Struct, frozen=True):
    """The bytes and seconds that a response may take."""

    largest: int
    seconds: float


class ChartClient(Struct, frozen=True):
    """Requests for one chart; `task` begins each error: "cannot find chart 'a' in 'b'"."""

    task: str
    login: Login
    reach: Reach

    def get(self, url: str, limits: Limits, headers: Mapping[str, str]) -> Answer:
        """Send a GET request and return the response, whatever its status.

        Raises:
            InvalidError, TooLargeError, UnreachableError: as `download` has them.
        """
        terms = Terms(
            self.reach,
            limits.largest,
            limits.seconds,
            self.login.authority,
            self.login.insecure,
            self.login.everywhere,
        )
        return download(url, terms, headers)

    def content(self, url: str, limits: Limits, headers: Mapping[str, str]) -> bytes:
        """Send a GET request and return the body; raise the error of a failed one."""
        answer = self.get(url, limits, headers)
        if not answer.succeeded:
            raise self.refusal(answer.status, url)
        return answer.data

    def refusal(self, status: int, url: str) -> BellhopError:
        """Return the error for a status."""
        there = shown(url)
        if status == HTTPStatus.UNAUTHORIZED:
            why = (
                f"{there} does not accept the credentials; check those in the repository's Secret"
                if self.login.username
                else f"{there} asks for credentials; name a Secret that has them"
            )
            return UnauthorizedError(f"{self.task}: {why}")
        if status == HTTPStatus.FORBIDDEN:
            who = "the credentials" if self.login.username else "requests without credentials"
            return DeniedError(f"{self.task}: {who} may not read {there}; grant access to it")
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return MissingError(f"{self.task}: there is no {there}; check the repository's address")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return ThrottledError(f"{self.task}: {there} limits requests; Bellhop tries again")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
            return UnreachableError(f"{self.task}: {there} answers {status}; Bellhop tries again")
        return InvalidError(
            f"{self.task}: {there} answers {status}; check the repository's address"
        )


def basic(login: Login) -> dict[str, str]:
    """Return the header of basic authentication; none without credentials."""
    if not login.username:
        return {}
    pair = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def json_object(content: bytes) -> dict[str, Any]:
    """Parse a JSON object; return an empty one for any other content."""
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
