"""Finalizers and annotations that Bellhop writes on objects of the configuration cluster.

Finalizers have Sveltos' names. They are written with the version that was read, so that neither a
deleted object comes back nor a finalizer of another controller is lost.
"""

from __future__ import annotations

from typing import Any

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import StaleError, TemporaryError
from bellhop.ports.kube import Kube, Manifest

_DOMAIN = ".projectsveltos.io"
_FINALIZERS = {
    "ClusterProfile": "clusterprofilefinalizer.projectsveltos.io",
    "Profile": "profilefinalizer.projectsveltos.io",
    "ClusterPromotion": "config.projectsveltos.io/clusterpromotion",
    "EventTrigger": "eventtrigger.finalizer.projectsveltos.io",
}


def find_finalizer(kind: str) -> str:
    """Return the finalizer of a kind; empty for one whose objects leave at once."""
    return _FINALIZERS.get(kind, "")


def set_finalizer(kube: Kube, found: Manifest, *, present: bool) -> None:
    """Add the finalizer of an object, if its kind has one, or remove all of Sveltos' from it.

    Sveltos' own controllers, which may have added them, do not run beside Bellhop.

    Raises:
        StaleError: the object has changed since it was read.
    """
    there = found["metadata"].get("finalizers") or []
    own = find_finalizer(found["kind"])
    others = [each for each in there if each != own and (present or not each.endswith(_DOMAIN))]
    desired = [*others, own] if present and own else others
    if set(desired) != set(there):
        _merge(kube, found, {"finalizers": desired})


def has_sveltos_finalizer(found: Manifest | None) -> bool:
    """Return whether an object is there that a controller of Sveltos waits to see deleted."""
    there = found["metadata"].get("finalizers") or () if found else ()
    return any(each.endswith(_DOMAIN) for each in there)


def release_mirror(kube: Kube, rest: Manifest | None) -> Manifest | None:
    """Remove Sveltos' finalizers from what is left of a deleted mirror; return what is left then.

    Raises:
        TemporaryError: it has just changed.
    """
    if rest is None or not has_sveltos_finalizer(rest):
        return rest
    try:
        set_finalizer(kube, rest, present=False)
    except StaleError as error:
        raise TemporaryError(str(error)) from error
    return kube.get(*ObjectKey.of(rest))


def set_annotation(kube: Kube, found: Manifest, name: str, value: str) -> None:
    """Set an annotation of an object, unless it has that value.

    Raises:
        StaleError: the object has changed since it was read.
    """
    if (found["metadata"].get("annotations") or {}).get(name) != value:
        _merge(kube, found, {"annotations": {name: value}})


def _merge(kube: Kube, found: Manifest, metadata: dict[str, Any]) -> None:
    read = found["metadata"]
    version = {"resourceVersion": read["resourceVersion"]}
    place = GVK.of(found), read.get("namespace", ""), read["name"]
    kube.merge(*place, {"metadata": {**metadata, **version}})
