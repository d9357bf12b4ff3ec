"""A kubeconfig from a user's machine: its certificate files embedded, everything else refused."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bellhop.adapters.local.files import bounded, read_at_most, read_regular
from bellhop.cli.files import explained
from bellhop.errors import InvalidError
from bellhop.model.kubeconfig import LARGEST, Kubeconfig, parse, refuse_passing, sanitise
from bellhop.model.reach import HERE

_STANDARD_INPUT = Path("-")
_FILES = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key")),
}


def read_kubeconfig(path: Path, context: str | None) -> Kubeconfig:
    """Read address and credentials of one context.

    Certificate files that the context's cluster and user name are embedded, as `kubectl config
    view --flatten` does; other files and programs are refused. The path `-` is standard input.

    Raises:
        MissingError: the file is not there.
        InvalidError: it cannot be read, or holds what is refused; or its token ends before long.
    """
    piped = path == _STANDARD_INPUT
    name = "standard input" if piped else str(path)
    with explained(f"the kubeconfig '{name}'"):
        content = bounded(sys.stdin.buffer, LARGEST, name) if piped else read_at_most(path, LARGEST)
        text = content.decode()
    with _about(name):
        document = parse(text)
    if isinstance(document, dict):
        _embed(document, context, path.parent)
    with _about(name):
        # Which of this machine's clusters an installation calls, it says itself.
        taken = document if isinstance(document, dict) else text
        found = sanitise(taken, context=context, reach=HERE)
        refuse_passing(found)
    return found


@contextmanager
def _about(name: str) -> Iterator[None]:
    try:
        yield
    except InvalidError as error:
        raise InvalidError(str(error), where=name) from error


def _embed(document: dict[str, Any], context: str | None, folder: Path) -> None:
    chosen = _entry(document, "contexts", context or document.get("current-context"), "context")
    if chosen is None:
        return
    for plural, (singular, keys) in _FILES.items():
        entry = _entry(document, plural, chosen.get(singular), singular)
        if not isinstance(entry, dict):
            continue
        for key in keys:
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
