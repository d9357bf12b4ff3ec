"""A kubeconfig from a user's machine: certificate files are embedded, and logins are run.

Everything else that would act on the machine that reads it is refused before a program runs.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bellhop.adapters.local.files import bounded, read_at_most, read_regular, write_whole
from bellhop.cli.options import wrap_file_errors
from bellhop.clusters.kubeconfig import LARGEST, Kubeconfig, parse, refuse_passing, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.documents.document import dump
from bellhop.errors import BellhopError, InvalidError

_STANDARD_INPUT = Path("-")
_FILES = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key")),
}

PATIENCE = timedelta(seconds=60)
"""The time limit of a login."""

_LOGINS = ("exec", "auth-provider")
_PROVIDER = "auth-provider"
_NONE_YET = "none-yet"


class Given(NamedTuple):
    """A user's kubeconfig; after a `login` its credentials are a person's, and expire soon."""

    kubeconfig: Kubeconfig
    login: bool


def read_kubeconfig(path: Path, context: str | None, *, patience: timedelta = PATIENCE) -> Given:
    """Read address and credentials of one context, and log in if it has a login.

    Certificate files of the context's cluster and user are embedded, as `kubectl config view
    --flatten` does; other files are refused. The path `-` is standard input.

    Raises:
        MissingError: the file is not there, or the program that logs in.
        InvalidError: it cannot be read, or holds what is refused; or its token ends before long.
        DeniedError: the login fails.
        UnreachableError: the login takes longer than `patience`.
    """
    piped = path == _STANDARD_INPUT
    name = "standard input" if piped else str(path)
    with wrap_file_errors(f"the kubeconfig '{name}'"):
        content = bounded(sys.stdin.buffer, LARGEST, name) if piped else read_at_most(path, LARGEST)
        text = content.decode()
    with _about(name):
        document = parse(text)
    entries = _entries(document, context)
    _embed(entries, path.parent)
    user = entries.get("users", {})
    taken = document if isinstance(document, dict) else text
    login = {key: user.pop(key) for key in _LOGINS if user.get(key)}
    if login:
        # What is refused anyway is refused before a program runs; this token is never sent.
        user["token"] = _NONE_YET
        with _about(name):
            sanitise(taken, context=context, reach=LOCAL)
        del user["token"]
        with _cannot_log_in(name):
            user |= _log_in(login, entries["clusters"], None if piped else path, context, patience)
    with _about(name):
        # Which of this machine's clusters an installation calls, it says itself.
        found = sanitise(taken, context=context, reach=LOCAL)
        if not login:
            refuse_passing(found)
    return Given(found, bool(login))


def _log_in(
    login: Mapping[str, Any],
    cluster: Mapping[str, Any],
    path: Path | None,
    context: str | None,
    patience: timedelta,
) -> dict[str, str]:
    """Return the credentials of a login; both modules load the official client."""
    if len(login) > 1:
        raise InvalidError("`exec` and `auth-provider` are two ways to log in; keep one of them")
    if _PROVIDER in login:
        from bellhop.cli.login import refresh

        keep = partial(_keep_tokens, path, context)
        return {"token": refresh(_mapping(login[_PROVIDER], _PROVIDER), keep, patience=patience)}
    from bellhop.cli.login import run_plugin

    terminal = path is not None and sys.stdin.isatty()
    folder = path.resolve().parent if path else None
    entry = _mapping(login["exec"], "exec")
    return run_plugin(entry, cluster, folder, terminal=terminal, patience=patience)


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidError(f"`{name}` is not a mapping")
    return value


def _keep_tokens(path: Path | None, context: str | None, tokens: Mapping[str, str]) -> None:
    """Write refreshed tokens into the kubeconfig, as kubectl does: the former may have expired."""
    if path is None or not path.is_file():
        return
    document = parse(read_at_most(path, LARGEST))
    _entries(document, context)["users"][_PROVIDER]["config"].update(tokens)
    # A link stays one.
    write_whole(path.resolve(), dump(document).encode())


@contextmanager
def _cannot_log_in(name: str) -> Iterator[None]:
    try:
        yield
    except BellhopError as error:
        raise type(error)(f"cannot log in by the kubeconfig '{name}': {error}") from error


@contextmanager
def _about(name: str) -> Iterator[None]:
    try:
        yield
    except InvalidError as error:
        raise InvalidError(str(error), where=name) from error


def _entries(document: Any, context: str | None) -> dict[str, dict[str, Any]]:
    """Return the cluster and the user of a context, if they exist."""
    if not isinstance(document, dict):
        return {}
    name = context or document.get("current-context")
    chosen = _entry(document, "contexts", name, "context") or {}
    found = {
        plural: _entry(document, plural, chosen.get(singular), singular)
        for plural, (singular, _) in _FILES.items()
        if chosen
    }
    return {plural: entry for plural, entry in found.items() if entry}


def _embed(entries: Mapping[str, dict[str, Any]], folder: Path) -> None:
    for plural, entry in entries.items():
        for key in _FILES[plural][1]:
            name = entry.get(key)
            if isinstance(name, str) and name:
                # A file goes before data, as kubectl has it.
                entry[f"{key}-data"] = _content(folder / name, key)
                del entry[key]


def _entry(
    document: Mapping[str, Any], plural: str, name: Any, singular: str
) -> dict[str, Any] | None:
    entries = document.get(plural)
    if not isinstance(entries, list):
        return None
    only = len(entries) == 1 and not name
    for entry in entries:
        if isinstance(entry, dict) and (only or entry.get("name") == name):
            value = entry.get(singular)
            return value if isinstance(value, dict) else None
    return None


def _content(path: Path, key: str) -> str:
    try:
        return base64.b64encode(read_regular(path, LARGEST)).decode()
    except OSError as error:
        raise InvalidError(
            f"cannot read the file '{path}', which the kubeconfig names as {key}: {error.strerror}"
        ) from error
