"""The HTTP client of sources that users name; a failed request becomes a sentence on its task."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from msgspec import Struct

from bellhop.adapters.egress.answer import Answer
from bellhop.adapters.egress.download import Terms, download, origin, shown
from bellhop.core.address_policy import AddressPolicy
from bellhop.core.structs import Redacted
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    MissingError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.state.chart import Login

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY)


class Limits(Struct, frozen=True):
    """The bytes and seconds that a response may take."""

    largest: int
    seconds: float


class SourceClient(Redacted, frozen=True):
    """Requests for one task, which begins each error: "cannot find chart 'a' in 'b'".

    A subclass has the words for what a user may correct. A `token` is sent instead of the
    login's name and password.
    """

    login_source: ClassVar[str]
    address: ClassVar[str]
    anonymous: ClassVar[str] = "name a Secret that has them"
    secret_fields: ClassVar[Collection[str]] = ("token",)
    task: str
    login: Login
    reach: AddressPolicy
    token: str = ""

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
            raise self.refusal(answer, url)
        return answer.data

    def credentials(self) -> dict[str, str]:
        """Return the header that has the token, or the name and password; none without any."""
        if not self.token:
            return basic(self.login)
        if not is_token(self.token):
            raise InvalidError(
                f"{self.task}: its token has other characters than visible ASCII; check it in"
                f" {self.login_source}"
            )
        return bearer(self.token)

    def refusal(self, answer: Answer, url: str) -> BellhopError:
        """Return the error for an answer to `url`; it repeats no address that the task has."""
        status, there = answer.status, shown(answer.url)
        if status == HTTPStatus.UNAUTHORIZED and origin(answer.url) != origin(url):
            return UnauthorizedError(
                f"{self.task}: {shown(url)} redirects to {there}, which asks for credentials;"
                " credentials are not sent to another server"
            )
        server, file, missing = (
            ("the server", "it", "such file") if there in self.task else (there, there, there)
        )
        signed_in = bool(self.token or self.login.username)
        if status == HTTPStatus.UNAUTHORIZED:
            why = (
                f"{server} does not accept the credentials; check those in {self.login_source}"
                if signed_in
                else f"{server} asks for credentials; {self.anonymous}"
            )
            return UnauthorizedError(f"{self.task}: {why}")
        if status == HTTPStatus.FORBIDDEN:
            who = "the credentials" if signed_in else "requests without credentials"
            return DeniedError(f"{self.task}: {who} may not read {file}; grant access to it")
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return MissingError(f"{self.task}: there is no {missing}; check {self.address}")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return ThrottledError(f"{self.task}: {server} limits requests; Bellhop tries again")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
            return UnreachableError(f"{self.task}: {server} answers {status}; Bellhop tries again")
        return InvalidError(f"{self.task}: {server} answers {status}; check {self.address}")


def basic(login: Login) -> dict[str, str]:
    """Return the header of basic authentication; none without credentials."""
    if not login.username:
        return {}
    pair = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def is_token(text: object) -> bool:
    """Return whether a value may be sent as a token."""
    return isinstance(text, str) and _PRINTABLE.fullmatch(text) is not None


def json_object(content: bytes) -> dict[str, Any]:
    """Parse a JSON object; return an empty one for any other content."""
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
