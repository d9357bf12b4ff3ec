"""Manifests as people and other clusters may see them: without values of Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellhop.core.sveltos_annotations import LAST_APPLIED, WITHHELD

HIDDEN = "<hidden>"
"""No base64, so that a manifest with hidden values cannot be applied by mistake."""


def hide_values(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the values of a Secret hidden; other kinds unchanged.

    A generated object with values of a Secret is hidden, too.
    """
    shown = dict(manifest)
    marks = (shown.get("metadata") or {}).get("annotations") or {}
    secret = shown.get("kind") == "Secret" or WITHHELD in marks
    if not secret or shown.get("apiVersion") != "v1":
        return shown
    parts = [shown.pop(part, None) for part in ("data", "stringData")]
    # Under stringData the mark would be a value like any other.
    shown["data"] = {key: HIDDEN for part in parts if isinstance(part, Mapping) for key in part}
    metadata = shown.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if isinstance(metadata, Mapping) and annotations and LAST_APPLIED in annotations:
        # kubectl keeps a copy of the whole Secret there.
        kept = {**annotations, LAST_APPLIED: HIDDEN}
        shown["metadata"] = {**metadata, "annotations": kept}
    return shown
