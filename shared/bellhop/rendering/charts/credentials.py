"""Credentials of repositories, from the Secrets that hold them to a login at one host."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from bellhop.api.kinds import ConfigMap, Secret
from bellhop.errors import InvalidError, MissingError
from bellhop.rendering.inputs import Ref, missing
from bellhop.state.chart import Login
from bellhop.state.cluster_text import HeldText

_DOCKER = ".dockerconfigjson"
_HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
"""Names of one registry: Docker writes another than users do."""

_AUTHORITIES = ("ca.crt", "ca", "caFile")


def held_credentials(
    ref: Ref, holder: ConfigMap | Secret | None, field: str, key: str
) -> Iterator[HeldText]:
    """Yield what a Secret holds of credentials: a user name and password, or those of Docker.

    The latter is the entry of that `key`, or the one that Docker's Secrets have.

    Raises:
        MissingError: it is not there.
        InvalidError: it holds neither.
    """
    entries = _entries(ref, holder, field)
    if "username" in entries:
        found: dict[str, Any] = {name: entries.get(name, "") for name in ("username", "password")}
    else:
        only = next(iter(entries.values())) if len(entries) == 1 and not key else ""
        text = entries.get(key or _DOCKER, only)
        found = {"docker": _docker(text, ref, field, key), "of": f"{ref} in {field}"}
    yield HeldText(json.dumps(found), field, plain=True, secret=True)


def held_authority(
    ref: Ref, holder: ConfigMap | Secret | None, field: str, key: str
) -> Iterator[HeldText]:
    """Yield the authority that a Secret holds: its only entry, or one of a usual name.

    Raises:
        MissingError: it is not there.
        InvalidError: it holds none.
    """
    entries = _entries(ref, holder, field)
    names = [name for name in (key, *_AUTHORITIES, *entries) if name in entries]
    if not names or "BEGIN CERTIFICATE" not in entries[names[0]]:
        raise InvalidError(
            f"cannot use {ref} in {field}: it holds no certificate; put the authority's PEM under"
            " the key ca.crt"
        )
    yield HeldText(json.dumps({"authority": entries[names[0]]}), field, plain=True, secret=True)


def login_for(repository: str, texts: Iterable[HeldText], usual: Login) -> Login:
    """Return how a repository is signed in to, by what Secrets hold for a cluster.

    Raises:
        InvalidError: a Secret has logins only for other hosts.
    """
    login = usual
    for each in texts:
        found = json.loads(each.text)
        if "docker" in found:
            found = _of_host(found["docker"], repository, found["of"])
        login = replace(login, **found)
    return login


def _entries(ref: Ref, holder: ConfigMap | Secret | None, field: str) -> dict[str, str]:
    if holder is None:
        raise MissingError(missing(ref, field))
    try:
        return {name: value.decode() for name, value in holder.decoded().items()}
    except UnicodeDecodeError as error:
        raise InvalidError(f"cannot use {ref} in {field}: an entry is not UTF-8 text") from error


def _docker(text: str, ref: Ref, field: str, key: str) -> dict[str, Any]:
    try:
        found = json.loads(text)["auths"]
        return {str(host): _auth(each) for host, each in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidError(
            f"cannot use {ref} in {field}: it has neither username and password nor"
            f" {key or _DOCKER} as Docker writes it"
        ) from error


def _auth(entry: dict[str, str]) -> dict[str, str]:
    """Return the user name and password of one host, which Docker may write as one text."""
    if "auth" in entry and "username" not in entry:
        try:
            text = base64.b64decode(entry["auth"], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError(entry) from error
        username, _, password = text.partition(":")
        return {"username": username, "password": password}
    return {"username": entry.get("username", ""), "password": entry.get("password", "")}


def _of_host(auths: dict[str, Any], repository: str, of: str) -> dict[str, str]:
    """Return what is for the host of a repository: Docker names it with or without a scheme."""
    host = _host(repository)
    same = _HUB if host in _HUB else {host}
    for name, auth in auths.items():
        if (_host(name) if "://" in name else name.partition("/")[0]) in same:
            return dict(auth)
    raise InvalidError(
        f"cannot use {of}: it has no login for '{host}'; log in there with docker, and write its"
        " configuration into the Secret"
    )


def _host(address: str) -> str:
    try:
        return urlsplit(address).netloc.rpartition("@")[2]
    except ValueError:
        return ""
