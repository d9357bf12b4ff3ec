"""Files from where a user says: bounded, checked at each address, and led on a few times at most.

A redirect is followed as a request of its own, to an address that is checked as the first one was.
Credentials go to the server that they are for and to no other, and nobody leads from TLS to none.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin, urlsplit

import urllib3
from msgspec import Struct
from urllib3.exceptions import InsecureRequestWarning

from bellhop.adapters.egress.answer import NO_TLS, Answer, LimitError, happened
from bellhop.adapters.egress.client import HttpClient, HttpError
from bellhop.adapters.egress.dialer import Dialer
from bellhop.core.address_policy import AddressPolicy
from bellhop.errors import InvalidError, UnreachableError

MOST_REDIRECTS = 5

_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_REDIRECTS = frozenset(
    {
        HTTPStatus.MOVED_PERMANENTLY,
        HTTPStatus.FOUND,
        HTTPStatus.SEE_OTHER,
        HTTPStatus.TEMPORARY_REDIRECT,
        HTTPStatus.PERMANENT_REDIRECT,
    }
)
_READ_SECONDS = 15.0


class Terms(Struct, frozen=True):
    """Where a download may go, and how much it may take.

    By `everywhere` credentials go along to other servers, too. `authority` is PEM, or empty for the
    system's.
    """

    reach: AddressPolicy
    largest: int
    seconds: float = 120.0
    authority: str = ""
    insecure: bool = False
    everywhere: bool = False


def download(url: str, terms: Terms, headers: Mapping[str, str] | None = None) -> Answer:
    """Get what lies at an address; an answer that is no success is returned as well.

    Raises:
        InvalidError: the address may not be called, or a redirect leads where none may.
        TooLargeError: it is larger than is taken.
        UnreachableError: nobody answers, or not in time.
    """
    given = dict(headers or {})
    for _ in range(MOST_REDIRECTS + 1):
        answer = _once(url, terms, given)
        if answer.status not in _REDIRECTS or "location" not in answer.headers:
            return answer._replace(url=url)
        there = _follow(url, answer.headers["location"])
        if urlsplit(url).scheme == "https" and urlsplit(there).scheme != "https":
            raise InvalidError(f"cannot download {shown(url)}: it leads to an address without TLS")
        if origin(there) != origin(url) and not terms.everywhere:
            given = {
                name: value for name, value in given.items() if name.lower() not in _SECRET_HEADERS
            }
        url = there
    raise InvalidError(
        f"cannot download {shown(url)}: it leads on more than {MOST_REDIRECTS} times"
    )


def origin(url: str) -> tuple[str, str, int]:
    """Return the scheme, host and port of an address.

    Raises:
        InvalidError: it is none that can be called.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise InvalidError("cannot download anything: the address is invalid") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidError(
            f"cannot download {shown(url)}: its address does not begin with http:// or https://"
        )
    return parts.scheme, parts.hostname, port


def shown(url: str) -> str:
    """Return an address as errors may show it: without what may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return f"'{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}'"


def _follow(url: str, location: str) -> str:
    """Return the address that a redirect leads to."""
    try:
        there = urljoin(url, location)
        urlsplit(there)
    except ValueError as error:
        raise InvalidError(f"cannot download {shown(url)}: it leads to no address") from error
    return there


def _once(url: str, terms: Terms, headers: Mapping[str, str]) -> Answer:
    scheme, host, _ = origin(url)
    if refused := terms.reach.refusal(host):
        raise InvalidError(f"cannot download {shown(url)}: it {refused}; nothing is called there")
    # A folder may be another address than a file: what follows the last slash counts, even nothing.
    parts = urlsplit(url)
    client = HttpClient(
        parts._replace(path="").geturl(),
        dialer=Dialer(terms.reach),
        threads=1,
        whole=terms.seconds,
        largest=terms.largest,
        **(_tls(terms) if scheme == "https" else {}),
    )
    try:
        wait = min(_READ_SECONDS, terms.seconds)
        return client.request("GET", parts.path, headers=headers, timeout=wait)
    except LimitError as error:
        raise error.error(f"cannot download {shown(url)}: {error.words}") from None
    except (HttpError, OSError, ValueError) as error:
        raise UnreachableError(f"cannot download {shown(url)}: {_why(error)}") from None
    finally:
        client.close()


def _why(error: Exception) -> str:
    why = happened(error)
    if why != NO_TLS:
        return why
    return f"{why}; if that is right, use an http:// address, or plainHTTP: true with an oci:// one"


def _tls(terms: Terms) -> dict[str, Any]:
    import ssl  # noqa: PLC0415 - what has no TLS does not pay for it

    try:
        context = ssl.create_default_context(cadata=terms.authority or None)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidError(
            "cannot download anything: the given certificate authority is not PEM"
        ) from error
    if terms.insecure:
        # Its user knows, and the warning names nothing that can be done.
        urllib3.disable_warnings(InsecureRequestWarning)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return {"ssl_context": context}
