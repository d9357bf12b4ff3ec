"""A profile in one cluster: the objects that it owns there, its status and its preview."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from bellhop.core.gvk import GVK, Identity
from bellhop.state.chart import HeldRelease
from bellhop.state.content import FeatureName

Phase = Literal[
    "Provisioning",
    "Provisioned",
    "DryRun",
    "Failed",
    "FailedNonRetriable",
    "Removing",
    "Removed",
]
"""The state of a profile in one cluster. In DryRun only a preview was made; FailedNonRetriable
waits until somebody changes an input."""

MOST_WATCHED = 256
"""Kinds of one profile whose changes in a cluster send events, and ConfigMaps and Secrets that its
workloads read: for those beyond it the resync reads all."""


class Held(Struct, frozen=True):
    """One object of an inventory."""

    digest: str
    """Of its manifest as it was applied; empty while applying it has only begun."""
    ref: str
    """The ConfigMap, Secret or source that it comes from."""
    applied_at: datetime | None = None
    version: str = ""
    """The version of its kind in which it was written last."""
    uid: str = ""
    """The UID of the object that was written; empty where no answer gave it."""
    secret: bool = True
    """An error of the API server on it may quote a Secret."""
    adopted: str = ""
    """The owner that it was taken over from; such an object stays when it is withdrawn."""
    fields: str = ""
    """Where drift is watched, a digest of the fields that Bellhop owned once it was applied."""
    mended: int = 0
    """The corrections of its drift in a row."""
    mended_at: datetime | None = None
    mounted: Mapping[str, str] = {}
    """Of a workload that restarts with what it reads: the state of each ConfigMap and Secret."""
    reloaded: str = ""
    """The annotation that its pods have for that."""
    local: bool = False
    """Deployed to `mgmt/mgmt` for the clusters of its profile."""
    release: HeldRelease | None = None
    """Of a Helm release: its chart and its state."""
    part_of: str = ""
    """The Helm release, `namespace/name`, that made it."""
    kustomized: bool = False
    """Built by a kustomization."""

    @property
    def feature(self) -> FeatureName:
        """Return the feature that deployed it."""
        if self.of_chart:
            return "Helm"
        return "Kustomize" if self.kustomized else "Resources"

    @property
    def of_chart(self) -> bool:
        """Return whether it is a Helm release or part of one."""
        return self.release is not None or bool(self.part_of)


class Watch(Struct, frozen=True):
    """The kinds of which a profile has objects in a cluster whose drift is to be corrected."""

    cluster: str
    profile: str
    trigger: str
    source: str
    kinds: tuple[GVK, ...]
    told: bool = False
    """Published: a resync was asked to have the cluster send events of these kinds."""
    mounts: tuple[str, ...] = ()
    """The ConfigMaps and Secrets that its workloads read, where these restart with them."""
    charts: tuple[GVK, ...] | None = None
    """The kinds that objects of its Helm releases have; None in records without this field."""

    @property
    def of_charts(self) -> tuple[GVK, ...]:
        """Return the kinds that objects of Helm releases may have."""
        return self.kinds if self.charts is None else self.charts


class Inventory(Struct, frozen=True):
    """The objects that one profile owns in one cluster, and the lease on them."""

    cluster: str
    profile: str
    held: Mapping[Identity, Held]
    worker: str = ""
    """The lease holder; empty where no worker has the lease."""
    until: datetime | None = None
    """The end of the lease."""


class Owner(Struct, frozen=True):
    """The profile that owns an object in one cluster; an empty one if it was released."""

    profile: str
    trigger: str
    source: str
    tier: int
    waiting: tuple[tuple[str, str, str], ...] = ()
    """The profiles that wait for the object."""
    tell: tuple[tuple[str, str, str], ...] = ()
    """The profiles that are still to be notified."""


class Orphan(Struct, frozen=True):
    """An object in a cluster that is not as the records have it."""

    what: Literal["stray", "foreign"]
    """A `stray` has ownership labels, and no profile owns it; a `foreign` one took the place of an
    object that a profile owns."""
    profile: str
    uid: str
    version: str
    since: datetime


class Ended(Struct, frozen=True):
    """The result of one feature of a profile in one cluster."""

    feature: str
    phase: Phase
    reason: str = ""
    message: str = ""
    retry_at: datetime | None = None
    """The time of the next attempt."""


class DeploymentStatus(Struct, frozen=True):
    """The result of the last attempt to apply one profile to one cluster."""

    cluster: str
    profile: str
    trigger: str
    source: str
    phase: Phase
    at: datetime
    """The time of the last attempt."""
    reason: str = ""
    message: str = ""
    failures: int = 0
    """Failures in a row."""
    retry_at: datetime | None = None
    """The time of the next attempt; a failure without it waits for a changed input."""
    reads: bool = False
    """It read objects whose changes send no event: each resync applies it again."""
    features: tuple[Ended, ...] = ()
    """The result of each feature; none in records of earlier versions."""
    counted: int = 0
    """The failures in a row that count against `maxConsecutiveFailures`."""
    made_of: str = ""
    """A digest of the inputs for which these were counted."""
    read: str = ""
    """A digest of the objects that its templates read then."""
    revision: str = ""
    """The revision of a profile that others wait for; empty for any other."""
    guests: str = ""
    """A digest of the clusters for which its Local refs were deployed."""
    needs: tuple[str, ...] = ()
    """The names under which the profiles that it depends on have it as a waiter."""
    since: datetime | None = None
    """The time of the first attempt with this result."""

    @property
    def begun_at(self) -> datetime:
        """Return the time since when the result is the same, as far as it was noted."""
        return self.since or self.at

    @property
    def shown_at(self) -> datetime:
        """Return the time to show: the last deployment, or the beginning of the failure."""
        return self.at if self.phase == "Provisioned" else self.begun_at


Action = Literal["Create", "Adopt", "Update", "Delete", "No Action", "Conflict", "Error"]
"""The change to one object in Sveltos' words; none for an object that is taken over."""


class Change(Struct, frozen=True):
    """The change that a preview has for one object."""

    key: Identity
    action: Action
    message: str = ""
    diff: str = ""
    """Lines of a diff, without the values of Secrets."""


class Preview(Struct, frozen=True):
    """The changes that applying a profile to a cluster would have made at that time."""

    cluster: str
    profile: str
    at: datetime
    changes: tuple[Change, ...]


class Dependent(Struct, frozen=True):
    """A profile that waits in a cluster for another one, or may not be there without it."""

    trigger: str
    source: str
    profile: str


class RolloutState(Struct, frozen=True):
    """The clusters of a profile that have a place to change."""

    at_work: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    """Those that are still to be notified of it."""


class Mount(Struct, frozen=True):
    """A profile whose workloads read a ConfigMap or Secret of a cluster."""

    trigger: str
    source: str
    profile: str


class TemplateDependency(Struct, frozen=True):
    """A profile whose templates read an object of `mgmt/mgmt` where it is deployed."""

    trigger: str
    source: str
    profile: str
    destination: str
    settled: bool = False
    """It was ensured that the cluster sends events of the object."""
