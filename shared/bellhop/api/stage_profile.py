"""Profiles of a promotion's stages: ClusterProfiles that the catalog derives."""

from typing import ClassVar, NamedTuple

from pydantic import PrivateAttr

from bellhop.api.profile import ClusterProfile
from bellhop.core.identity import cut_name
from bellhop.core.selector import Selector
from bellhop.state.cluster import Cluster


def name_stage_profile(promotion: str, stage: str) -> str:
    """Return the name of the profile of a stage."""
    return cut_name(f"{promotion}-{stage}")


class StagePlace(NamedTuple):
    """The place of a profile in its promotion."""

    promotion: str = ""
    stage: str = ""
    number: int = 0
    later: tuple[Selector, ...] = ()
    """The selectors of the stages after it."""
    others: tuple[str, ...] = ()
    """The profiles of the other stages."""


class StageProfile(ClusterProfile):
    """The ClusterProfile of one stage, or the one that verifies it.

    A cluster that several stages select belongs to the last of them, the most cautious one. The
    profiles of the other stages are replaced in a cluster that moves here: it is deployed in place.
    """

    verifies: ClassVar[bool] = False
    _place: StagePlace = PrivateAttr(StagePlace())

    @property
    def stage(self) -> StagePlace:
        """Its place in its promotion."""
        return self._place

    @property
    def leads(self) -> bool:
        """Return whether it is the profile of the first stage."""
        return not (self.verifies or self._place.number)

    @property
    def replaces(self) -> tuple[str, ...]:
        """The profiles of the other stages."""
        return self._place.others

    def reaches(self, cluster: Cluster) -> bool:
        """Return whether no later stage selects a cluster."""
        return not any(each.matches(cluster.labels) for each in self._place.later)


class VerificationProfile(StageProfile):
    """The ClusterProfile that verifies a stage: its deployment, and its checks of the cluster."""

    verifies: ClassVar[bool] = True
