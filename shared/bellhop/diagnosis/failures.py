"""All that is wrong now, gathered from where each stage leaves it: a sentence for each cause.

What follows from a cause is counted and not told: a destination that is down is one failure,
however many profiles wait for it, and so is a script that fails on a thousand objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from bellhop.adapters.local.certificates import life
from bellhop.api.kind_names import DECLARED
from bellhop.api.trigger import EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.core.generated_names import set_kind
from bellhop.core.sveltos_annotations import ADOPT
from bellhop.diagnosis import (
    access_gaps,
    classifiers,
    clocks,
    deployments,
    held_deletions,
    held_removals,
    orphans,
    overview,
)
from bellhop.diagnosis.failure import Failure, also_in, of_several
from bellhop.diagnosis.queues import Letters, dead_letters
from bellhop.installation.installation import Installation
from bellhop.installation.process import Ticking
from bellhop.ports.queue import DeadLetter
from bellhop.profiles import loops
from bellhop.registration import senders
from bellhop.registration.renewal import ends_at, next_at
from bellhop.state.record import Match, Selection

_YEAR = timedelta(days=365)
_OVERDUE = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)


def failures(
    here: Installation,
    silent: Mapping[str, str] | None = None,
    letters: Letters | None = None,
) -> Iterator[Failure]:
    """Yield what is wrong, the widest causes first.

    `silent` says what those clusters met that do not answer now, where somebody has called them;
    `letters` are the dead letters, for who has looked at them.
    """
    silent = silent or {}
    yield from _process(here)
    yield from _time(here)
    yield from _lost(here)
    yield from _authority(here)
    yield from _clusters(here, silent)
    yield from _certificates(here)
    yield from _senders(here)
    yield from _declared(here)
    yield from _scripts(here)
    yield from _matches(here)
    yield from _held(here)
    yield from _unseen(here)
    yield from deployments.failures(here, silent)
    yield from _notices(here)
    yield from _loops(here)
    yield from _findings(here)
    yield from _dead_letters(dead_letters(here) if letters is None else letters)


def _process(here: Installation) -> Iterator[Failure]:
    """Tell whether the process that does the work is there, and can."""
    if here.vitals is None:
        return
    if isinstance(here.vitals, Ticking):
        yield from _ticks(here, here.vitals.name)
        return
    pulse, now = here.records.pulses.get(), here.records.clock.now()
    at = pulse.at if pulse else None
    room = here.vitals.room
    if room.problem:
        cure = "; free some space, and all goes on by itself" if room.full else "; free some space"
        yield Failure("disk", str(room.folder), at if room.full else None, room.problem + cure)
    if not here.vitals.running:
        yield Failure(
            "serve",
            str(here.vitals.folder),
            at,
            "`bellhop serve` does not run: no event is received, evaluated or deployed; start it",
        )
    elif pulse and abs(now - pulse.at) > overview.PULSELESS and not room.full:
        yield Failure(
            "serve",
            str(here.vitals.folder),
            at,
            "`bellhop serve` runs and has written nothing since then: it is stopped, or cannot"
            " write; its log says why, and a restart loses nothing",
        )


def _time(here: Installation) -> Iterator[Failure]:
    """Tell that the clock of this machine is elsewhere, and what should have happened by now."""
    if found := clocks.wrong_clock(here):
        yield Failure("clock", "this machine", *found)
    for late in clocks.overdue(here):
        yield Failure("overdue", late.which, late.since, late.sentence)


def _ticks(here: Installation, name: str) -> Iterator[Failure]:
    """Tell whether the schedule of functions ticks, without which nothing is done later."""
    late = overview.lateness(here)
    if late:
        pulse = here.records.pulses.get()
        sentence = (
            f"{late}: resyncs, retries and renewals wait; see whether its schedule is switched on,"
            " and what its function logs (`bellhop logs --stage schedule`)"
        )
        yield Failure("schedule", name, pulse.at if pulse else None, sentence)


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
        due = next_at(cluster, now)
        ends = ends_at(cluster)
        if due and due > _NEVER and now - due > _OVERDUE:
            until = f", which lasts until {ends:%Y-%m-%d}" if ends else ""
            yield Failure(
                "certificate",
                f"forwarder of {key}",
                due,
                f"its token and certificate{until}, could not be renewed; Bellhop goes on"
                f" trying and logs why; `bellhop register cluster` renews them, too",
            )


def _senders(here: Installation) -> Iterator[Failure]:
    """Tell of outside senders that are refused: theirs are not the secrets that count."""
    for sender, refusals in senders.refused(here):
        if refusals.count >= overview.MANY:
            said = (
                f"{refusals.count} requests in its name were refused: they had another secret, a"
                " clock that differs by more than five minutes, or came twice; give it its present"
                f" secret, or a new one (`bellhop sender rotate {sender.cluster} {sender.name}`)"
            )
            which = f"{sender.name} of {sender.cluster}"
            yield Failure("sender", which, refusals.since, said, refusals.count)


def _clusters(here: Installation, silent: Mapping[str, str]) -> Iterator[Failure]:
    catalog = here.catalogs.known()
    for key in catalog.clusters:
        health = overview.health(here, key)
        down = health.message if health.state == "Down" else silent.get(key, "")
        if down:
            waiting = sum(
                overview.waits(each) or deployments.is_away(each)
                for each in here.records.outcomes.of(key)
            )
            for_it = f"; {waiting} of its profiles wait for it" if waiting else ""
            # Of one that was not called before, the last time that it answered is known.
            since = health.since if health.state == "Down" else health.swept_at
            yield Failure("cluster", key, since, f"it is down: {down}{for_it}")
        elif health.message:
            yield Failure("cluster", key, health.since, health.message)
        now, ends = here.records.clock.now(), health.ends_at
        if ends and ends - now < overview.ENDING:
            cure = f"`bellhop register cluster {key} --kubeconfig FILE` gives it others"
            yield Failure("credentials", key, None, f"{overview.ending(ends, now)}; {cure}")
        if said := overview.moved(here, catalog.clusters[key]):
            cure = "register it again: `bellhop register cluster`"
            yield Failure("cluster", key, None, f"{said}: no event arrives; {cure}")
        if said := overview.unsubscribed(here, key):
            yield Failure("messaging", key, None, said)
        for gvk in catalog.kinds_in(key):
            strikes = here.records.strikes.get(key, gvk).value
            if strikes:
                yield Failure(
                    "deletion",
                    f"{gvk.kind} in {key}",
                    None,
                    "a resync found suspiciously many deleted; held until"
                    f" {here.settings.deletion_agreement} resyncs agree ({strikes} did)",
                )


def _declared(here: Installation) -> Iterator[Failure]:
    catalog = here.catalogs.known()
    for trigger in catalog.triggers.values():
        source = trigger.event_source_name
        if "{{" not in source and source not in catalog.sources:
            yield Failure(
                "trigger", trigger.name, None, f"there is no EventSource '{source}', which it names"
            )
        yield from _selectors(trigger, catalog)
    yield from _health_checks(catalog)
    yield from _sets(catalog)
    yield from _labels(here)


def _labels(here: Installation) -> Iterator[Failure]:
    """Tell which labels classifiers cannot give, each once for all clusters."""
    causes: dict[tuple[str, str, str], list[str]] = {}
    for classifier, label, cluster, why in classifiers.refused(here):
        causes.setdefault((classifier, label, why), []).append(cluster)
    for (classifier, label, why), clusters in causes.items():
        said = f"it cannot give cluster '{clusters[0]}' the label '{label}': {why}"
        yield of_several("classifier", classifier, None, said, len(clusters), "clusters")


def _health_checks(catalog: Catalog) -> Iterator[Failure]:
    """Tell of HealthChecks that are not there: what they say nobody knows."""
    for check in catalog.checks.values():
        for name in check.health_checks:
            if name not in catalog.health_checks:
                said = f"there is no HealthCheck '{name}', which it names; apply it"
                yield Failure("clusterhealthcheck", check.name, None, said)


def _sets(catalog: Catalog) -> Iterator[Failure]:
    """Tell of sets that are not there, and of those with clusters that cannot be replaced."""
    named = [("trigger", each.name, each.cluster_sets) for each in catalog.triggers.values()]
    named += [("profile", each.rule, each.cluster_sets) for each in catalog.profiles.values()]
    for what, name, places in named:
        for place in places:
            if place not in catalog.sets:
                said = f"there is no {set_kind(place)} '{place}', which it names"
                yield Failure(what, name, None, said)
    for place, choice in catalog.choices.items():
        if choice.failing:
            said = (
                f"{', '.join(choice.failing)} of its clusters do not answer, and no other cluster"
                " can take their place: fix them, or have it select more clusters"
            )
            yield Failure(set_kind(place).lower(), place, None, said)


def _selectors(trigger: EventTrigger, catalog: Catalog) -> Iterator[Failure]:
    """Tell of the selectors of a trigger that select no cluster, where there are some."""
    source, destination = trigger.source_selector, trigger.destination_selector
    asked = {"sourceClusterSelector": source, "destinationClusterSelector": destination}
    labels = [each.labels for each in catalog.clusters.values()]
    for what, selector in asked.items():
        if selector is None or (selector.empty and selector is not source) or not labels:
            continue
        if selector.empty and trigger.cluster_sets:
            continue
        if not any(map(selector.matches, labels)):
            yield Failure(
                "trigger",
                trigger.name,
                None,
                f"its {what} '{selector}' selects none of the {len(labels)} clusters: compare it"
                " with their labels (`bellhop get clusters`), and set them with `bellhop label"
                " cluster`",
            )


def _lost(here: Installation) -> Iterator[Failure]:
    for kind in DECLARED:
        for name, manifest in here.records.manifests.listed(kind):
            if manifest is None:
                shown = f"{kind} {name.removeprefix('/')}"
                sentence = "what was declared is lost; apply it again, or delete it"
                yield Failure("manifest", shown, None, sentence)


def _scripts(here: Installation) -> Iterator[Failure]:
    for pace in overview.slow(here):
        yield Failure("script", pace.source, pace.since, overview.slowness(here, pace))


def _matches(here: Installation) -> Iterator[Failure]:
    """Tell of scripts and rules that fail, each once for all objects and clusters."""
    causes: dict[tuple[str, str], list[Match]] = {}
    selecting: dict[tuple[str, str], list[Selection]] = {}
    for cluster in here.catalogs.known().clusters:
        for match in here.records.matches.of(cluster):
            if match.error:
                causes.setdefault((match.source, match.error), []).append(match)
        for selection in here.records.selections.heads(cluster):
            for said in filter(None, (selection.error, selection.left_out)):
                selecting.setdefault((selection.source, said), []).append(selection)
    for (source, error), matches in causes.items():
        clusters = tuple(dict.fromkeys(each.cluster for each in matches))
        which = f"{source} on {overview.object_name(matches[0].key)} in {clusters[0]}"
        said = f"{error}{also_in(clusters)}"
        yield of_several("evaluation", which, _begun(matches), said, len(matches), "objects")
    for (source, error), selections in selecting.items():
        clusters = tuple(each.cluster for each in selections)
        said = f"{error}{also_in(clusters)}"
        yield Failure(
            "evaluation", f"{source} in {clusters[0]}", _begun(selections), said, len(clusters)
        )


def _begun(failed: Iterable[Match | Selection]) -> datetime | None:
    """Return since when something fails, as far as that was noted."""
    return min((each.failed_at for each in failed if each.failed_at), default=None)


def _held(here: Installation) -> Iterator[Failure]:
    """Tell of what is held, once it is known that too much ended."""
    for each in held_deletions.held(here):
        if each.hold.held_at:
            which = f"{each.hold.source} in {each.hold.cluster}"
            sentence = f"{each.why}; held are {each.named}"
            yield Failure("held", which, each.hold.since, sentence, each.number)
    for change in held_removals.held_changes(here):
        which = f"change {change.name}"
        yield Failure("held", which, change.since, change.why, change.addons)


def _unseen(here: Installation) -> Iterator[Failure]:
    """Tell what tenants' sources do not match since their accounts may not see it."""
    catalog = here.catalogs.known()
    for cluster in catalog.clusters:
        for name in catalog.sources_in(cluster):
            for sentence in access_gaps.lacks(here.records, cluster, catalog.sources[name]):
                yield Failure("rights", f"{name} in {cluster}", None, sentence)


