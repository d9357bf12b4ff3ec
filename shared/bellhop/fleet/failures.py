"""All that is wrong now, gathered from where each stage leaves it, a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from bellhop.fleet import strays, survey
from bellhop.fleet.installation import Installation

_DECLARED = (
    "EventSource",
    "EventTrigger",
    "EventBasedAddOn",
    "ClusterProfile",
    "ConfigMap",
    "Secret",
)


class Failure(NamedTuple):
    """One thing that is wrong: what kind of thing, which one, since when, and the sentence."""

    what: str
    which: str
    at: datetime | None
    sentence: str


def failures(here: Installation) -> Iterator[Failure]:
    """Yield what is wrong, the widest causes first."""
    yield from _lost(here)
    yield from _clusters(here)
    yield from _declared(here)
    yield from _matches(here)
    yield from _profiles(here)
    yield from _findings(here)
    yield from _dead_letters(here)


def _clusters(here: Installation) -> Iterator[Failure]:
    catalog = here.catalogs.known()
    for key in catalog.clusters:
        health = here.records.health.get(key).value
        if health.state == "Down":
            yield Failure("cluster", key, health.swept_at, f"it is down: {health.message}")
        for gvk in catalog.kinds_in(key):
            strikes = here.records.strikes.get(key, gvk).value
            if strikes:
                yield Failure(
                    "deletion",
                    f"{gvk.kind} in {key}",
                    None,
                    "a sweep found suspiciously many gone; held until"
                    f" {here.settings.deletion_agreement} sweeps agree ({strikes} did)",
                )


def _declared(here: Installation) -> Iterator[Failure]:
    catalog = here.catalogs.known()
    for trigger in catalog.triggers.values():
        source = trigger.event_source_name
        if "{{" not in source and source not in catalog.sources:
            yield Failure(
                "trigger", trigger.name, None, f"there is no EventSource '{source}', which it names"
            )


def _lost(here: Installation) -> Iterator[Failure]:
    for kind in _DECLARED:
        for name, manifest in here.records.manifests.listed(kind):
            if manifest is None:
                shown = f"{kind} {name.removeprefix('/')}"
                sentence = "what was declared is lost; apply it again, or delete it"
                yield Failure("manifest", shown, None, sentence)


def _matches(here: Installation) -> Iterator[Failure]:
    for cluster in here.catalogs.known().clusters:
        for match in here.records.matches.of(cluster):
            if match.error:
                yield Failure(
                    "evaluation",
                    f"{match.source} on {survey.object_name(match.key)} in {cluster}",
                    None,
                    match.error,
                )


def _profiles(here: Installation) -> Iterator[Failure]:
    for standing in survey.standings(here):
        profile = standing.profile
        if profile.error:
            yield Failure("profile", profile.name, None, profile.error)
        for outcome in standing.outcomes:
            told = profile.error and outcome.message == profile.error
            if outcome.phase in {"Failed", "FailedNonRetriable"} and not told:
                tries = f" (failed {outcome.failures} times)" if outcome.failures > 1 else ""
                yield Failure(
                    "deployment",
                    f"{outcome.profile} to {outcome.cluster}",
                    outcome.at,
                    f"{outcome.message}{tries}",
                )


def _findings(here: Installation) -> Iterator[Failure]:
    strayed: Counter[str] = Counter()
    for cluster, key, finding in strays.findings(here):
        if finding.what == "stray":
            strayed[cluster] += 1
            continue
        sentence = (
            f"somebody made it in place of the one that '{finding.profile}' holds, and it stays;"
            f" remove it, or `bellhop redeploy {finding.profile}` to take it over"
        )
        which = f"{survey.object_name(key)} in {cluster}"
        yield Failure("foreign", which, finding.since, sentence)
    for cluster, number in strayed.items():
        sentence = (
            f"{number} of its objects carry Bellhop's marks, and no profile holds them;"
            " `bellhop show strays` lists them"
        )
        yield Failure("strays", cluster, None, sentence)


def _dead_letters(here: Installation) -> Iterator[Failure]:
    for stage, letters in here.dead.items():
        for letter in letters.list():
            yield Failure(
                "dead letter",
                f"{stage}/{letter.id}",
                letter.died_at,
                f"given up after {letter.attempts} attempts: {letter.reason}",
            )
