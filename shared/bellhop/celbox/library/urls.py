"""URLs and their parts, as Go's net/url has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from bellhop.celbox.library import Function, field, tested

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/?/?[^\s\x00-\x1f\x7f]*|/[^\s\x00-\x1f\x7f]*")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _url(text: str) -> dict[str, str]:
    if not _ABSOLUTE.fullmatch(text) or _BROKEN_ESCAPE.search(text):
        raise ValueError("this is neither an absolute URL nor an absolute path")
    _ = urlsplit(text).port
    return {"url": text}


def _part(pick: Callable[[SplitResult], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda value: pick(urlsplit(field(value, "url", "a URL")))


def _host(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


def _hostname(url: SplitResult) -> str:
    host = _host(url)
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _port(url: SplitResult) -> str:
    return "" if url.port is None else str(url.port)


def _query(url: SplitResult) -> dict[str, list[str]]:
    return parse_qs(url.query, keep_blank_values=True)


FUNCTIONS = (
    Function("url", ("string",), "map", _url, method=False),
    Function("isURL", ("string",), "bool", tested(_url), method=False),
    Function("getScheme", ("map",), "string", _part(lambda url: url.scheme)),
    Function("getHost", ("map",), "string", _part(_host)),
    Function("getHostname", ("map",), "string", _part(_hostname)),
    Function("getPort", ("map",), "string", _part(_port)),
    Function("getEscapedPath", ("map",), "string", _part(lambda url: url.path)),
    Function("getQuery", ("map",), "map", _part(_query)),
)