def _notices(here: Installation) -> Iterator[Failure]:
    """Tell of notices that could not be sent, each once for all clusters."""
    catalog = here.catalogs.known()
    causes: dict[tuple[str, str, str], list[str]] = {}
    if not catalog.checks:
        return
    for cluster, check, found in here.records.conditions.checked(iter(catalog.clusters)):
        for each in found.notices:
            if each.error and each.told != found.healthy:
                causes.setdefault((check, each.name, each.error), []).append(cluster)
    for (check, name, error), clusters in causes.items():
        which = f"{name} of {check} about {clusters[0]}"
        yield of_several("notice", which, None, error, len(clusters), "clusters")


def _loops(here: Installation) -> Iterator[Failure]:
    """Tell which triggers feed themselves, each once for all that it makes."""
    catalog, now = here.catalogs.known(), here.records.clock.now()
    for name, trigger in catalog.triggers.items():
        found = [
            each
            for each in here.records.profiles.heads(name)
            if loops.is_slowed(each, catalog.declared, now)
        ]
        if not found:
            continue
        worst = max(found, key=lambda each: each.turns)
        source = catalog.source_of(trigger, worst.cluster)
        turns = loops.led_by([worst], catalog.declared, now)
        sentence = loops.told(name, source.name if source else "", turns, now)
        which = f"{name} for {worst.object or 'all'} in {worst.cluster}"
        yield of_several("loop", which, worst.turning, sentence, len(found), "profiles")


