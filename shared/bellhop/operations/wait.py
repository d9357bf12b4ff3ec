"""Conditions for which a pipeline waits: of a cluster, a profile, a trigger or a promotion.

After an apply the records still have the former status: a deployment counts only once its profile
was rendered from what is stored now, and once its clusters were notified since. Where the records
cannot show that, as after a change of labels only, empty queues do: work that follows from an apply
is in a queue before the apply ends. They are read in the order in which work passes through them,
and several times, as a cloud's counts are late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellhop.api.promotion import ClusterPromotion
from bellhop.core.digest import digest
from bellhop.diagnosis import cluster_status
from bellhop.diagnosis.calls import find_unanswered_here
from bellhop.diagnosis.profile_status import ProfileStatus
from bellhop.diagnosis.promotion_status import read_promotion
from bellhop.errors import MissingError
from bellhop.installation import Installation
from bellhop.operations.promotions import find_promotion, find_stage
from bellhop.rendering.inputs import written_mark
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.messages import CHARTS, INBOXES
from bellhop.state.profile import Profile
from bellhop.state.promotion import Release

_QUIET = 3
"""So often in a row the queues are found empty until nothing is taken to be under way."""


_HOLDERS = ("ConfigMap ", "Secret ")
"""The inputs of a release that are manifests begin so."""


class Quiet:
    """Whether the queues were empty so long that no earlier work is in flight."""

    def __init__(self, here: Installation) -> None:
        self._here = here
        self._times = 0

    def look(self) -> bool:
        """Read the queues again; return whether nothing is in flight, which stays true."""
        if self._times < _QUIET:
            self._times = self._times + 1 if self._empty() else 0
        return self._times >= _QUIET

    def _empty(self) -> bool:
        queues = self._here.queues
        # Resyncs are always under way in a large fleet, and an apply waits for none.
        names = [name for name in (*INBOXES, CHARTS) if INBOXES.get(name) != "sweep"]
        found = [queues[name].backlog() for name in names if name in queues]
        return bool(found) and not any(each.waiting or each.held for each in found)


def describe_cluster_gap(here: Installation, key: str) -> str:
    """Return why a cluster is not ready; empty if it answers, and was listed once.

    A cluster that was not reached within the last minute is called.
    """
    health = cluster_status.add_call(
        cluster_status.read_health(here, key), find_unanswered_here(here, [key]).get(key, "")
    )
    if health.state in {"Healthy", "Silent"}:
        return ""
    return f"it is {health.state}" + (f": {health.message}" if health.message else "")


def describe_profile_gap(
    here: Installation, statuses: Iterable[ProfileStatus], *, quiet: bool
) -> str:
    """Return why profiles are not deployed everywhere as desired; empty if all are.

    A profile without destinations is not deployed.
    """
    statuses = list(statuses)
    if not statuses:
        return "no profile is rendered yet"
    return next(filter(None, (_lacks(here, each, quiet=quiet) for each in statuses)), "")


def describe_promotion_gap(here: Installation, name: str, stage: str, *, quiet: bool) -> str:
    """Return why the newest release has not passed a stage, by default the last; empty if it has.

    Raises:
        MissingError: there is no such stage.
    """
    promotion = find_promotion(here, name)
    status = read_promotion(here, promotion)
    last = find_stage(promotion, status.state, stage or promotion.stages[-1].name)
    release = here.records.releases.head(name, status.state.latest)
    if release is None:
        return "it has no release yet"
    if not (quiet or _is_newest(here, promotion, release.value)):
        return "its newest release is not made yet"
    if last.passed >= status.state.latest and not last.skipped:
        return ""
    at = status.at
    place = f"release {at.state.release} is {at.state.phase} at stage '{at.state.name}'"
    return ": ".join(filter(None, (place, at.next)))


def _is_newest(here: Installation, promotion: ClusterPromotion, release: Release) -> bool:
    """Return whether a release was made of what is stored now."""
    spec = release.recipe.get("profileSpec")
    holders = {x: mark for x, mark in release.recipe.items() if x.startswith(_HOLDERS)}
    return bool(spec and digest(promotion.profile_spec).startswith(spec)) and all(
        _mark(here, each) == mark for each, mark in holders.items()
    )


def _lacks(here: Installation, status: ProfileStatus, *, quiet: bool) -> str:
    profile = status.profile
    name = f"profile '{profile.shown}'"
    if profile.error:
        return f"{name} cannot be rendered: {profile.error}"
    if not (quiet or profile.pinned or _is_current(here, profile)):
        return f"{name} is not rendered again yet"
    if not profile.told:
        return f"the clusters of {name} are not asked yet"
    if status.state != "Provisioned":
        return "; ".join([f"{name} is {status.state}", *_describe_deployment(status)])
    stale = [
        each.cluster
        for each in status.outcomes
        if each.cluster in profile.destinations and not (quiet or _is_of_revision(each, profile))
    ]
    return f"{name} is not deployed again yet in {', '.join(stale[:3])}" if stale else ""


def _describe_deployment(status: ProfileStatus) -> Iterator[str]:
    """Yield the message of the first cluster where it is not deployed."""
    for each in status.outcomes:
        if each.phase != "Provisioned" and each.message:
            yield f"{each.cluster}: {each.message}"
            return


def _is_current(here: Installation, profile: Profile) -> bool:
    """Return whether a profile was rendered from what is stored now."""
    return all(_mark(here, name) == mark for name, mark in profile.recipe.items())


def _mark(here: Installation, name: str) -> str:
    kind, _, place = name.partition(" ")
    namespace, _, rest = place.rpartition("/")
    try:
        kept = here.records.manifests.get(kind, namespace, rest)
    except MissingError:
        return ""
    return written_mark(kept.value) if kept else ""


def _is_of_revision(outcome: DeploymentStatus, profile: Profile) -> bool:
    if outcome.revision:
        return outcome.revision == profile.revision
    return profile.made_at is None or outcome.at >= profile.made_at
