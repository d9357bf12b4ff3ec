"""Manifests in the one form that API servers serve, whichever form their authors chose.

Files may have v1alpha1, EventBasedAddOns, former names of fields, selectors as strings and the flat
form of sources and health checks. The definitions of custom resources have none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellhop.api.kinds import KINDS, Declaration, EventSource, EventTrigger, HealthCheck, of
from bellhop.api.source import ResourceSelectorSpec
from bellhop.core.base import camel
from bellhop.core.sveltos_annotations import (
    ADOPT_FROM,
    APPLYSET,
    DOMAIN,
    HELD,
    INSTANTIATE_ALL,
    TAKE_OVER,
    TRIGGER_PAUSED,
)

_TRIGGER = "EventTrigger"
_DOMAINS = (DOMAIN, "bellhop.dev/")
_ABOUT_ORIGIN = {ADOPT_FROM, APPLYSET, HELD, TAKE_OVER}
"""Labels and annotations that say how a manifest is kept, and nothing of what it declares."""

_SELECTING = {each.alias or camel(name) for name, each in ResourceSelectorSpec.model_fields.items()}
"""Fields of an entry of resourceSelectors, which the flat form has beside it."""


def make_served(declared: Declaration) -> dict[str, Any]:
    """Return a manifest in the newest version, with its namespace, and in no set of files.

    The same clusters get the same of it, so a trigger of v1alpha1 keeps rendering all its contents.
    """
    manifest = declared.model_dump(mode="json", by_alias=True, exclude_unset=True)
    kind = _TRIGGER if isinstance(declared, EventTrigger) else declared.kind
    manifest |= {"apiVersion": KINDS[kind][1][0], "kind": kind}
    manifest["metadata"] = _make_metadata(declared)
    if isinstance(declared, HealthCheck):
        manifest["spec"].pop("script", "")
        manifest["spec"]["evaluateHealth"] = declared.spec.whole_script
    if isinstance(declared, EventSource | HealthCheck):
        manifest["spec"] = _gather_selectors(manifest.get("spec", {}))
    return manifest


def is_same_declaration(old: Declaration, new: Declaration) -> bool:
    """Return whether a manifest may follow another one of its object, and declares the same.

    It may have more labels and annotations, as other tools add them, unless they steer Bellhop.
    """
    first, second = (of(make_served(each)) for each in (old, new))
    had, has = _list_marks(first), _list_marks(second)
    more = (key for key in has.keys() - had.keys() if _steers(key))
    if had.items() - has.items() or any(more):
        return False
    return {**dict(first), "metadata": None} == {**dict(second), "metadata": None}


def _make_metadata(declared: Declaration) -> dict[str, Any]:
    labels = {key: each for key, each in declared.metadata.labels.items() if key != APPLYSET}
    annotations = dict(declared.annotations)
    if isinstance(declared, EventTrigger) and declared.instantiates_all:
        annotations.setdefault(INSTANTIATE_ALL, "true")
    found: dict[str, Any] = {"name": declared.name}
    if declared.namespaced:
        found["namespace"] = declared.namespace
    parts = {"labels": labels, "annotations": annotations}
    return found | {name: each for name, each in parts.items() if each}


def _gather_selectors(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec whose flat fields are an entry of resourceSelectors."""
    flat = {key: each for key, each in spec.items() if key in _SELECTING}
    rest = {key: each for key, each in spec.items() if key not in _SELECTING}
    entries = [flat] if flat else rest.get("resourceSelectors", [])
    for each in entries:
        if "script" in each:
            each["evaluate"] = each.pop("script")
    return {**rest, "resourceSelectors": entries} if entries else rest


def _list_marks(declared: Declaration) -> dict[tuple[str, str], str]:
    """Return labels and annotations, but for those that say how the manifest is kept."""
    parts = {"labels": declared.metadata.labels, "annotations": declared.annotations}
    return {
        (part, key): value
        for part, found in parts.items()
        for key, value in found.items()
        if key not in _ABOUT_ORIGIN
    }


def _steers(mark: tuple[str, str]) -> bool:
    _, key = mark
    return key == TRIGGER_PAUSED or f"{key.partition('/')[0]}/".endswith(_DOMAINS)
