"""Instant queries of Prometheus' HTTP API, which Thanos, Mimir and VictoriaMetrics speak as well.

A check compares numbers, so each query has to give one. No error quotes an answer: its server is
anybody's, and may send back the credentials that it was given.
"""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from bellhop.adapters.egress.answer import Answer
from bellhop.adapters.egress.download import Terms, download, shown
from bellhop.core.address_policy import PUBLIC, AddressPolicy
from bellhop.documents.json import read_json
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    TooLargeError,
    UnreachableError,
)
from bellhop.ports.metrics import Credentials

LARGEST = 1 << 20
"""Bytes of an answer, which holds one number."""

_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_TYPES = {
    "bad_data",
    "canceled",
    "execution",
    "internal",
    "not_acceptable",
    "not_found",
    "timeout",
    "unavailable",
}
"""Prometheus' words for what went wrong; any other word is its server's own."""


class Prometheus:
    """Queries Prometheus at the addresses that `reach` lets through."""

    def __init__(self, reach: AddressPolicy = PUBLIC) -> None:
        self._reach = reach

    def query(
        self, url: str, queries: Mapping[str, str], credentials: Credentials, seconds: float
    ) -> Mapping[str, float]:
        return dict(self._read_value(url, queries, credentials, time.monotonic() + seconds))

    def _read_value(
        self, url: str, queries: Mapping[str, str], credentials: Credentials, end: float
    ) -> Iterator[tuple[str, float]]:
        headers = self._headers(url, credentials)
        for name, query in queries.items():
            left = end - time.monotonic()
            if left <= 0:
                raise _name_query(name, url, UnreachableError("there is no time left for it"))
            target = f"{url}{'&' if '?' in url else '?'}{urlencode({'query': query})}"
            authority = credentials.authority
            terms = Terms(self._reach, largest=LARGEST, seconds=left, authority=authority)
            try:
                value = _value(download(target, terms, headers))
            except (DeniedError, InvalidError, TooLargeError, UnreachableError) as error:
                raise _name_query(name, url, error) from None
            if value is not None:
                yield name, value

    def _headers(self, url: str, credentials: Credentials) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if credentials.token:
            headers["Authorization"] = f"Bearer {credentials.token}"
        elif credentials.username or credentials.password:
            basic = f"{credentials.username}:{credentials.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(basic).decode()}"
        # On one machine a laboratory has no certificates, and nobody listens.
        safe = self._reach.loopback or url.lower().startswith("https:")
        if "Authorization" in headers and not safe:
            raise InvalidError(
                f"cannot query metrics at {shown(url)}: credentials are only sent to an https://"
                " address"
            )
        return headers


def _name_query(name: str, url: str, error: BellhopError) -> BellhopError:
    said = str(error)
    where = "" if shown(url) in said else f" at {shown(url)}"
    return type(error)(f"cannot query metric '{name}'{where}: {said}")


def _value(answer: Answer) -> float | None:
    """Return the number that an answer holds; None if it holds none."""
    if not answer.succeeded:
        raise _refusal(answer)
    match _read(answer).get("data"):
        case {"resultType": "scalar", "result": [_, str(text)]}:
            return _number(text)
        case {"resultType": "vector", "result": []}:
            return None
        case {"resultType": "vector", "result": [{"value": [_, str(text)]}]}:
            return _number(text)
        case {"resultType": "vector", "result": [_, _, *more]}:
            found = len(more) + 2
            raise InvalidError(f"the query finds {found} series; aggregate them, as sum() does")
        case {"resultType": "vector" | "matrix" | "string"}:
            raise InvalidError("the query gives no number; select an instant, and not a range")
    raise _strange()


def _number(text: str) -> float | None:
    """Read a number; what is none, as nothing divided by nothing, is as good as not found."""
    try:
        number = float(text)
    except ValueError:
        raise _strange() from None
    return None if math.isnan(number) else number


def _read(answer: Answer) -> Mapping[str, Any]:
    try:
        return read_json(answer.data)
    except InvalidError:
        raise _strange() from None


def _strange() -> InvalidError:
    return InvalidError("its answer is not one of Prometheus; see the URL and the path")


def _refusal(answer: Answer) -> BellhopError:
    said = f"it answers {answer.status}"
    if answer.status in _REFUSED:
        return DeniedError(f"{said}; see whether the Secret of secretRef still counts there")
    with suppress(InvalidError):
        kind = _read(answer).get("errorType")
        said = f"{said} ({kind})" if isinstance(kind, str) and kind in _TYPES else said
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnreachableError(said)
    return InvalidError(f"{said}; see whether the query is right")
