"""Status of ClusterProfiles, Profiles and RoleRequests, from deployment statuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from bellhop.configuration.conditions import (
    State,
    progress,
    retry,
    shorten,
    stall,
    succeed,
    to_seconds,
)
from bellhop.configuration.names import make_hash, refer_to_cluster
from bellhop.configuration.objects import (
    ClusterInfo,
    ClusterList,
    FailedCluster,
    FeatureStatus,
    ObjectReference,
    ProfileStatus,
    RoleRequestStatus,
)
from bellhop.core.identity import ROLE_REQUEST
from bellhop.diagnosis import profile_status
from bellhop.diagnosis.condition import name_clusters
from bellhop.installation import InstallationView
from bellhop.profiles.records import Place, place
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.deployment import DeploymentStatus, Phase
from bellhop.state.profile import Profile

SUSPENDED = "it is paused"
_RENDER_ERROR = "RenderError"


_READABLE = 50
"""Characters of a trigger's name with which the names of its profiles begin."""


class Deployed(NamedTuple):
    """A profile with the statuses of its clusters, each with a status or None before the first."""

    status: profile_status.ProfileStatus
    by_cluster: dict[str, DeploymentStatus]

    @property
    def clusters(self) -> Sequence[str]:
        """The clusters that it selects, and those that it is still to leave, in this order."""
        profile = self.status.profile
        leaving = (each for each in profile.leaving if not profile.only_hosts(each))
        return tuple(dict.fromkeys((*profile.matched, *leaving)))


def own_place(kind: str, namespace: str, name: str) -> Place:
    """Return the identity of a profile that a user wrote."""
    rule = f"{namespace}/{name}" if namespace else name
    return Place("", "", f"{ROLE_REQUEST}:{name}" if kind == ROLE_REQUEST else rule)


def find_generated(here: InstallationView, name: str) -> Place | None:
    """Return the identity of a generated profile by the name that people know.

    One whose trigger has no `profileNameFormat` is sought among the profiles of the triggers that
    its name begins with: a caller that knows the identity need not ask.
    """
    reserved = here.records.titles.get("ClusterProfile", name)
    if reserved:
        found = reserved.value
        return Place(found.trigger, found.cluster, found.profile)
    for trigger in here.catalogs.known().triggers:
        if name.startswith(trigger.replace(".", "-")[:_READABLE].rstrip("-")):
            for head in here.records.profiles.heads(trigger):
                if head.name == name:
                    return place(head)
    return None


def read_deployed(here: InstallationView, which: Place, cluster: str = "") -> Deployed | None:
    """Read a profile without its contents; None if there is none.

    With a `cluster` only the deployment statuses that its ClusterSummary shows are read.
    """
    kept = here.records.profiles.head(*which)
    found = here.records.profiles.with_leaving(kept.value) if kept else None
    return with_outcomes(here, found, cluster) if found else None


def with_outcomes(here: InstallationView, profile: Profile, only: str = "") -> Deployed:
    """Read the deployment statuses of a profile, which names the clusters that it is to leave."""
    found = {}
    for cluster in dict.fromkeys((*profile.destinations, *profile.leaving)):
        if only and cluster not in (only, MANAGEMENT):
            continue
        if outcome := here.records.outcomes.get(cluster, profile.name):
            found[cluster] = outcome.value
    return Deployed(profile_status.ProfileStatus(profile, list(found.values())), found)


def make_profile_status(here: InstallationView, which: Place) -> tuple[ProfileStatus, State] | None:
    """Return the status of a profile and its state; None if there is no such profile."""
    found = read_deployed(here, which)
    if found is None:
        return _describe_unrendered(here, which)
    profile, by_cluster = found.status.profile, found.by_cluster
    known = {each: by_cluster[each] for each in profile.matched if each in by_cluster}
    updated = [each for each, status in known.items() if status.phase == "Provisioned"]
    failed = [each for each, status in known.items() if _has_failed(status)]
    updating = [each for each in profile.matched if each not in {*updated, *failed}]
    if profile.rollout.is_gradual:
        state = here.records.rotas.get(which)
        at_work = state.value.at_work if state else ()
        updating = [each for each in updating if each in at_work]
    status = ProfileStatus(
        matching_clusters=_refer(profile.matched),
        updating_clusters=_list_clusters(profile.digest, updating),
        updated_clusters=_list_clusters(profile.digest, updated),
        failed_clusters=tuple(
            FailedCluster(
                cluster_ref=refer_to_cluster(each),
                failure_message=shorten(known[each].message or known[each].reason),
                last_failure_time=to_seconds(known[each].at),
            )
            for each in failed
        ),
        reconciliation_suspended=profile.paused,
        suspension_reason=SUSPENDED if profile.paused else "",
    )
    return status, describe_state(found.status)


