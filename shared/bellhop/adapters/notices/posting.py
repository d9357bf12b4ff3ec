"""Posts a notice as JSON to where a Secret says, through the guarded client."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from bellhop.adapters.egress.answer import LimitError
from bellhop.adapters.egress.client import HttpClient, HttpError
from bellhop.adapters.egress.dialer import Dialer
from bellhop.adapters.egress.failures import happened
from bellhop.core.address_policy import AddressPolicy
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    ThrottledError,
    TooLargeError,
    UnreachableError,
)

SECONDS = 10.0
"""How long the connection, the handshake or one read may take."""

WHOLE_SECONDS = 20.0
"""How long one call may take as a whole."""

_BUSY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


def post(
    url: str,
    body: bytes,
    headers: dict[str, str],
    reach: AddressPolicy,
    seconds: float = WHOLE_SECONDS,
) -> bytes:
    """Post JSON and return the answer; an error names the host alone.

    Raises:
        InvalidError: the address is none that is called, or what is sent is refused.
        DeniedError: the credentials are refused.
        ThrottledError: the other side asks to slow down.
        UnreachableError: nobody answers, or nobody who can do it, or not in time.
    """
    said = f"cannot send a notice to '{_host(url, reach)}'"
    headers = {"Content-Type": "application/json", **headers}
    client = HttpClient(url, dialer=Dialer(reach), threads=1, whole=seconds)
    try:
        answer = client.request("POST", headers=headers, body=body, timeout=SECONDS)
    except LimitError as error:
        if error.error is TooLargeError:
            return b""  # It took the notice, and goes on and on about it.
        raise error.error(f"{said}: {error.words}") from None
    except (HttpError, OSError, ValueError) as error:
        # What these errors quote may be the path, which has a secret in it.
        raise UnreachableError(f"{said}: {happened(error)}") from None
    finally:
        client.close()
    if not answer.succeeded:
        raise _refusal(said, answer.status)
    return answer.data


def _host(url: str, reach: AddressPolicy) -> str:
    """Return the host of an address that may be called."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and reach.loopback)):
        raise InvalidError("cannot send a notice: its address does not begin with https://")
    try:
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise InvalidError(f"cannot send a notice to '{host}': its port is invalid") from error
    if refused := reach.refusal(host):
        raise InvalidError(f"cannot send a notice to '{host}': it {refused}")
    return host


def _refusal(said: str, status: int) -> BellhopError:
    said = f"{said}: it answers {status}"
    if status in _BUSY:
        return ThrottledError(said)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnreachableError(said)
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return DeniedError(f"{said}; see whether the Secret still counts there")
    return InvalidError(f"{said}; see what the Secret names")
