"""Drift: whether somebody else changed what we applied, by what an API server notes of each field.

    we apply ──► the fields that we set are ours
    somebody changes or removes one ──► it is theirs, or nobody's: we have fewer than we had
    somebody sets a field that we never did ──► we have what we had

So a digest of our own fields distinguishes drift from all else: no manifest is compared, and no
default, converted quantity or list that others add to is taken for it. Another writer that
sets a field to its present value shares it with us, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellhop.core.digest import digest
from bellhop.core.identity import MANAGER
from bellhop.core.sveltos_annotations import DRIFT_IGNORED
from bellhop.state.deployment import Held

_DIGEST = 16


HELM = "helm"
"""The field manager of what Helm applies, which its command line does not let us choose."""


def manager_of(held: Held) -> str:
    """Say who manages the fields of an object that are ours: of a chart's objects Helm does."""
    return HELM if held.part_of else MANAGER


def own_fields(manifest: Mapping[str, Any], manager: str = MANAGER) -> str:
    """Return a digest of the fields of an object that are ours, as its API server notes them.

    Ours are those of a field manager. Up to 1.21 a server takes no note of who scales: where
    replicas are ours, their number counts.
    """
    return fields_digest(manifest, our_fields(manifest, manager))


def fields_digest(manifest: Mapping[str, Any], ours: Sequence[Mapping[str, Any]]) -> str:
    """Return a digest of fields of an object, as `own_fields` does."""
    scaled = [(manifest.get("spec") or {}).get("replicas") for each in ours if _scales(each)]
    return digest([ours, *scaled])[:_DIGEST]


def our_fields(manifest: Mapping[str, Any], manager: str = MANAGER) -> list[Mapping[str, Any]]:
    """Return the fields of an object that are ours, as its API server notes them: trees of `f:`."""
    return [
        each.get("fieldsV1") or {}
        for each in _managers(manifest)
        if (each.get("manager"), each.get("operation")) == (manager, "Apply")
        and not each.get("subresource")
    ]


def their_fields(manifest: Mapping[str, Any], manager: str) -> list[Mapping[str, Any]]:
    """Return the fields of an object that other managers have, in the same form."""
    return [
        each.get("fieldsV1") or {} for each in _managers(manifest) if each.get("manager") != manager
    ]


def _scales(fields: Any) -> bool:
    return "f:replicas" in ((fields or {}).get("f:spec") or {})


def is_ignored(manifest: Mapping[str, Any]) -> bool:
    """Return whether an object opts out of drift correction."""
    return DRIFT_IGNORED in ((manifest.get("metadata") or {}).get("annotations") or {})


def _managers(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = (manifest.get("metadata") or {}).get("managedFields")
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
