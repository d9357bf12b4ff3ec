"""What may name an object that somebody else tells us of: the rules of Kubernetes, and no more.

A name from outside becomes part of keys in stores, of paths in requests to API servers, and of
lines on terminals. What no API server can have is refused before anything is kept of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bellhop.core.gvk import ObjectKey
from bellhop.errors import InvalidError

REASON = "projectsveltos.io/reason"
"""The label of all objects that profiles bring: the feature that does."""

REASONS = ("Kustomize", "Resources")
"""Its values; what a chart consists of has none."""

MANAGER = "bellhop"
"""The field manager by which objects are applied, and by which their writes are known as ours."""

ROLE_REQUEST = "RoleRequest"
"""The kind whose profiles are named `RoleRequest:NAME`, as no other can be named."""

LARGEST_VERSION = 2**63 - 1
"""A resourceVersion is a revision of etcd, which counts in 64 bits."""

_LONGEST = {"label": 63, "subdomain": 253, "uid": 128, "shown": 64}
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_GROUP = re.compile(rf"({_LABEL}(\.{_LABEL})*)?\Z")
_VERSION = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_KIND = re.compile(r"[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")
_NAMESPACE = re.compile(rf"({_LABEL})?\Z")
_DIGITS = re.compile(r"[0-9]{1,20}\Z")


def check_key(key: ObjectKey) -> None:
    """Check that an object can have these names.

    The name of an object is what can stand in a path: roles have colons and capitals in theirs.

    Raises:
        InvalidError: one of them is none.
    """
    group, version, kind = key.gvk
    right = {
        "group": len(_text(group)) <= _LONGEST["subdomain"] and _GROUP.match(group),
        "version": _VERSION.match(_text(version)),
        "kind": _KIND.match(_text(kind)),
        "namespace": _NAMESPACE.match(_text(key.namespace)),
        "name": _is_name(_text(key.name)),
    }
    parts = dict(zip(right, (group, version, kind, key.namespace, key.name), strict=True))
    for part, is_right in right.items():
        if not is_right:
            shown = parts[part][: _LONGEST["shown"]]
            raise InvalidError(f"cannot take an object: {shown!a} is not a valid {part}")


def check_uid(uid: Any) -> str:
    """Return a uid, or nothing where there is none.

    Raises:
        InvalidError: no API server gives such a uid.
    """
    text = _text("" if uid is None else uid)
    if len(text) > _LONGEST["uid"] or not (text.isascii() and text.isprintable()):
        raise InvalidError("cannot take an object: its uid is invalid")
    return text


def check_version(version: Any) -> int:
    """Read a resourceVersion, a text of digits, or a number; 0 where there is none.

    Raises:
        InvalidError: it is no revision of etcd, so that nothing newer would ever be believed.
    """
    if version is None or version == "":
        return 0
    if isinstance(version, str) and _DIGITS.match(version):
        version = int(version)
    if isinstance(version, bool) or not isinstance(version, int):
        raise InvalidError("cannot take an object: its resourceVersion must be a number")
    if not 0 <= version <= LARGEST_VERSION:
        raise InvalidError("cannot take an object: its resourceVersion is larger than any can be")
    return version


def version_of(metadata: Mapping[str, Any]) -> int:
    """Read a resource version as a number; 0 where there is none."""
    try:
        return check_version(metadata.get("resourceVersion"))
    except InvalidError:
        return 0


def _is_name(name: str) -> bool:
    return (
        0 < len(name) <= _LONGEST["subdomain"]
        and name.isprintable()
        and name not in {".", ".."}
        and not set(name) & {"/", "%"}
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidError("cannot take an object: what names it must be a string")
    return value
