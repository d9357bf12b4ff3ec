"""One attempt to reconcile a profile in a cluster: its inputs, its progress and its verdict.

Dependencies, permissions and transitions are waited for by name, cluster by cluster: the name of a
profile, or that of the permissions of a service account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from msgspec import Struct

from bellhop.adapters.programs.box import OvertimeError
from bellhop.clusters.management_cluster import add_target, digest_targets
from bellhop.core.gvk import Identity
from bellhop.deploy.ownership import Taken
from bellhop.deploy.subscribers import is_mounted
from bellhop.errors import (
    BellhopError,
    CloudDeniedError,
    ConflictError,
    TemporaryError,
    UnmetError,
)
from bellhop.rendering.references import may_be_in_management
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.deployment import Dependent, DeploymentStatus, Held, Inventory
from bellhop.state.messages import Apply
from bellhop.state.profile import Profile
from bellhop.state.table import Stored

_OF_ONE = (TemporaryError, CloudDeniedError, OvertimeError)
"""Errors that concern one object or release, and not the others."""


class ObjectResult(Struct, frozen=True):
    """The result of one object: its entry in the inventory, if any, and why it was refused.

    An object that is Local for a cluster names it as its `target`. One that is deleted and still
    exists `waits`.
    """

    key: Identity
    held: Held | None
    changed: bool = False
    refused: BellhopError | None = None
    target: str = ""
    waits: UnmetError | None = None


class Claimed(Struct, frozen=True):
    """The result of claiming one object before anything is applied: the claim, or why not."""

    key: Identity
    taken: Taken | None = None
    refused: ConflictError | None = None


class Contest(Struct, frozen=True):
    """An object that is changed again as often as it is corrected, and when that is done next."""

    key: Identity
    by: str
    times: int
    pause: timedelta
    at: datetime


@dataclass
class Lease:
    """The inventory as this worker knows it: its version, and the lease once it is acquired."""

    token: str
    begun_at: datetime
    """Time from which the turn of this attempt counts: the lease begins it again."""
    worker: str = ""
    before: Mapping[Identity, Held] = field(default_factory=dict)
    """Objects that the inventory had when the lease was acquired."""


@dataclass
class Progress:
    """Objects of a profile in a cluster, as an attempt reads and changes them.

    Several threads may change objects at once; one of them writes here.
    """

    held: dict[Identity, Held]
    """Objects that the inventory is to have."""
    targets: tuple[Cluster, ...] = ()
    """Clusters for which the management cluster gets objects with `deploymentType: Local`."""
    feature: str = ""
    """Name of the feature that is in progress; empty before the first and after the last."""
    read: str = ""
    """Digest of the objects that templates were given."""
    reads_management: bool | None = None
    """True if templates read objects of `mgmt/mgmt`; None until that is looked up."""
    desired: tuple[Any, ...] | None = None
    """Objects of manifests and kustomizations, computed once for both features."""
    build_error: BellhopError | None = None
    """Error because of which kustomizations were not built."""
    corrections: dict[Identity, tuple[int, int]] = field(default_factory=dict)
    """Of each drifted object: how often in a row it was corrected, and its version."""
    claimed: Mapping[Identity, Taken] = field(default_factory=dict)
    """Objects that were claimed under the lease, before any of them is applied."""
    changed: list[str] = field(default_factory=list)
    written: list[Identity] = field(default_factory=list)
    """Changed objects that others may read, as any ConfigMap or Secret."""
    unreadable: set[Identity] = field(default_factory=set)
    """ConfigMaps and Secrets of workloads that Bellhop's credentials may not get."""
    begun: bool = False
    """True once the first operation of this turn has begun."""
    unfinished: bool = False
    """True if the turn ended before the plans did."""
    has_progressed: bool = False
    """True once there is less to do than before."""
    ordered: bool = False
    """True if the dependency gate has checked the profiles before this one."""
    placed: bool = False
    """True if the rollout gate has given the cluster a place."""

    def begins_another(self, now: datetime, end: datetime) -> bool:
        """Begin another operation unless the turn has ended; the first one always begins."""
        self.unfinished = self.begun and now > end
        self.begun = True
        return not self.unfinished


@dataclass
class Verdict:
    """Errors of an attempt, by their effect."""

    failed: list[BellhopError] = field(default_factory=list)
    """Errors of objects that end the attempt in failure."""
    failed_features: set[str] = field(default_factory=set)
    """Names of the features of which something has failed."""
    unplanned: dict[str, BellhopError] = field(default_factory=dict)
    """Errors of features that could not be planned; features before them are executed, and by
    continueOnError those after them."""
    skipped: list[BellhopError] = field(default_factory=list)
    """Errors of objects, or of one target cluster, that do not stop the others."""
    terminating: list[BellhopError] = field(default_factory=list)
    """Deleted objects that still exist."""
    contests: list[Contest] = field(default_factory=list)
    """Drifted objects that must wait before they are corrected again."""


