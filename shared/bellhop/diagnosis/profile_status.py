"""Status of profiles: what each deployed, and why one cannot be rendered or deployed."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from datetime import UTC

from msgspec import Struct

from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis.cluster_status import read_health
from bellhop.diagnosis.condition import Condition, count_alike, failure, group, name_clusters
from bellhop.diagnosis.names import ProfileNames, object_name
from bellhop.errors import AwayError, PausedError, UnmetError, UnreachableError, WaitingError
from bellhop.installation import Installation
from bellhop.profiles.records import place
from bellhop.state.deployment import DeploymentStatus, Ended
from bellhop.state.profile import Profile

ProfileKey = tuple[str, str, str]
"""A profile's trigger, source cluster and name."""


class ProfileStatus(Struct, frozen=True):
    """A profile with its deployment statuses."""

    profile: Profile
    outcomes: Sequence[DeploymentStatus]

    @property
    def provisioned(self) -> int:
        """The number of destinations as desired."""
        good = {each.cluster for each in self.outcomes if each.phase == "Provisioned"}
        return len(good.intersection(self.profile.destinations))

    @property
    def removing(self) -> bool:
        """Whether it has no destinations any more, and clusters still have something of it."""
        return bool(self.profile.leaving) and not self.profile.destinations

    @property
    def state(self) -> str:
        """The status of the whole: the worst counts."""
        if self.removing:
            return "Removing"
        phases = {each.phase for each in self.outcomes}
        for phase in ("FailedNonRetriable", "Failed"):
            if phase in phases:
                return phase
        if self.profile.error:
            return "FailedNonRetriable"
        if not self.profile.destinations:
            return "NoClusters"
        if "DryRun" in phases:
            return "DryRun"
        everywhere = self.provisioned == len(self.profile.destinations)
        return "Provisioned" if everywhere and not self.profile.leaving else "Provisioning"


def describe_rollout(here: Installation, status: ProfileStatus) -> str:
    """Return the progress of a profile with maxUpdate; empty for any other."""
    profile = status.profile
    at_a_time = profile.rollout.places(len(profile.matched))
    if not at_a_time or not profile.matched:
        return ""
    every, kept = set(profile.matched), here.records.rotas.get(place(profile))
    mine = [x for x in status.outcomes if x.cluster in every and x.revision == profile.revision]
    updated = {each.cluster for each in mine if each.phase == "Provisioned"}
    failed = {each.cluster for each in mine if each.phase.startswith("Failed")}
    updating = every.intersection(kept.value.at_work if kept else ()) - updated - failed
    waiting = len(every) - len(updated) - len(failed) - len(updating)
    return (
        f"{len(updated)} updated, {len(updating)} updating, {len(failed)} failed, {waiting}"
        f" waiting; {at_a_time} at a time"
    )


def read_outcomes(here: Installation) -> dict[ProfileKey, list[DeploymentStatus]]:
    """Return the deployment statuses of all clusters by profile."""
    found: dict[ProfileKey, list[DeploymentStatus]] = {}
    for cluster in here.catalogs.known().clusters:
        for outcome in here.records.outcomes.of(cluster):
            found.setdefault((outcome.trigger, outcome.source, outcome.profile), []).append(outcome)
    return found


def read_statuses(
    here: Installation,
    trigger: str | None = None,
    known: Mapping[ProfileKey, Sequence[DeploymentStatus]] | None = None,
) -> Iterator[ProfileStatus]:
    """Yield every profile, users' own first, or those of one trigger; by trigger and name.

    A deleted trigger counts while a cluster still holds something of it. `known` are the outcomes
    of a caller that asks more than once.
    """
    known = read_outcomes(here) if known is None else known
    triggers = {who[0] for who in known} | set(here.catalogs.known().triggers) | {""}
    for name in sorted(triggers) if trigger is None else [trigger]:
        for profile in here.records.profiles.of(name):
            who = (profile.trigger, profile.cluster, profile.name)
            yield ProfileStatus(profile, known.get(who, ()))


def waits_for_cluster(outcome: DeploymentStatus) -> bool:
    """Return whether a profile only waits until its cluster answers, or is no longer paused."""
    away = outcome.reason == AwayError.code and outcome.retry_at is None
    return away or outcome.reason == PausedError.code


def list_features(outcome: DeploymentStatus) -> tuple[Ended, ...]:
    """Return the status of each feature; earlier versions recorded that of the whole."""
    whole = Ended("Resources", outcome.phase, outcome.reason, outcome.message, outcome.retry_at)
    return outcome.features or (whole,)


def describe_next_try(outcome: DeploymentStatus | Ended) -> str:
    """Return the time of the next attempt after a failure; empty if there is none.

    A wait for a window has it in its message. A FailedNonRetriable profile is tried when an input
    changes; besides that it is checked at long intervals.
    """
    if outcome.retry_at is None or outcome.reason == PausedError.code:
        return ""
    at = f"{outcome.retry_at.astimezone(UTC):%H:%M:%S} UTC"
    if outcome.phase == "FailedNonRetriable":
        return f"; it is tried when an input changes, and checked again at {at}"
    return f"; next try at {at}"


