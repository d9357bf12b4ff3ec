"""A kubeconfig from a user's machine: its certificate files embedded, everything else refused."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bellhop.errors import InvalidError, MissingError
from bellhop.model.kubeconfig import Kubeconfig, sanitise

_FILES = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key")),
}


def read_kubeconfig(path: Path, context: str | None) -> Kubeconfig:
    """Read address and credentials of one context.

    Certificate files that the context's cluster and user name are embedded, as `kubectl config
    view --flatten` does; other files and programs are refused.

    Raises:
        MissingError: the file is not there.
        InvalidError: it cannot be read, or holds what is refused.
    """
    try:
        text = path.read_text()
    except FileNotFoundError as error:
        raise MissingError(f"cannot read the kubeconfig '{path}': there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InvalidError(f"cannot read the kubeconfig '{path}': {reason}") from error
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - one of the two safe loaders
    except (yaml.YAMLError, ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        _embed(document, context, path.parent)
    try:
        return sanitise(document if isinstance(document, dict) else text, context=context)
    except InvalidError as error:
        raise InvalidError(str(error), where=str(path)) from error


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
        return base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise InvalidError(
            f"cannot read the file '{path}', which the kubeconfig names as {key}: {error.strerror}"
        ) from error
