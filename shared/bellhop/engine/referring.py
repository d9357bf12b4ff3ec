"""The objects that templates of deploy time read, as templateResourceRefs name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from bellhop.engine.instantiate import Fields
from bellhop.errors import MissingError
from bellhop.gotemplate import Limits
from bellhop.model.kinds import KINDS, ConfigMap, Secret
from bellhop.model.record import Reading

Read = Callable[[Reading], Mapping[str, Any] | None]
"""Reads an object whose names are no templates any more; None where it is not there."""

CLUSTER = "SveltosCluster"
"""The kind as which a template reads a cluster."""

_FIELD = "templateResourceRefs[{}].resource.{}"


def with_event(readings: Iterable[Reading], fields: Fields) -> tuple[Reading, ...]:
    """Render the names of objects with an event.

    Raises:
        TemplateError: a name is a template that fails.
        InvalidError: a name is made of a Secret's value.
    """
    return tuple(
        replace(
            each,
            namespace=fields.text(each.namespace, _FIELD.format(number, "namespace")),
            name=fields.text(each.name, _FIELD.format(number, "name")),
        )
        for number, each in enumerate(readings)
    )


def referred(
    readings: Iterable[Reading], cluster: Mapping[str, Any], read: Read, limits: Limits
) -> dict[str, dict[str, Any]]:
    """Return objects by identifier for a destination; what is optional may be missing.

    Raises:
        TemplateError: a name is a template that fails.
        MissingError: an object is not there, and is not optional.
    """
    fields = Fields({"Cluster": cluster}, limits, {})
    found: dict[str, dict[str, Any]] = {}
    for each in with_event(readings, fields):
        placed = replace(each, namespace=each.namespace or cluster["metadata"]["namespace"])
        manifest = read(placed)
        if manifest is not None:
            found[each.identifier] = dict(manifest)
        elif not each.optional:
            raise MissingError(
                f"cannot find {placed.kind} '{placed.namespace}/{placed.name}' that"
                f" templateResourceRefs names as '{each.identifier}'; apply it, or mark it optional"
            )
    return found


def shown(holder: ConfigMap | Secret) -> dict[str, Any]:
    """Return a ConfigMap or Secret as an API server would show it: a Secret's data in base64."""
    manifest = holder.manifest()
    manifest.pop("stringData", None)
    if isinstance(holder, Secret):
        manifest["data"] = dict(holder.data)
        manifest["type"] = holder.type
    manifest["metadata"] = {**manifest["metadata"], "namespace": holder.namespace}
    return manifest


def is_elsewhere(reading: Reading) -> bool:
    """Say whether nobody tells when an object changes, since a cluster has it."""
    return reading.kind not in KINDS and reading.kind != CLUSTER
