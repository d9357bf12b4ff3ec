"""Redeployment: applying profiles again, though no record says that anything changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.core.identity import profile_kind
from bellhop.errors import ConflictError, MissingError
from bellhop.installation import Installation
from bellhop.state.concurrency import until_written
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.messages import Apply

ReportProgress = Callable[[int], None]
"""A callback with the number of requested deployments."""


class RequestedProfile(NamedTuple):
    """A requested profile in a cluster; `busy` if a worker applies it already."""

    profile: str
    cluster: str
    busy: bool


def redeploy(
    here: Installation,
    profile: str = "",
    cluster: str = "",
    *,
    trigger: str = "",
    unchecked: bool = False,
    report_progress: ReportProgress = lambda _: None,
) -> Sequence[RequestedProfile]:
    """Mark all objects of a profile, of a trigger's profiles, in a cluster, or all as uncertain.

    They are requested again. A FailedNonRetriable profile is retried as often as at first. By
    `unchecked` a withdrawn profile is removed without its checks.

    Raises:
        MissingError: there is no such cluster, or the profile is in none.
        ConflictError: `unchecked` is for a profile that is not withdrawn.
    """
    known = here.catalogs.known().clusters
    if cluster and cluster not in known:
        raise MissingError(
            f"cannot redeploy to cluster '{cluster}': it is not registered;"
            " `bellhop get clusters` lists those that are"
        )
    asked: list[RequestedProfile] = []
    for key in [cluster] if cluster else known:
        for outcome in list(here.records.outcomes.of(key)):
            if profile not in ("", outcome.profile) or trigger not in ("", outcome.trigger):
                continue
            now = here.records.clock.now()
            if unchecked:
                _skip_checks(here, outcome)
            here.records.outcomes.recount(key, outcome.profile)
            doubted = here.records.inventories.doubt(key, outcome.profile, now)
            kept = None if doubted else here.records.inventories.get(key, outcome.profile)
            here.publisher.publish([Apply(outcome.trigger, outcome.source, outcome.profile, key)])
            asked.append(RequestedProfile(outcome.profile, key, bool(kept and kept.value.held)))
            report_progress(len(asked))
    where = f"cluster '{cluster}'" if cluster else "any cluster"
    if trigger and not asked:
        raise MissingError(
            f"cannot redeploy the profiles of trigger '{trigger}': none of them is in {where};"
            " `bellhop get clusterprofiles` lists those that are"
        )
    if profile and not asked:
        raise MissingError(
            f"cannot redeploy profile '{profile}': it is not in {where};"
            f" `bellhop get {profile_kind(profile).lower()}s` lists those that are"
        )
    return asked


@until_written("leave the checks of '{outcome.profile}' out")
def _skip_checks(here: Installation, outcome: DeploymentStatus) -> None:
    """Remove a withdrawn profile without its checks.

    Raises:
        ConflictError: it is not withdrawn, or only from some clusters.
        StaleError: other writers keep winning.
    """
    profiles, which = here.records.profiles, (outcome.trigger, outcome.source, outcome.profile)
    head = profiles.head(*which)
    if head is None:
        return
    if head.value.destinations or head.value.digest or head.value.error:
        raise ConflictError(
            f"cannot leave the checks of '{outcome.profile}' out: it is still wanted; take them"
            " out of what declares it"
        )
    # A profile that is removed contains nothing else: a lost payload is nothing to keep.
    profiles.put(replace(head.value, checked=(), checks=()), expect=head.token)
