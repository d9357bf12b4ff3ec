"""ClusterProfile: which add-ons belong on which clusters."""

from typing import ClassVar

from pydantic import Field

from bellhop.model.addon import AddonSpec, ClusterRef, ClusterReference, PolicyRef
from bellhop.model.base import Many
from bellhop.model.core import Declaration
from bellhop.model.marks import PROFILE_PAUSED
from bellhop.model.names import Text
from bellhop.model.record import Reading, Sync
from bellhop.model.selector import Selector


class ClusterProfileSpec(AddonSpec):
    """The spec as written."""

    cluster_selector: Selector = Field(default_factory=Selector)
    cluster_refs: Many[ClusterReference] = ()
    set_refs: Many[Text] = ()
    continue_on_error: bool = False
    max_consecutive_failures: int | None = Field(default=None, ge=0)


class ClusterProfile(Declaration):
    """Add-ons, and the clusters they belong on: selected, named, or both."""

    brings: ClassVar[bool] = True
    pauses: ClassVar[str] = PROFILE_PAUSED

    spec: ClusterProfileSpec

    @property
    def cluster_selector(self) -> Selector:
        """Which clusters; an empty selector matches none."""
        return self.spec.cluster_selector

    @property
    def cluster_refs(self) -> tuple[ClusterRef, ...]:
        """The clusters that are named, beside those that are selected."""
        return tuple(ClusterRef(ref.namespace, ref.name) for ref in self.spec.cluster_refs)

    @property
    def cluster_sets(self) -> tuple[str, ...]:
        """The ClusterSets whose clusters get the add-ons, too."""
        return self.spec.set_refs

    @property
    def policy_refs(self) -> tuple[PolicyRef, ...]:
        """The ConfigMaps and Secrets that hold the add-ons, in their order."""
        return self.spec.refs()

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The objects that templates of deploy time read."""
        return self.spec.readings()

    @property
    def holder_refs(self) -> tuple[PolicyRef, ...]:
        """All ConfigMaps and Secrets that it is rendered from."""
        return self.policy_refs

    @property
    def leaves_policies(self) -> bool:
        """Tell whether add-ons stay on a cluster that no longer matches."""
        return self.spec.stop_matching_behavior == "LeavePolicies"

    @property
    def tier(self) -> int:
        """Who wins a conflict: the lower number."""
        return self.spec.tier

    @property
    def sync(self) -> Sync:
        """Whether it is applied, or only tried dry."""
        return self.spec.sync

    @property
    def continue_on_conflict(self) -> bool:
        """Tell whether the rest is deployed when an object has another owner."""
        return self.spec.continue_on_conflict