_MANY_CHECKS = 6
_QUOTED = re.compile(r"'[^']*'")


def list_conditions(here: Installation, unanswered: Mapping[str, str]) -> Iterator[Condition]:
    """Yield the profiles that cannot be rendered, and those that cannot be deployed.

    One cause is one condition, in however many clusters it occurs; names of other objects and
    clusters in its message are not another cause. `unanswered` are clusters that do not answer.
    """
    clusters = here.catalogs.known().clusters
    down = {key for key in clusters if key in unanswered or read_health(here, key).away}
    statuses = list(read_statuses(here))
    broken = (each.profile for each in statuses if each.profile.error)
    yield from map(_describe_render_error, group((_render_cause(each), each) for each in broken))
    failed = (
        (_deployment_cause(each), each)
        for status in statuses
        for each in status.outcomes
        if _is_failure(each, status.profile, down)
    )
    names = ProfileNames(here)
    # Clusters in which the first message of a cause is the same are one condition.
    for several in group((_masked_cause(found[0]), found) for found in group(failed)):
        yield _describe_deployment([each for found in several for each in found], names)


def _render_cause(profile: Profile) -> Hashable:
    name = ObjectKey.parse(profile.object).name if profile.object else ""
    masked = _mask(profile.error, profile.trigger, profile.cluster, name)
    return profile.trigger or profile.name, masked


def _deployment_cause(outcome: DeploymentStatus) -> Hashable:
    """Return the rule, cluster and reason: of one trigger's profiles the objects' names differ."""
    return outcome.trigger or outcome.profile, _place_of(outcome), outcome.reason


def _masked_cause(outcome: DeploymentStatus) -> Hashable:
    where = _place_of(outcome)
    masked = _mask(outcome.message, outcome.trigger, where) if where else ""
    return outcome.trigger or outcome.profile, outcome.reason, masked


def _place_of(outcome: DeploymentStatus) -> str:
    """Return the cluster; none where a profile waits, as it does for the same in all clusters."""
    return "" if outcome.reason == WaitingError.code else outcome.cluster


def failed_unreachable(outcome: DeploymentStatus) -> bool:
    return outcome.reason in {AwayError.code, UnreachableError.code}


def _is_failure(outcome: DeploymentStatus, profile: Profile, down: Collection[str]) -> bool:
    """Return whether an outcome is a failure of its own.

    A profile's render error and a cluster that is down have a condition of their own. A check needs
    some time, and is a failure after several attempts.
    """
    if profile.error and outcome.message == profile.error:
        return False
    if (outcome.cluster in down and failed_unreachable(outcome)) or waits_for_cluster(outcome):
        return False
    if outcome.reason == UnmetError.code and outcome.failures >= _MANY_CHECKS:
        return True
    return outcome.reason == WaitingError.code or outcome.phase.startswith("Failed")


def _mask(said: str, trigger: str, *names: str) -> str:
    """Return a message without what differs between clusters and a trigger's objects."""
    said = _QUOTED.sub("", said) if trigger else said
    for name in filter(None, names):
        said = said.replace(name, "")
    return said


def _describe_render_error(profiles: Sequence[Profile]) -> Condition:
    first, number = profiles[0], len(profiles)
    kind, about = "profile", first.shown
    if first.trigger:
        event = object_name(first.object) or "all objects"
        kind, about = "trigger", f"{first.trigger} for {event} in {first.cluster}"
    since = min((each.failed_at for each in profiles if each.failed_at), default=None)
    clusters = list(dict.fromkeys(each.cluster for each in profiles))
    said = f"{first.error}{name_clusters(clusters)}{count_alike(number, 'profiles')}"
    return failure(kind, about, said, since=since, count=number)


def _describe_deployment(outcomes: Sequence[DeploymentStatus], names: ProfileNames) -> Condition:
    first, number = outcomes[0], len(outcomes)
    about = f"{names.shown(first.profile)} to {first.cluster}"
    since = min(each.begun_at for each in outcomes)
    said = f"{first.message}{_describe_tries(first)}{describe_next_try(first)}"
    if first.reason == WaitingError.code:
        said += count_alike(number, "deployments")
        return Condition("waiting", about, "waits", said, since=since, count=number)
    clusters = list(dict.fromkeys(each.cluster for each in outcomes))
    # One profile of each cluster is counted by its clusters.
    alike = count_alike(number if number > len(clusters) else 1, "profiles")
    said += f"{name_clusters(clusters)}{alike}"
    return failure("deployment", about, said, since=since, count=number)


def _describe_tries(outcome: DeploymentStatus) -> str:
    if outcome.failures <= 1 or outcome.reason == WaitingError.code:
        return ""
    tried = "asked" if outcome.reason == UnmetError.code else "failed"
    return f" ({tried} {outcome.failures} times)"
