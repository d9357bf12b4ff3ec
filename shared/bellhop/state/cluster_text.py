"""A text that a profile holds, and for which of its clusters it is."""

from __future__ import annotations

from msgspec import Struct


class HeldText(Struct, frozen=True):
    """A patch, or values of a chart, as its author wrote it; errors call it its `source`.

    It is a template of deploy time unless it is `plain`. A `secret` one may not be quoted. One with
    a `namespace` is for the clusters of it, one with `clusters` for these, by their keys; one that
    is `missing` says what is.
    """

    text: str
    source: str
    plain: bool = False
    secret: bool = False
    namespace: str = ""
    clusters: tuple[str, ...] = ()
    missing: str = ""

    @property
    def alike(self) -> bool:
        """Say whether it is the same for each cluster of a namespace."""
        return not self.clusters and (self.plain or "{{" not in self.text)

    def is_for(self, key: str) -> bool:
        """Say whether it is for a cluster, which is named by its key."""
        chosen = not self.clusters or key in self.clusters
        return chosen and self.namespace in ("", key.partition("/")[0])