def _findings(here: Installation) -> Iterator[Failure]:
    strayed: dict[str, list[datetime]] = {}
    for cluster, key, finding in orphans.findings(here):
        if finding.what == "stray":
            strayed.setdefault(cluster, []).append(finding.since)
            continue
        sentence = (
            f"somebody made it in place of the one that '{finding.profile}' holds, and it stays;"
            f' remove it, or annotate the policy\'s object with {ADOPT}: "true" to take it over;'
            f" then `bellhop redeploy {finding.profile}`"
        )
        which = f"{overview.object_name(key)} in {cluster}"
        yield Failure("foreign", which, finding.since, sentence)
    for cluster, since in strayed.items():
        sentence = (
            f"{len(since)} of its objects have Bellhop's labels, and no profile owns them;"
            " `bellhop show orphans` lists them"
        )
        yield Failure("orphans", cluster, min(since), sentence)


def _dead_letters(found: Letters) -> Iterator[Failure]:
    for inbox, letters in found.items():
        causes: dict[str, list[DeadLetter]] = {}
        for letter in letters:
            causes.setdefault(letter.reason, []).append(letter)
        for reason, several in causes.items():
            first = several[0]
            sentence = f"dead-lettered after {first.attempts} attempts: {reason}"
            yield of_several(
                "dead letter",
                f"{inbox}/{first.id}",
                first.died_at,
                sentence,
                len(several),
                "messages",
            )
