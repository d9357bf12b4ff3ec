"""ClusterSet and Set: clusters that triggers and profiles name together."""

from typing import ClassVar

from pydantic import Field

from bellhop.api.addon import ClusterRef, ClusterReference, NearReference
from bellhop.api.manifest import Declaration
from bellhop.core.base import Many, Model
from bellhop.core.selector import Selector
from bellhop.state.cluster import Cluster


class ClusterSetSpec(Model):
    """The spec as written."""

    cluster_selector: Selector = Field(default_factory=Selector)
    cluster_refs: Many[ClusterReference] = ()
    max_replicas: int | None = Field(default=None, ge=0)


class ClusterSet(Declaration):
    """Clusters, selected and named; with maxReplicas so many of them, which stay chosen."""

    spec: ClusterSetSpec

    @property
    def cluster_selector(self) -> Selector:
        """The clusters; an empty selector matches none."""
        return self.spec.cluster_selector

    @property
    def cluster_refs(self) -> tuple[ClusterRef, ...]:
        """The clusters that are named, beside those that are selected."""
        return tuple(
            ClusterRef(self.namespace or ref.namespace, ref.name) for ref in self.spec.cluster_refs
        )

    @property
    def most(self) -> int | None:
        """The most clusters that it selects; None for all of them."""
        return self.spec.max_replicas

    def all_of_them(self) -> "ClusterSet":
        """Return a set of the same clusters that has them all, for who tries things out."""
        return self.model_copy(update={"spec": self.spec.model_copy(update={"max_replicas": None})})

    def takes(self, cluster: Cluster) -> bool:
        """Return whether a cluster may be chosen."""
        if self.namespace not in ("", cluster.namespace):
            return False
        named = (cluster.namespace, cluster.name) in self.cluster_refs
        return named or self.cluster_selector.matches(cluster.labels)


class SetSpec(ClusterSetSpec):
    """The spec of a Set as written."""

    cluster_refs: Many[NearReference] = ()


class NamespacedSet(ClusterSet):
    """A Set: a ClusterSet for the clusters of its own namespace."""

    namespaced: ClassVar[bool] = True

    spec: SetSpec
