"""Objects that are deleted and still exist: what keeps them, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_SHOWN = 3
_LONGEST = 128
"""Characters of a finalizer's name that are shown."""


def is_terminating(manifest: Mapping[str, Any]) -> bool:
    """Return whether an object is deleted and kept by finalizers or by its grace period."""
    metadata = _mapping(manifest.get("metadata"))
    kept = _finalizers(manifest) or metadata.get("deletionGracePeriodSeconds")
    return bool(metadata.get("deletionTimestamp") and kept)


def why_kept(manifest: Mapping[str, Any]) -> str:
    """Return what keeps a terminating object, and since when, as the end of a sentence."""
    since = _time(_mapping(manifest.get("metadata")).get("deletionTimestamp"))
    finalizers = _finalizers(manifest)
    if not finalizers:
        return "its grace period ends" + (f" at {since}" if since else " soon")
    names = ", ".join(f"'{each[:_LONGEST]}'" for each in finalizers[:_SHOWN])
    more = f" and {len(finalizers) - _SHOWN} more" if len(finalizers) > _SHOWN else ""
    held = f"finalizer {names} has" if len(finalizers) == 1 else f"finalizers {names}{more} have"
    return f"{held} kept it" + (f" since {since}" if since else "")


def _finalizers(manifest: Mapping[str, Any]) -> list[str]:
    """Return the finalizers of an object; a Namespace has one in its spec, too."""
    places = (_mapping(manifest.get(part)).get("finalizers") for part in ("metadata", "spec"))
    return [str(each) for place in places if isinstance(place, list) for each in place]


def _time(text: object) -> str:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return ""
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if found.tzinfo else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
