"""Deterministic names, so that doing a thing twice does it once."""

from __future__ import annotations

import hashlib

from bellhop.core.identity import ROLE_REQUEST

_LONGEST = 63
_DIGEST = 12

GENERATED_NAMESPACE = "projectsveltos"
"""Where Sveltos keeps what it instantiates and generates."""


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
    readable = trigger.replace(".", "-")[: _LONGEST - _DIGEST - 1].rstrip("-")
    return f"{readable}-{suffix}"


def instance_name(profile: str, ref: str) -> str:
    """Name the rendered copy that a profile has of the ConfigMap or Secret `ref`."""
    return f"{profile}-{hashlib.sha256(ref.encode()).hexdigest()[:_DIGEST]}"
