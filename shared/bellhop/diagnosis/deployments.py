"""Failures of profiles, which cannot be rendered or not be deployed in clusters.

One cause is one failure, in however many clusters it is met: what triggers generate for other
objects, and what messages name, differs from cluster to cluster, and is no other cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis import overview
from bellhop.diagnosis.failure import Failure, also_in, of_several
from bellhop.diagnosis.names import Titled
from bellhop.errors import AwayError, UnmetError, UnreachableError, WaitingError
from bellhop.installation.installation import Installation
from bellhop.state.record import DeploymentStatus, Profile

_MANY_CHECKS = 6
_QUOTED = re.compile(r"'[^']*'")


def failures(here: Installation, silent: Mapping[str, str]) -> Iterator[Failure]:
    """Yield what is wrong with profiles; `silent` are the clusters that do not answer now."""
    down = {
        key
        for key in here.catalogs.known().clusters
        if key in silent or overview.health(here, key).away
    }
    broken: dict[tuple[str, str], list[Profile]] = {}
    causes: dict[tuple[str, str, str], list[DeploymentStatus]] = {}
    for status in overview.statuses(here):
        profile = status.profile
        if profile.error:
            rule = profile.trigger or profile.name
            name = ObjectKey.parse(profile.object).name if profile.object else ""
            said = _masked(profile.error, profile.trigger, profile.cluster, name)
            broken.setdefault((rule, said), []).append(profile)
        for outcome in status.outcomes:
            told = profile.error and outcome.message == profile.error
            # A reason that keeps them all is reported once, with the cluster.
            away = outcome.cluster in down and is_away(outcome)
            if not (told or away or overview.waits(outcome)) and _counts(outcome):
                # Of one trigger's profiles that fail in one cluster, the objects' names differ.
                # And what is waited for is the same in all clusters, as a rule.
                where = "" if outcome.reason == WaitingError.code else outcome.cluster
                cause = outcome.trigger or outcome.profile, where, outcome.reason
                causes.setdefault(cause, []).append(outcome)
    yield from map(_rendering, broken.values())
    titled = Titled(here)
    yield from (_deploying(each, titled) for each in _merged(causes))


def is_away(outcome: DeploymentStatus) -> bool:
    """Say whether a profile failed for nothing but that its cluster did not answer."""
    return outcome.reason in {AwayError.code, UnreachableError.code}


def _counts(outcome: DeploymentStatus) -> bool:
    """Say whether an outcome is a failure: a check is, once it has not passed for a minute or so.

    Most checks need some time.
    """
    if outcome.reason == UnmetError.code and outcome.failures >= _MANY_CHECKS:
        return True
    return outcome.reason == WaitingError.code or outcome.phase.startswith("Failed")


def _merged(
    causes: Mapping[tuple[str, str, str], list[DeploymentStatus]],
) -> Iterator[list[DeploymentStatus]]:
    """Yield the outcomes of each cause, those of clusters that say the same together."""
    merged: dict[tuple[str, ...], list[DeploymentStatus]] = {}
    for (rule, where, reason), outcomes in causes.items():
        first = outcomes[0]
        said = _masked(first.message, first.trigger, where) if where else ""
        merged.setdefault((rule, reason, said), []).extend(outcomes)
    yield from merged.values()


def _masked(said: str, trigger: str, *names: str) -> str:
    """Return a message without what differs between clusters and a trigger's objects."""
    said = _QUOTED.sub("", said) if trigger else said
    for name in filter(None, names):
        said = said.replace(name, "")
    return said


def _rendering(profiles: Sequence[Profile]) -> Failure:
    """Return the failure of profiles that cannot be rendered for one reason."""
    first = profiles[0]
    what, which = "profile", first.shown
    if first.trigger:
        event = overview.object_name(first.object) or "all objects"
        what, which = "trigger", f"{first.trigger} for {event} in {first.cluster}"
    since = min((each.failed_at for each in profiles if each.failed_at), default=None)
    clusters = list(dict.fromkeys(each.cluster for each in profiles))
    several = f"{first.error}{also_in(clusters)}"
    return of_several(what, which, since, several, len(profiles), "profiles")


def _deploying(outcomes: Sequence[DeploymentStatus], titled: Titled) -> Failure:
    """Return the failure of deployments that failed, or wait, for one reason."""
    first = outcomes[0]
    waits = first.reason == WaitingError.code
    tried = "asked" if first.reason == UnmetError.code else "failed"
    tries = f" ({tried} {first.failures} times)" if first.failures > 1 and not waits else ""
    tries += overview.next_try(first)
    clusters = list(dict.fromkeys(each.cluster for each in outcomes))
    which = f"{titled.shown(first.profile)} to {first.cluster}"
    sentence = f"{first.message}{tries}{'' if waits else also_in(clusters)}"
    what, ones = ("waiting", "deployments") if waits else ("deployment", "profiles")
    # One profile of each cluster is counted by its clusters.
    number = len(outcomes)
    alike = number if waits or number > len(clusters) else 1
    failure = of_several(what, which, None, sentence, alike, ones)
    return failure._replace(at=min(each.begun_at for each in outcomes), several=number)
