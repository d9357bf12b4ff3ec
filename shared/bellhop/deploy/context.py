"""One execution under way: what it was begun with, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from msgspec import Struct

from bellhop.adapters.programs.box import OvertimeError
from bellhop.clusters.management_cluster import mark, told
from bellhop.core.gvk import Identity
from bellhop.deploy.ownership import Taken
from bellhop.deploy.pod_references import is_mounted
from bellhop.errors import (
    BellhopError,
    CloudDeniedError,
    ConflictError,
    TemporaryError,
    UnmetError,
)
from bellhop.rendering.references import may_be_elsewhere
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import Apply
from bellhop.state.record import Cluster, DeploymentStatus, Held, Inventory, Profile
from bellhop.state.table import Stored

_OF_ONE = (TemporaryError, CloudDeniedError, OvertimeError)
"""Errors that concern one object or release, and say nothing of the others."""


class ObjectResult(Struct, frozen=True):
    """What came of one object: how it is held from now on, if at all, and why it was refused.

    One that is Local for a cluster names it as its `guest`. One that is deleted and still exists
    `waits`.
    """

    key: Identity
    held: Held | None
    changed: bool = False
    refused: BellhopError | None = None
    guest: str = ""
    waits: UnmetError | None = None


class Claimed(Struct, frozen=True):
    """What came of claiming one object before anything is applied: the claim, or why not."""

    key: Identity
    taken: Taken | None = None
    refused: ConflictError | None = None


class Contest(Struct, frozen=True):
    """An object that is changed again as often as it is put back: by whom, and when it is next."""

    key: Identity
    by: str
    times: int
    pause: timedelta
    at: datetime


@dataclass
class ReconcileContext:
    """A profile on its way to a cluster; `outcome` is that of the last time, as it was found.

    `held` is what the inventory is to say, and `token` that of the inventory as we know it;
    `worker` names our lease of it, once it is acquired;
    `before` is what was held when we took the lease, `claimed` what was claimed since, ahead of
    applying any of it, `made_of` names what it is made of, and `read` is a digest of what templates
    were given to read. Of its `features` it is `at` one; at none before the first, and after the
    last. Of the threads that may be at it, one writes. Of the objects that have drifted those are
    `mending` that are put back now, each with how often in a row, and its version; `contests` have
    to wait for their turn. It is `in_turn` where it waited for what it comes after, if for any, and
    `paced` where it changes at its cluster's turn alone. What was changed and others may read, as
    any ConfigMap or Secret, is `written`, and what its workloads read and we may not is `unread`.
    What is Local is brought for the `guests`; what of it one of them cannot have is told in
    `lacking`, with the reason. It has `got_on` once there is less to do.
    The objects that are `desired` are found out once, for all features that bring any, each with
    which one does; with why what is built for one is `unbuilt`. A feature that is `unplanned`
    is named with the reason; those before it are carried out, and by continueOnError those after
    it. `unmet` names the features of which something has failed.
    A `live` one is only previewed, and compares what is held with the cluster, too.
    It `reads_elsewhere` if templates read an object of `mgmt/mgmt`; None until that is looked up.
    Objects that are deleted and still exist are `terminating`.
    `refuse_removal` raises what keeps a feature from removing what the profile has no longer.
    """

    message: Apply
    profile: Profile
    cluster: Cluster
    outcome: Stored[DeploymentStatus] | None
    held: dict[Identity, Held]
    token: str
    begun_at: datetime
    worker: str = ""
    before: Mapping[Identity, Held] = field(default_factory=dict)
    claimed: Mapping[Identity, Taken] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    written: list[Identity] = field(default_factory=list)
    unread: set[Identity] = field(default_factory=set)
    failed: list[BellhopError] = field(default_factory=list)
    under_way: bool = False
    unfinished: bool = False
    made_of: str = ""
    read: str = ""
    features: tuple[str, ...] = ()
    at: str = ""
    mending: dict[Identity, tuple[int, int]] = field(default_factory=dict)
    contests: list[Contest] = field(default_factory=list)
    in_turn: bool = False
    paced: bool = False
    guests: tuple[Cluster, ...] = ()
    lacking: list[BellhopError] = field(default_factory=list)
    terminating: list[BellhopError] = field(default_factory=list)
    got_on: bool = False
    reads_elsewhere: bool | None = None
    desired: tuple[Any, ...] | None = None
    unbuilt: BellhopError | None = None
    unplanned: dict[str, BellhopError] = field(default_factory=dict)
    unmet: set[str] = field(default_factory=set)
    refuse_removal: Callable[[], None] = lambda: None
    live: bool = False

    @cached_property
    def wanted(self) -> bool:
        """Say whether the cluster is to have the profile, and not to lose it.

        It is asked for each object, and a profile may have the names of a whole fleet.
        """
        return self.cluster.key in self.profile.destinations

    @property
    def only_hosts(self) -> bool:
        """Say whether all that the cluster has, or had, of the profile is there for others."""
        return self.profile.only_hosts(self.cluster.key)

    @property
    def dry(self) -> bool:
        """Say whether it is only to be told what would be done; what holds nothing may just go."""
        return self.profile.sync == "DryRun" and (self.wanted or bool(self.held))

    @property
    def watches(self) -> bool:
        """Say whether what others change of it in the cluster is to be put back."""
        return self.wanted and watches(self.profile)

    @property
    def given_up(self) -> bool:
        """Say whether it failed as often as its profile allows, made of what it is made of now."""
        most, old = self.profile.rollout.most_failures, self.outcome.value if self.outcome else None
        return old is not None and 0 < most <= old.counted and old.made_of == self.made_of

    @property
    def reads(self) -> bool:
        """Say whether it is made of objects of which nobody may tell when they change."""
        elsewhere = self.reads_elsewhere
        if elsewhere is None:
            elsewhere = any(map(may_be_elsewhere, self.profile.reads))
        remote = any(each.address for each in self.profile.reads)
        return self.dry or self.profile.rollout.reloads or elsewhere or remote

    def take_back(self, keys: Iterable[Identity]) -> None:
        """Hold objects as before the lease, since nothing was begun of what was planned for them.

        What an earlier try may have applied stays unsure.
        """
        for key in keys:
            self.held.pop(key, None)
            if key in self.before:
                self.held[key] = self.before[key]

    def note(self, upshot: ObjectResult) -> None:
        """Note what came of one object."""
        if upshot.held:
            self.held[upshot.key] = upshot.held
        else:
            self.held.pop(upshot.key, None)
        if upshot.changed and (self.cluster.key == MANAGEMENT or is_mounted(upshot.key)):
            self.written.append(upshot.key)
        if upshot.changed:
            self.changed.append(f"{upshot.key.kind} {upshot.key.name}")
        if upshot.waits:
            self.terminating.append(upshot.waits)
        self.got_on = self.got_on or (upshot.changed and not upshot.refused)
        if upshot.refused and upshot.guest:
            self.lacking.append(told(upshot.guest, upshot.refused))
        elif upshot.refused:
            self.failed.append(upshot.refused)
            self.unmet.add(self.at)


def ends(profile: Profile, error: BellhopError) -> bool:
    """Say whether a profile goes no further once one of its objects has failed so."""
    if isinstance(error, ConflictError):
        return not profile.continue_on_conflict
    return not profile.rollout.continues


def is_passed_over(profile: Profile, error: BellhopError) -> bool:
    """Say whether a profile goes on with others of its objects though one of them fails for now.

    An error of which more is known than that, such as a cluster that does not answer, fails them
    all.
    """
    return profile.rollout.continues and type(error) in _OF_ONE


def watches(profile: Profile) -> bool:
    """Say whether what others change of what a profile brought is to be put back."""
    return profile.sync == "ContinuousWithDriftDetection"


def is_done_once(
    profile: Profile, outcome: Stored[DeploymentStatus] | None, inventory: Inventory
) -> bool:
    """Say whether a cluster has had all that it was to have once, and is to keep the profile.

    By the syncMode OneTime nothing that changes after the first success counts, as in Sveltos. A
    cluster of which nothing is certain, as one that was made anew or is to be redeployed, has yet
    to have it; so has one that a withdrawal which was called off has left with nothing, and one
    that hosts what is Local for other clusters than before.
    """
    if profile.sync != "OneTime" or inventory.cluster not in profile.destinations:
        return False
    if outcome is None or outcome.value.phase != "Provisioned":
        return False
    held, same = inventory.held.values(), outcome.value.guests == mark(profile, inventory.cluster)
    return same and bool(held) and all(each.digest for each in held)
