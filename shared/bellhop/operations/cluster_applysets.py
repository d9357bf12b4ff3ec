"""Applysets of clusters: a cluster that left the files of its set can be deregistered.

As for other objects, only its label makes a cluster a member of a set. A cluster that was
registered by hand has none.
"""

from __future__ import annotations

from collections.abc import Collection

from bellhop.core.sveltos_annotations import APPLYSET
from bellhop.errors import ConflictError
from bellhop.operations.applysets import LeasedSet
from bellhop.registration.removal import Deregistered, deregister
from bellhop.state.cluster import Cluster


class ClusterApplySet(LeasedSet):
    """The clusters of an applyset."""

    def left(self, found: Collection[str]) -> list[str]:
        """Return the keys of clusters of this set that are not among the given ones, sorted.

        Raises:
            ConflictError: a given one belongs to another set.
        """
        sets = {each.key: _read_set(each) for each in self.here.records.clusters.all()}
        for key in found:
            other = sets.get(key) or self.name
            if other != self.name:
                raise ConflictError(
                    f"cannot register cluster '{key}' in applyset '{self.name}': it is in applyset"
                    f" '{other}'; delete it from the files of that set, and take it out of the set"
                    f" by `bellhop label cluster {key} {APPLYSET}-`"
                )
        return sorted(key for key, of in sets.items() if of == self.name and key not in found)

    def prune(self, key: str) -> Deregistered | None:
        """Deregister a cluster if it still belongs to this set; return None if it does not.

        Raises:
            StaleError: the lease was lost; nothing is changed.
            ConflictError: it left the set while it was called; it stays registered.
        """
        self.renew("what the files declare is registered: register it again")
        kept = self.here.records.clusters.get(key)
        if kept is None or _read_set(kept.value) != self.name:
            return None
        return deregister(self.here, key, check=self._require_membership)

    def _require_membership(self, cluster: Cluster) -> None:
        if _read_set(cluster) != self.name:
            raise ConflictError(
                f"cannot prune cluster '{cluster.key}': it left applyset '{self.name}' meanwhile,"
                " and its webhook configuration and forwarder may be deleted; register it again"
            )


def _read_set(cluster: Cluster) -> str:
    """Return the set of a cluster; a label by a classifier is no membership."""
    return "" if APPLYSET in cluster.given else cluster.labels.get(APPLYSET, "")