def make_request_status(
    here: InstallationView, which: Place
) -> tuple[RoleRequestStatus, State] | None:
    """Return the status of a RoleRequest and its state; None if there is no such request."""
    found = read_deployed(here, which)
    if found is None:
        return None
    profile = found.status.profile
    status = RoleRequestStatus(
        matching_clusters=_refer(profile.matched),
        cluster_info=tuple(
            ClusterInfo(
                cluster=refer_to_cluster(each),
                hash=make_hash(profile.digest),
                status=feature_phase(found.by_cluster[each].phase),
                failure_message=failure_of(found.by_cluster[each]),
            )
            for each in found.clusters
            if each in found.by_cluster
        ),
        failure_message=shorten(profile.error),
    )
    return status, describe_state(found.status)


def describe_state(status: profile_status.ProfileStatus) -> State:
    """Return the state of a profile: its worst cluster counts."""
    profile, state = status.profile, status.state
    if profile.error:
        return stall(profile.error_code or _RENDER_ERROR, profile.error, profile.failed_at)
    failing = [each for each in status.outcomes if each.phase == state]
    since = min((each.begun_at for each in failing), default=profile.revised_at)
    reason = next((each.reason for each in failing if each.reason), state)
    if state == "FailedNonRetriable":
        return stall(reason, _join(failing), since)
    if state == "Failed":
        return retry(reason, _join(failing), since)
    if state == "NoClusters":
        return succeed(state, "it selects no cluster", profile.revised_at)
    clusters = len(profile.matched)
    if state == "Provisioned" and profile.pinned and not profile.trigger:
        return stall("RolledBack", _describe_rollback(profile), profile.made_at)
    if state in ("Provisioned", "DryRun"):
        begun = max((each.begun_at for each in failing), default=profile.revised_at)
        dry = "a dry run: " if state == "DryRun" else ""
        return succeed(state, f"{dry}{_count(len(failing), clusters)}", begun)
    return progress(reason, _join(failing) or _count(status.provisioned, clusters), since)


def _describe_rollback(profile: Profile) -> str:
    """Return the message of a profile that is deployed, but not as its object says."""
    return (
        f"rolled back to revision {profile.number}: the spec is in force after"
        f" `bellhop rollback {profile.shown} --end`"
    )


def _count(number: int, clusters: int) -> str:
    return f"{number} of {clusters} cluster{'' if clusters == 1 else 's'}"


def feature_phase(phase: Phase) -> FeatureStatus:
    """Return the status of a feature by the phase: a dry run provisions nothing."""
    return "Provisioning" if phase == "DryRun" else phase


def failure_of(status: DeploymentStatus) -> str:
    """Return the message of a deployment that is not as desired."""
    return "" if status.phase == "Provisioned" else shorten(status.message)


def latest(times: Iterable[datetime | None]) -> datetime | None:
    """Return the latest of times, as objects have it; None without any."""
    found = max(filter(None, times), default=None)
    return to_seconds(found) if found else None


def _describe_unrendered(
    here: InstallationView, which: Place
) -> tuple[ProfileStatus, State] | None:
    """Return the status of a manifest that is not rendered yet."""
    catalog = here.catalogs.known()
    declared = None if which.trigger else catalog.profiles.get(which.name)
    if declared is None:
        return None
    matched = () if declared.paused else catalog.profile_destinations(declared)
    status = ProfileStatus(
        matching_clusters=_refer(matched),
        reconciliation_suspended=declared.paused,
        suspension_reason=SUSPENDED if declared.paused else "",
    )
    if declared.paused:
        return status, State("Unknown", "Paused", SUSPENDED)
    return status, progress("Provisioning", "it is rendered next")


def _has_failed(status: DeploymentStatus) -> bool:
    return status.phase.startswith("Failed")


def _join(statuses: Sequence[DeploymentStatus]) -> str:
    """Return the first message, with its cluster or the number of clusters."""
    said = [each for each in statuses if each.message]
    if not said:
        return ""
    alike = [each.cluster for each in said if each.message == said[0].message]
    others = len(said) - len(alike)
    more = f" (and {others} other{'s' if others > 1 else ''})" if others else ""
    return f"{alike[0]}: {said[0].message}{name_clusters(alike)}{more}"


def _list_clusters(revision: str, clusters: Sequence[str]) -> ClusterList | None:
    if not clusters:
        return None
    return ClusterList(hash=make_hash(revision), clusters=_refer(clusters))


def _refer(clusters: Iterable[str]) -> tuple[ObjectReference, ...]:
    return tuple(map(refer_to_cluster, clusters))
