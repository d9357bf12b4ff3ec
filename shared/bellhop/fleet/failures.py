"""All that is wrong now, gathered from where each stage leaves it, a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bellhop.adapters.local.certificates import life
from bellhop.fleet import overview, strays
from bellhop.fleet.installation import Installation
from bellhop.fleet.renewal import ends_at, next_at

_YEAR = timedelta(days=365)
_OVERDUE = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)

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
    yield from _authority(here)
    yield from _clusters(here)
    yield from _certificates(here)
    yield from _declared(here)
    yield from _scripts(here)
    yield from _matches(here)
    yield from _profiles(here)
    yield from _findings(here)
    yield from _dead_letters(here)


def _authority(here: Installation) -> Iterator[Failure]:
    if not here.inbound.ca:
        return
    _, ends = life(here.inbound.ca.encode())
    if ends - here.records.clock.now() < _YEAR:
        yield Failure(
            "certificate",
            "authority of the listener",
            None,
            f"it ends on {ends:%Y-%m-%d}, and with it all that is sent to Bellhop; stop"
            " `bellhop serve`, move 'tls/authority.json' out of its state folder, start it, and"
            " register every cluster again",
        )


def _certificates(here: Installation) -> Iterator[Failure]:
    now = here.records.clock.now()
    for key, cluster in here.catalogs.known().clusters.items():
        due = next_at(cluster)
        ends = ends_at(cluster)
        if due and due > _NEVER and now - due > _OVERDUE:
            until = f", which lasts until {ends:%Y-%m-%d}" if ends else ""
            yield Failure(
                "certificate",
                f"forwarder of {key}",
                due,
                f"its token and certificate{until}, could not be renewed; `bellhop serve` goes on"
                f" trying and logs why; `bellhop register cluster` renews them, too",
            )


def _clusters(here: Installation) -> Iterator[Failure]:
    catalog = here.catalogs.known()
    for key in catalog.clusters:
        health = overview.health(here, key)
        if health.state == "Down":
            waiting = sum(map(overview.waits, here.records.outcomes.of(key)))
            for_it = f"; {waiting} of its profiles wait for it" if waiting else ""
            yield Failure("cluster", key, health.swept_at, f"it is down: {health.message}{for_it}")
        elif health.message:
            yield Failure("cluster", key, health.swept_at, health.message)
        refused = overview.refused(here, key)
        if refused:
            yield Failure("sender", key, None, refused)
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


def _scripts(here: Installation) -> Iterator[Failure]:
    for pace in overview.slow(here):
        yield Failure("script", pace.source, pace.since, overview.slowness(here, pace))


def _matches(here: Installation) -> Iterator[Failure]:
    for cluster in here.catalogs.known().clusters:
        for match in here.records.matches.of(cluster):
            if match.error:
                yield Failure(
                    "evaluation",
                    f"{match.source} on {overview.object_name(match.key)} in {cluster}",
                    None,
                    match.error,
                )


def _profiles(here: Installation) -> Iterator[Failure]:
    for status in overview.statuses(here):
        profile = status.profile
        if profile.error:
            yield Failure("profile", profile.name, None, profile.error)
        for outcome in status.outcomes:
            told = profile.error and outcome.message == profile.error
            # What keeps them all is told once, with the cluster.
            told = told or overview.waits(outcome)
            if outcome.phase in {"Failed", "FailedNonRetriable"} and not told:
                tries = f" (failed {outcome.failures} times)" if outcome.failures > 1 else ""
                tries += overview.next_try(outcome)
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
        which = f"{overview.object_name(key)} in {cluster}"
        yield Failure("foreign", which, finding.since, sentence)
    for cluster, number in strayed.items():
        sentence = (
            f"{number} of its objects carry Bellhop's marks, and no profile holds them;"
            " `bellhop show strays` lists them"
        )
        yield Failure("strays", cluster, None, sentence)


def _dead_letters(here: Installation) -> Iterator[Failure]:
    for inbox, letters in here.dead.items():
        for letter in letters.list():
            yield Failure(
                "dead letter",
                f"{inbox}/{letter.id}",
                letter.died_at,
                f"given up after {letter.attempts} attempts: {letter.reason}",
            )
