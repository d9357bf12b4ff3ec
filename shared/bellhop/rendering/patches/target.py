"""Targets of patches and of exclusions from drift: the objects that they match."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from bellhop.core.selector import Selector
from bellhop.state.content import Target

_PATTERNS = 256


def admits(target: Target, manifest: Mapping[str, Any]) -> bool:
    """Say whether a manifest meets all conditions of a target."""
    group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
    metadata = manifest.get("metadata") or {}
    found = (
        (target.group, group),
        (target.version, version),
        (target.kind, manifest.get("kind")),
        (target.namespace, metadata.get("namespace")),
        (target.name, metadata.get("name")),
    )
    if not all(_matches(pattern, str(text or "")) for pattern, text in found):
        return False
    selected = ((target.labels, "labels"), (target.annotations, "annotations"))
    return all(
        not text or Selector.parse(text).admits(metadata.get(field) or {})
        for text, field in selected
    )


def _matches(pattern: str, text: str) -> bool:
    return not pattern or pattern == text or _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=_PATTERNS)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - 4 ms, of use only to targets that name something

    return re2.compile(pattern)
