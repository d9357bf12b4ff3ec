"""ClusterProfile and Profile: which add-ons belong on which clusters."""

from collections.abc import Iterable
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from bellhop.api.addon import (
    AddonSpec,
    ChartRef,
    ClusterRef,
    ClusterReference,
    KustomizationSource,
    NearReference,
)
from bellhop.api.manifest import Declaration
from bellhop.api.policy_ref import PolicyRef
from bellhop.core.base import Many, mistake
from bellhop.core.names import Text
from bellhop.core.selector import Selector
from bellhop.core.sveltos_annotations import PROFILE_PAUSED
from bellhop.state.check import Check
from bellhop.state.record import Cluster, Reading, Sync
from bellhop.state.rollout import Rollout


def _own_name(name: str) -> str:
    if "/" in name or ":" in name:
        raise mistake("a profile of the same kind is named, without a namespace")
    return name


class ClusterProfileSpec(AddonSpec):
    """The spec as written."""

    cluster_selector: Selector = Field(default_factory=Selector)
    cluster_refs: Many[ClusterReference] = ()
    set_refs: Many[Text] = ()
    continue_on_error: bool = False
    max_consecutive_failures: int | None = Field(default=None, ge=1, le=2**31 - 1)
    transition_from: Many[Annotated[Text, AfterValidator(_own_name)]] = ()


class ClusterProfile(Declaration):
    """Add-ons, and the clusters they belong on: selected, named, or both."""

    brings: ClassVar[bool] = True
    for_tenants: ClassVar[bool] = True
    pauses: ClassVar[str] = PROFILE_PAUSED
    refs_field: ClassVar[str] = "policyRefs"
    """The field in which its ConfigMaps and Secrets are named."""

    spec: ClusterProfileSpec

    @property
    def asked(self) -> ClusterProfileSpec:
        """What it asks for; a RoleRequest says it in words of its own."""
        return self.spec

    @property
    def grants(self) -> str:
        """The service account that it gives rights to; empty for a profile of add-ons."""
        return ""

    @property
    def cluster_selector(self) -> Selector:
        """Which clusters; an empty selector matches none."""
        return self.asked.cluster_selector

    @property
    def cluster_refs(self) -> tuple[ClusterRef, ...]:
        """The clusters that are named, beside those that are selected."""
        return tuple(
            ClusterRef(self.namespace or ref.namespace, ref.name) for ref in self.asked.cluster_refs
        )

    @property
    def cluster_sets(self) -> tuple[str, ...]:
        """The places of the sets whose clusters get the add-ons, too."""
        sets = self.asked.set_refs
        return tuple(f"{self.namespace}/{each}" for each in sets) if self.namespace else sets

    @property
    def policy_refs(self) -> tuple[PolicyRef, ...]:
        """What has the manifests of the add-ons, in its order."""
        return self._own(self.asked.refs())

    @property
    def charts(self) -> tuple[ChartRef, ...]:
        """The Helm charts, in their order."""
        return tuple(each.within(self.namespace) for each in self.asked.charts())

    @property
    def kustomizations(self) -> tuple[KustomizationSource, ...]:
        """The kustomizations, in their order."""
        return tuple(each.within(self.namespace) for each in self.asked.kustomizations())

    @property
    def patch_refs(self) -> tuple[PolicyRef, ...]:
        """The ConfigMaps and Secrets that hold patches, in their order."""
        return self._own(self.asked.patch_refs())

    def _own(self, refs: tuple[PolicyRef, ...]) -> tuple[PolicyRef, ...]:
        if not self.namespace:
            return refs
        return tuple(each._replace(namespace=self.namespace) for each in refs)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The objects that templates of deploy time read."""
        found = self.asked.readings()
        if not self.namespace:
            return found
        return tuple(each.within(self.namespace) for each in found)

    def reaches(self, cluster: Cluster) -> bool:
        """Tell whether it may go to a cluster, be it selected or not."""
        return self.namespace in ("", cluster.namespace)

    @property
    def holder_refs(self) -> tuple[PolicyRef, ...]:
        """All ConfigMaps and Secrets that it is rendered from, or checked with."""
        charts = (ref for each in self.charts for ref in each.refs)
        kustomizations = (ref for each in self.kustomizations for ref in each.refs)
        held = (each for each in self.policy_refs if each.files is None)
        beside = self._own((*self.asked.check_refs(), *self.asked.login_refs()))
        return (*held, *self.patch_refs, *charts, *kustomizations, *beside)

    @property
    def local(self) -> bool:
        """Tell whether any of the add-ons is brought to the cluster `mgmt/mgmt`."""
        return self.asked.local

    @property
    def leaves_policies(self) -> bool:
        """Tell whether add-ons stay on a cluster that no longer matches."""
        return self.asked.stop_matching_behavior == "LeavePolicies"

    @property
    def tier(self) -> int:
        """Who wins a conflict: the lower number."""
        return self.asked.tier

    @property
    def sync(self) -> Sync:
        """Whether it is applied, or only tried dry."""
        return self.asked.sync

    @property
    def checks(self) -> tuple[Check, ...]:
        """What must be so in a cluster before and after it is brought, and taken back."""
        found = self.asked.checks()
        return tuple(each.within(self.namespace) for each in found) if self.namespace else found

    @property
    def continue_on_conflict(self) -> bool:
        """Tell whether the rest is deployed when an object has another owner."""
        return self.asked.continue_on_conflict

    @property
    def after(self) -> tuple[str, ...]:
        """The places of the profiles that it comes after in each cluster."""
        return self._places(self.asked.depends_on)

    @property
    def replaces(self) -> tuple[str, ...]:
        """The places of the profiles whose objects it takes over."""
        return self._places(self.asked.transition_from)

    def _places(self, names: Iterable[str]) -> tuple[str, ...]:
        named = tuple(dict.fromkeys(names))
        return tuple(f"{self.namespace}/{each}" for each in named) if self.namespace else named

    @property
    def rollout(self) -> Rollout:
        """What it waits for in a cluster, what stops it there, and what it restarts."""
        return Rollout(
            continues=self.asked.continue_on_error,
            most_failures=self.asked.max_consecutive_failures or 0,
            after=self.after,
            share=self.asked.share,
            reloads=self.asked.reloader,
            replaces=self.replaces,
        )


class ProfileSpec(ClusterProfileSpec):
    """The spec of a Profile as written."""

    names_places: ClassVar[bool] = False

    cluster_refs: Many[NearReference] = ()


class NamespacedProfile(ClusterProfile):
    """A Profile: as a ClusterProfile, for the clusters of its own namespace alone.

    All that it names, be it clusters, sets, ConfigMaps, Secrets or what templates read, it names
    there, whatever namespace is written: so Sveltos has it (addon-controller, profile_controller).
    """

    namespaced: ClassVar[bool] = True

    spec: ProfileSpec
