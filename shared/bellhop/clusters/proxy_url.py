"""The `proxy-url` of a kubeconfig: an HTTP proxy that opens connections to the API server.

It sees no content, since TLS is between Bellhop and the API server. So the server must be https.
"""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit

from bellhop.core.address_policy import AddressPolicy
from bellhop.errors import InvalidError

_WHERE = "cluster.proxy-url"


def read_proxy_url(text: str, server: str, reach: AddressPolicy) -> str:
    """Return the proxy by which a server is called; empty if there is none.

    Raises:
        InvalidError: it is none that can be used, or may not be called; no password is quoted.
    """
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = SplitResult("", "", "", "", ""), "", None
    if parts.scheme != "http" or not host or port == 0:
        raise InvalidError(
            "is not an address such as `http://proxy.example.com:3128`; other kinds of proxies are"
            " not supported",
            where=_WHERE,
        )
    if parts.path.strip("/") or parts.query or parts.fragment or not text.isprintable():
        raise InvalidError("may have a login, a host and a port, and nothing else", where=_WHERE)
    if not all(unquote(each or "").isprintable() for each in (parts.username, parts.password)):
        raise InvalidError("has a login that cannot stand in a header", where=_WHERE)
    if refusal := reach.refusal(host):
        raise InvalidError(f"the host {refusal}; give the address of the proxy", where=_WHERE)
    if not server.startswith("https://"):
        raise InvalidError(
            "would see the credentials, since `server` is http; use https", where=_WHERE
        )
    return text.rstrip("/")


def shown_proxy(url: str) -> str:
    """Return the host and port of a proxy, without its login."""
    return urlsplit(url).netloc.rpartition("@")[2]