@dataclass(frozen=True)
class ReconcileContext:
    """One attempt to deploy a profile to a cluster, or to withdraw it.

    The inputs stay as they were read. Features record what they do in `progress`, and errors in
    `verdict`.
    """

    message: Apply
    profile: Profile
    cluster: Cluster
    status: Stored[DeploymentStatus] | None
    """Status as it was read before all else."""
    lease: Lease
    progress: Progress
    verdict: Verdict = field(default_factory=Verdict)
    made_of: str = ""
    """Names of the versions of all inputs."""
    features: tuple[str, ...] = ()
    """Names of the features that the profile has, or had in the cluster."""
    live: bool = False
    """True for a preview that compares the inventory with the cluster, too."""

    @cached_property
    def is_destination(self) -> bool:
        """True if the cluster is to have the profile, and not to lose it.

        It is read for each object, and a profile may have the names of a whole fleet.
        """
        return self.cluster.key in self.profile.destinations

    @property
    def only_hosts(self) -> bool:
        """True if the cluster has, or had, only objects of the profile for other clusters."""
        return self.profile.only_hosts(self.cluster.key)

    @property
    def dry_run(self) -> bool:
        """True if changes are only previewed; a cluster without objects may be left."""
        destined = self.is_destination or bool(self.progress.held)
        return self.profile.sync == "DryRun" and destined

    @property
    def watches_drift(self) -> bool:
        """True if changes by others to the profile's objects are corrected."""
        return self.is_destination and corrects_drift(self.profile)

    @property
    def has_failed_permanently(self) -> bool:
        """True if it failed as often as its profile allows, with the inputs of this attempt."""
        most = self.profile.rollout.most_failures
        old = self.status.value if self.status else None
        return old is not None and 0 < most <= old.counted and old.made_of == self.made_of

    @property
    def reads(self) -> bool:
        """True if it depends on objects whose changes may send no event."""
        management = self.progress.reads_management
        if management is None:
            management = any(map(may_be_in_management, self.profile.reads))
        remote = any(each.address for each in self.profile.reads)
        # A newer version of a chart, or a tag that has moved, is a release of its promotion.
        moves = self.profile.rollout.leads and any(each.chart for each in self.profile.contents)
        return self.dry_run or self.profile.rollout.reloads or management or remote or moves

    def enter(self, feature: str) -> None:
        """Have what follows be about a feature that the profile has; about none for the others."""
        self.progress.feature = feature if feature in self.features else ""

    def restore(self, keys: Iterable[Identity]) -> None:
        """Restore objects in the inventory as before the lease: nothing was begun about them.

        Objects that an earlier attempt may have applied stay uncertain.
        """
        for key in keys:
            self.progress.held.pop(key, None)
            if key in self.lease.before:
                self.progress.held[key] = self.lease.before[key]

    def record(self, result: ObjectResult) -> None:
        """Record the result of one object."""
        progress, verdict = self.progress, self.verdict
        if result.held:
            progress.held[result.key] = result.held
        else:
            progress.held.pop(result.key, None)
        if result.changed and (self.cluster.key == MANAGEMENT or is_mounted(result.key)):
            progress.written.append(result.key)
        if result.changed:
            progress.changed.append(f"{result.key.kind} {result.key.name}")
        if result.waits:
            verdict.terminating.append(result.waits)
        if result.changed and not result.refused:
            progress.has_progressed = True
        if result.refused and result.target:
            verdict.skipped.append(add_target(result.target, result.refused))
        elif result.refused:
            verdict.failed.append(result.refused)
            verdict.failed_features.add(progress.feature)


def is_passed_over(profile: Profile, error: BellhopError) -> bool:
    """Say whether an object that fails for now is skipped, and the others are applied.

    A more specific error, such as a cluster that does not answer, fails all of them.
    """
    return type(error) in _OF_ONE and not profile.stops_at(error)


def corrects_drift(profile: Profile) -> bool:
    return profile.sync == "ContinuousWithDriftDetection"


def is_done_once(
    profile: Profile, status: Stored[DeploymentStatus] | None, inventory: Inventory
) -> bool:
    """Say whether a profile with the syncMode OneTime is deployed to a cluster that keeps it.

    Changes after the first success have no effect, as in Sveltos. It is deployed again to a cluster
    with uncertain objects, such as one that was re-created or is redeployed; to one without
    objects, after a removal that was cancelled; and for another set of target clusters.
    """
    if profile.sync != "OneTime" or inventory.cluster not in profile.destinations:
        return False
    if status is None or status.value.phase != "Provisioned":
        return False
    held, same = (
        inventory.held.values(),
        status.value.guests == digest_targets(profile, inventory.cluster),
    )
    return same and bool(held) and all(each.digest for each in held)


PERMISSIONS = "ServiceAccount "
"""Prefix of the names of permissions; no profile has a name that begins so."""


def permissions_of(account: str) -> str:
    """Name the permissions of a service account among profiles."""
    return f"{PERMISSIONS}{account}"


def requirements(profile: Profile) -> tuple[str, ...]:
    """Return the names of all that must be in a cluster as long as a profile is."""
    after = profile.rollout.after
    return (permissions_of(profile.account), *after) if profile.account else after


def dependent(profile: Profile) -> Dependent:
    """Return a profile as it is noted under what it waits for, or requires."""
    return Dependent(profile.trigger, profile.cluster, profile.name)


def is_applied(context: ReconcileContext) -> bool:
    """Say whether a profile was deployed as it is now: to correct that, it needs no gate."""
    if context.status is None or context.status.value.revision != context.profile.revision:
        return False
    held = context.progress.held.values()
    return context.status.value.phase == "Provisioned" and all(each.digest for each in held)


def is_deployed(status: DeploymentStatus, profile: Profile, inventory: Inventory | None) -> bool:
    """Say whether a profile is deployed as it is now, and nothing of that is uncertain.

    By the syncMode OneTime it stays deployed, whatever changes later.
    """
    if status.phase != "Provisioned":
        return False
    certain = inventory is None or all(each.digest for each in inventory.held.values())
    return certain and (profile.sync == "OneTime" or status.revision == profile.revision)
