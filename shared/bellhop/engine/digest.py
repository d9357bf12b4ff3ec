"""Digests of objects: what decides that nothing has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_UNSTABLE = ("managedFields", "resourceVersion")


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def content(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that every write moves, so that equal means equal."""
    metadata = manifest.get("metadata") or {}
    stable = {key: value for key, value in metadata.items() if key not in _UNSTABLE}
    return {**manifest, "metadata": stable}
