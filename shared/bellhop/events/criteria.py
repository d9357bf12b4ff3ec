"""Which objects an EventSource selects, before its script is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bellhop.api.source import LabelFilter, ResourceSelector
from bellhop.core.gvk import GVK


class Traits(NamedTuple):
    """What selectors ask of an object; read once, however many ask."""

    gvk: GVK
    namespace: Any
    name: Any
    labels: Mapping[str, Any]
    deleted: bool

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Traits:
        """Read them, whatever stands in their places."""
        metadata = _mapping(obj.get("metadata"))
        return cls(
            GVK.of(obj),
            metadata.get("namespace"),
            metadata.get("name"),
            _mapping(metadata.get("labels")),
            bool(metadata.get("deletionTimestamp")),
        )


def selects(selector: ResourceSelector, traits: Traits) -> bool:
    """Tell whether an object is of the kind, at the place and with the labels that are asked.

    An object that is being deleted is not selected, unless that is asked for: what it brought is
    about to lose its reason. It comes as long as its finalizers hold it. The script is not run; an
    empty namespace, name or label selector asks nothing.
    """
    if traits.gvk != selector.gvk or (traits.deleted and not selector.deleting):
        return False
    if selector.namespace and traits.namespace != selector.namespace:
        return False
    if selector.name and traits.name != selector.name:
        return False
    if selector.selector is not None and not selector.selector.admits(traits.labels):
        return False
    return not selector.label_filters or passes(selector.label_filters, traits.labels)


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
    return value if isinstance(value, Mapping) else {}
