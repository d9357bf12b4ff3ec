"""Which objects a patch, or an exclusion from drift, is meant for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from bellhop.model.selector import Selector

_PATTERNS = 256


class Target(NamedTuple):
    """Conditions on an object, all of which must hold; an empty one always holds.

    The first five are regular expressions that match a field as a whole, the last two selectors.
    """

    group: str = ""
    version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    labels: str = ""
    annotations: str = ""

    def admits(self, manifest: Mapping[str, Any]) -> bool:
        """Say whether a manifest meets all conditions."""
        group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
        metadata = manifest.get("metadata") or {}
        found = (
            (self.group, group),
            (self.version, version),
            (self.kind, manifest.get("kind")),
            (self.namespace, metadata.get("namespace")),
            (self.name, metadata.get("name")),
        )
        if not all(_matches(pattern, str(text or "")) for pattern, text in found):
            return False
        selected = ((self.labels, "labels"), (self.annotations, "annotations"))
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
