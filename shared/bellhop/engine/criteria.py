"""Which objects an EventSource selects, before its script is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bellhop.model.gvk import GVK
from bellhop.model.source import LabelFilter, ResourceSelector


def selects(selector: ResourceSelector, obj: Mapping[str, Any]) -> bool:
    """Tell whether an object is of the kind, at the place and with the labels that are asked.

    An object that is being deleted is not selected: what it brought is about to lose its reason.
    The script is not run; an empty namespace, name or label selector asks nothing.
    """
    if GVK.of(obj) != selector.gvk:
        return False
    metadata = _mapping(obj.get("metadata"))
    if metadata.get("deletionTimestamp"):
        return False
    if selector.namespace and metadata.get("namespace") != selector.namespace:
        return False
    if selector.name and metadata.get("name") != selector.name:
        return False
    labels = _mapping(metadata.get("labels"))
    if selector.selector is not None and not selector.selector.admits(labels):
        return False
    return passes(selector.label_filters, labels)


def passes(filters: Iterable[LabelFilter], labels: Mapping[str, Any]) -> bool:
    """Tell whether labels pass every filter; Different passes a missing label, as `!=` does."""
    return all(_passes(entry, labels) for entry in filters)


def _passes(entry: LabelFilter, labels: Mapping[str, Any]) -> bool:
    match entry.operation:
        case "Equal":
            return labels.get(entry.key) == entry.value
        case "Different":
            return labels.get(entry.key) != entry.value
        case "Has":
            return entry.key in labels
        case "DoesNotHave":
            return entry.key not in labels


def _mapping(value: Any) -> Mapping[str, Any]:
    # Every event asks for every source: a dict is told at once, where the abstract class is not.
    return value if isinstance(value, (dict, Mapping)) else {}
