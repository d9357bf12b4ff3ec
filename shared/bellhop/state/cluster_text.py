"""A text of a profile, and the clusters that it is for."""

from __future__ import annotations

from msgspec import Struct


class HeldText(Struct, frozen=True):
    """A patch, or values of a chart; a template of deploy time unless it is plain."""

    text: str
    source: str
    """The name of its origin in errors."""
    plain: bool = False
    secret: bool = False
    """No error may quote it."""
    namespace: str = ""
    """Only for the clusters of this namespace."""
    clusters: tuple[str, ...] = ()
    """Only for these clusters, by their keys."""
    missing: str = ""
    """The sentence that says which ref cannot be found."""

    @property
    def alike(self) -> bool:
        """Return whether it is the same for all clusters of a namespace."""
        return not self.clusters and (self.plain or "{{" not in self.text)

    def is_for(self, key: str) -> bool:
        """Return whether it is for a cluster, by its key."""
        chosen = not self.clusters or key in self.clusters
        return chosen and self.namespace in ("", key.partition("/")[0])
