"""Names of objects: those that senders may report, and those that Bellhop generates.

Generated names are deterministic, so that doing a thing twice does it once. A name from outside
becomes part of keys in stores, of paths in requests to API servers, and of lines on terminals. A
name that no API server can have is refused before anything is stored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from bellhop.core.gvk import ObjectKey
from bellhop.errors import InvalidError

REASON = "projectsveltos.io/reason"
"""The label of all objects that profiles deploy: the feature that deploys them."""

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


_LONGEST_INSTANCE = 63
_DIGEST = 12

GENERATED_NAMESPACE = "projectsveltos"
"""Namespace of the objects that Sveltos instantiates and generates."""


def set_kind(place: str) -> str:
    """Say of which kind the set at a place is: a Set has a namespace."""
    return "Set" if "/" in place else "ClusterSet"


def profile_kind(name: str) -> str:
    """Say of which kind a profile of a name is: a Profile's has its namespace, a RoleRequest's it.

    No name that a user writes has a colon.
    """
    if name.startswith(f"{ROLE_REQUEST}:"):
        return ROLE_REQUEST
    return "Profile" if "/" in name else "ClusterProfile"


def profile_place(name: str) -> str:
    """Return a profile's name as users wrote it, with its namespace if it has one."""
    return name.removeprefix(f"{ROLE_REQUEST}:")


def profile_shown(name: str) -> str:
    """Return a profile's name with its kind, as users of Sveltos know it."""
    return f"{profile_kind(name)}/{profile_place(name)}"


def profile_name(trigger: str, cluster: str, object_key: str = "") -> str:
    """Name the ClusterProfile that a trigger generates for a cluster, or for one object in it.

    At most 63 characters, since it is also a label's value. The key names the object's kind:
    two kinds of one name and namespace get two profiles.
    """
    identity = f"{trigger}\0{cluster}\0{object_key}"
    suffix = hashlib.sha256(identity.encode()).hexdigest()[:_DIGEST]
    readable = trigger.replace(".", "-")[: _LONGEST_INSTANCE - _DIGEST - 1].rstrip("-")
    return f"{readable}-{suffix}"


def cut_name(name: str) -> str:
    """Return a name, cut with a digest if it is longer than the value of a label."""
    if len(name) <= _LONGEST_INSTANCE:
        return name
    suffix = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST_INSTANCE - _DIGEST - 1].rstrip('-.')}-{suffix}"


def instance_name(profile: str, ref: str) -> str:
    """Name the rendered copy that a profile has of the ConfigMap or Secret `ref`."""
    return f"{profile}-{hashlib.sha256(ref.encode()).hexdigest()[:_DIGEST]}"
