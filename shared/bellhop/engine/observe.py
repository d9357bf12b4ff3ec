"""From what clusters send to what we keep of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bellhop.model.gvk import ObjectKey
from bellhop.model.record import Observation


def observe(cluster: str, manifest: Mapping[str, Any], now: datetime) -> Observation:
    """Return the observation of a stored object, without managedFields."""
    metadata = dict(manifest.get("metadata") or {})
    metadata.pop("managedFields", None)
    kept = {**manifest, "metadata": metadata}
    version = str(metadata.get("resourceVersion") or "")
    return Observation(
        cluster=cluster,
        key=ObjectKey.of(kept),
        uid=str(metadata.get("uid") or ""),
        resource_version=int(version) if version.isdigit() else 0,
        manifest=kept,
        seen_at=now,
    )


def bury(cluster: str, key: ObjectKey, uid: str, version: int, now: datetime) -> Observation:
    """Return the tombstone of an object that is known to be gone."""
    return Observation(cluster, key, uid, version, None, now)
