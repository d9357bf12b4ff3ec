"""Paths and URLs, taken apart and put together; nothing is looked up anywhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, unquote

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import SLOW, SLOWER
from bellhop.gotemplate.literals import quote as go_quote
from bellhop.gotemplate.literals import to_bytes
from bellhop.gotemplate.values import kind_name

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_BAD_HOST = re.compile(r"[ ^`{|}\\]")
_PATH_SAFE = "$&+,/:;=@!'()*~"
_USER_SAFE = "$&+,;=!~"
_PARTS = ("scheme", "host", "path", "query", "opaque", "fragment", "userinfo")


@_add("base osBase", "string", most=SLOW)
def base(path: str) -> str:
    if not path:
        return "."
    return path.rstrip("/").rpartition("/")[2] or "/"


@_add("clean osClean", "string", most=SLOW)
def clean(path: str) -> str:
    """Return the shortest path that means the same."""
    rooted = path.startswith("/")
    kept: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            kept.append(part)
        elif kept and kept[-1] != "..":
            kept.pop()
        elif not rooted:
            kept.append(part)
    return ("/" if rooted else "") + "/".join(kept) or "."


@_add("dir osDir", "string", most=SLOW)
def dir_(path: str) -> str:
    return clean(path[: path.rfind("/") + 1])


@_add("ext osExt", "string", most=SLOW)
def ext(path: str) -> str:
    """Return the extension with its dot."""
    name = path.rpartition("/")[2]
    return name[name.rindex(".") :] if "." in name else ""


@_add("isAbs osIsAbs", "string")
def is_abs(path: str) -> bool:
    return path.startswith("/")


# -- URLs


@_add("urlParse", "string", most=SLOWER)
def url_parse(text: str) -> dict[str, Any]:
    """Take a URL apart into scheme, userinfo, host, hostname, path, query, opaque, fragment."""
    found: dict[str, Any] = dict.fromkeys((*_PARTS, "hostname"), "")
    if any(ord(character) < ord(" ") or character == "\x7f" for character in text):
        _unparsable(text, "net/url: invalid control character in URL")
    rest, _, fragment = text.partition("#")
    found["fragment"] = _unescaped(text, fragment)
    scheme = _SCHEME.match(rest)
    if scheme is not None:
        found["scheme"] = scheme[1].lower()
        rest = rest[scheme.end() :]
    elif rest.startswith(":"):
        _unparsable(text, "missing protocol scheme")
    rest, _, found["query"] = rest.partition("?")
    if found["scheme"] and not rest.startswith("/"):
        found["opaque"] = rest
        return found
    first = rest.partition("/")[0]
    if not found["scheme"] and ":" in first:
        _unparsable(text, "first path segment in URL cannot contain colon")
    if rest.startswith("//") and not rest.startswith("///"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        found["userinfo"], _, found["host"] = authority.rpartition("@")
        found["hostname"] = _hostname(text, found["host"])
    found["path"] = _unescaped(text, rest)
    return found


def _unparsable(text: str, reason: str) -> NoReturn:
    raise FunctionError(f"unable to parse url: parse {go_quote(text)}: {reason}")


def _unescaped(text: str, part: str) -> str:
    bad = _BAD_ESCAPE.search(part)
    if bad is not None:
        _unparsable(text, f"invalid URL escape {go_quote(bad[0])}")
    return unquote(part, errors="surrogateescape")


def _hostname(text: str, host: str) -> str:
    bad = _BAD_HOST.search(host)
    if bad is not None:
        _unparsable(text, f"invalid character {go_quote(bad[0])} in host name")
    name, colon, port = host.rpartition(":")
    if host.startswith("[") or not colon:
        return host[1:].partition("]")[0] if host.startswith("[") else host
    if port and not (port.isascii() and port.isdigit()):
        _unparsable(text, f"invalid port {go_quote(':' + port)} after host")
    return name


@_add("urlJoin", "map[string]interface {}", budgeted=True, most=SLOWER)
def url_join(budget: Budget, parts: dict[str, Any]) -> str:
    """Put a URL together from what urlParse takes it apart into."""
    given = {name: _part(parts, name) for name in _PARTS}
    budget.take(sum(map(len, given.values())))
    url = f"{given['scheme']}:" if given["scheme"] else ""
    if given["opaque"]:
        url += given["opaque"]
    else:
        url += _hierarchy(given, bool(url))
    if given["query"]:
        url += f"?{given['query']}"
    if given["fragment"]:
        url += f"#{quote(to_bytes(given['fragment']), safe=_PATH_SAFE + '?')}"
    return url


def _part(parts: dict[str, Any], name: str) -> str:
    value = parts.get(name, "")
    if isinstance(value, str):
        return value
    found = kind_name(value)
    raise FunctionError(f"unable to parse {name} key, must be of type string, but {found} found")


def _hierarchy(given: dict[str, str], has_scheme: bool) -> str:  # noqa: FBT001 - one of two shapes
    path = quote(to_bytes(given["path"]), safe=_PATH_SAFE)
    host, user = given["host"], given["userinfo"]
    if not host and not user and not (has_scheme and path.startswith("//")):
        return path
    name, colon, password = user.partition(":")
    login = quote(unquote(name), safe=_USER_SAFE)
    login += colon + quote(unquote(password), safe=_USER_SAFE)
    authority = f"{login}@{host}" if user else host
    if path and not path.startswith("/") and host:
        path = f"/{path}"
    return f"//{authority}{path}"
