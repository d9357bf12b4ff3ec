"""ClusterProfile and Profile: which add-ons belong on which clusters."""

from typing import Annotated, Any, ClassVar

from msgspec.structs import replace
from pydantic import AfterValidator, Field

from bellhop.api.addon import (
    AddonDeclaration,
    AddonSpec,
    ClusterRef,
    ClusterReference,
    NearReference,
)
from bellhop.core.base import Many, mistake
from bellhop.core.names import Text
from bellhop.core.selector import Selector
from bellhop.core.sveltos_annotations import PROFILE_PAUSED
from bellhop.state.cluster import Cluster
from bellhop.state.profile import AddonPolicy, Rollout


def _own_name(name: str) -> str:
    if "/" in name or ":" in name:
        raise mistake("a profile of the same kind is named, without a namespace")
    return name


class ProfileTemplateSpec(AddonSpec):
    """The spec of a ClusterProfile without its clusters, as a ClusterPromotion has it."""

    continue_on_error: bool = False
    max_consecutive_failures: int | None = Field(default=None, ge=1, le=2**31 - 1)


class ClusterProfileSpec(ProfileTemplateSpec):
    """The spec as written."""

    cluster_selector: Selector = Field(default_factory=Selector)
    cluster_refs: Many[ClusterReference] = ()
    set_refs: Many[Text] = ()
    transition_from: Many[Annotated[Text, AfterValidator(_own_name)]] = ()

    @classmethod
    def write_policy(cls, policy: AddonPolicy) -> dict[str, Any]:
        """Return the fields of a manifest that make a policy."""
        rollout = policy.rollout
        stopped = {
            "transition_from": [each.rpartition("/")[2] for each in rollout.replaces],
            "continue_on_error": rollout.continues,
            "max_consecutive_failures": rollout.most_failures or None,
        }
        return super().write_policy(policy) | cls.write(stopped)


class ClusterProfile(AddonDeclaration):
    """Add-ons, and the clusters they belong on: selected, named, or both."""

    pauses: ClassVar[str] = PROFILE_PAUSED
    refs_field: ClassVar[str] = "policyRefs"
    """The field in which its ConfigMaps and Secrets are named."""

    spec: ClusterProfileSpec

    @property
    def addons(self) -> ClusterProfileSpec:
        """The add-ons and their roll-out, in which a RoleRequest says its own fields, too."""
        return self.spec

    @property
    def grants(self) -> str:
        """The service account that it gives rights to; empty for a profile of add-ons."""
        return ""

    @property
    def cluster_selector(self) -> Selector:
        """The clusters that are selected; an empty selector matches none."""
        return self.addons.cluster_selector

    @property
    def cluster_refs(self) -> tuple[ClusterRef, ...]:
        """The clusters that are named, beside those that are selected."""
        return tuple(
            ClusterRef(self.namespace or ref.namespace, ref.name)
            for ref in self.addons.cluster_refs
        )

    @property
    def cluster_sets(self) -> tuple[str, ...]:
        """The places of the sets whose clusters get the add-ons, too."""
        sets = self.addons.set_refs
        return tuple(f"{self.namespace}/{each}" for each in sets) if self.namespace else sets

    def reaches(self, cluster: Cluster) -> bool:
        """Return whether it may go to a cluster, be it selected or not."""
        return self.namespace in ("", cluster.namespace)

    @property
    def replaces(self) -> tuple[str, ...]:
        """The places of the profiles whose objects it takes over."""
        return self._places(self.addons.transition_from)

    @property
    def rollout(self) -> Rollout:
        """Its dependencies, its limits, and the profiles that it replaces."""
        return replace(
            super().rollout,
            continues=self.addons.continue_on_error,
            most_failures=self.addons.max_consecutive_failures or 0,
            replaces=self.replaces,
        )


class ProfileSpec(ClusterProfileSpec):
    """The spec of a Profile as written."""

    names_places: ClassVar[bool] = False

    cluster_refs: Many[NearReference] = ()


class NamespacedProfile(ClusterProfile):
    """A Profile: a ClusterProfile for the clusters of its own namespace."""

    namespaced: ClassVar[bool] = True

    spec: ProfileSpec
