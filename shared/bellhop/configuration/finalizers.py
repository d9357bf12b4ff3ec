"""Finalizers and annotations that Bellhop writes on objects of the configuration cluster.

Finalizers have Sveltos' names. They are written with the version that was read, so that neither a
deleted object comes back nor a finalizer of another controller is lost.
"""

from __future__ import annotations

from typing import Any

from bellhop.core.gvk import GVK
from bellhop.ports.kube import Kube, Manifest

_FINALIZERS = {
    "ClusterProfile": "clusterprofilefinalizer.projectsveltos.io",
    "Profile": "profilefinalizer.projectsveltos.io",
    "EventTrigger": "eventtrigger.finalizer.projectsveltos.io",
}


def find_finalizer(kind: str) -> str:
    """Return the finalizer of a kind; empty for one whose objects leave at once."""
    return _FINALIZERS.get(kind, "")


def set_finalizer(kube: Kube, found: Manifest, *, present: bool) -> None:
    """Add or remove the finalizer of an object, if its kind has one.

    Raises:
        StaleError: the object has changed since it was read.
    """
    finalizer = find_finalizer(found["kind"])
    there = found["metadata"].get("finalizers") or []
    if finalizer and (finalizer in there) != present:
        others = [each for each in there if each != finalizer]
        _merge(kube, found, {"finalizers": [*others, finalizer] if present else others})


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
