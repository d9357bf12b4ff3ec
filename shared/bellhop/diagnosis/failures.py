"""All conditions that are failures now: one for each cause, the widest causes first.

The effects of a cause are counted: a destination that is down is one failure, however many
profiles wait for it, and so is a script that fails on a thousand objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from bellhop.adapters.local.certificates import life
from bellhop.diagnosis import (
    configuration_status,
    declaration_status,
    held_clusters,
    held_deletions,
    orphans,
    profile_status,
    promotion_status,
    source_status,
    worker_status,
)
from bellhop.diagnosis.calls import Letters, list_dead_letters
from bellhop.diagnosis.cluster_status import (
    EXPIRY_NOTICE,
    REFUSAL_THRESHOLD,
    describe_address_change,
    describe_expiry,
    describe_subscription,
    read_health,
)
from bellhop.diagnosis.condition import Condition, count_alike, failure, group
from bellhop.installation import Installation
from bellhop.registration import senders
from bellhop.registration.renewal import find_expiry, find_next
from bellhop.state.cluster import Cluster

_YEAR = timedelta(days=365)
_OVERDUE = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)


def list_failures(
    here: Installation,
    unanswered: Mapping[str, str] | None = None,
    letters: Letters | None = None,
) -> Iterator[Condition]:
    """Yield what is wrong, the widest causes first.

    `unanswered` has the errors of clusters that were called and do not answer now, `letters` the
    dead letters where the caller has read them.
    """
    unanswered = unanswered or {}
    yield from worker_status.list_conditions(here)
    yield from declaration_status.list_lost(here)
    yield from _check_authority(here)
    clusters = here.catalogs.known().clusters
    for key in clusters:
        yield from _check_cluster(here, key, unanswered.get(key, ""))
    for cluster in clusters.values():
        yield from _check_renewal(here, cluster)
    yield from _check_senders(here)
    yield from configuration_status.list_conditions(here, unanswered)
    yield from declaration_status.list_conditions(here)
    yield from source_status.list_conditions(here)
    yield from held_deletions.list_conditions(here)
    yield from held_clusters.list_conditions(here)
    yield from source_status.list_access_conditions(here)
    yield from profile_status.list_conditions(here, unanswered)
    yield from promotion_status.list_conditions(here)
    yield from promotion_status.list_withdrawals(here)
    yield from declaration_status.list_notices(here)
    yield from declaration_status.list_loops(here)
    yield from orphans.list_conditions(here)
    yield from _check_dead_letters(list_dead_letters(here) if letters is None else letters)


def _check_authority(here: Installation) -> Iterator[Condition]:
    if not here.inbound.ca:
        return
    _, ends = life(here.inbound.ca.encode())
    if ends - here.records.clock.now() < _YEAR:
        said = (
            f"it ends on {ends:%Y-%m-%d}, and with it all that is sent to Bellhop; stop"
            " `bellhop serve`, move 'tls/authority.json' out of its state folder, start it, and"
            " register every cluster again"
        )
        yield failure("certificate", "authority of the listener", said)


def _check_cluster(here: Installation, key: str, unanswered: str) -> Iterator[Condition]:
    catalog, now = here.catalogs.known(), here.records.clock.now()
    health = read_health(here, key)
    known_down = health.state == "Down"
    if down := health.message if known_down else unanswered:
        waiting = sum(
            profile_status.waits_for_cluster(each) or profile_status.failed_unreachable(each)
            for each in here.records.outcomes.of(key)
        )
        for_it = f"; {waiting} of its profiles wait for it" if waiting else ""
        if key == catalog.configuration:
            for_it += "; it holds the configuration, which stays in force as it was read last"
        # Of one that was not called before, the last time that it answered is known.
        since = health.since if known_down else health.swept_at
        yield failure("cluster", key, f"it is down: {down}{for_it}", since=since)
    elif health.message:
        yield failure("cluster", key, health.message, since=health.since)
    if health.ends_at and health.ends_at - now < EXPIRY_NOTICE:
        cure = f"`bellhop register cluster {key} --kubeconfig FILE` gives it others"
        yield failure("credentials", key, f"{describe_expiry(health.ends_at, now)}; {cure}")
    if said := describe_address_change(here, catalog.clusters[key]):
        cure = "register it again: `bellhop register cluster`"
        yield failure("cluster", key, f"{said}: no event arrives; {cure}")
    if said := describe_subscription(here, key):
        yield failure("messaging", key, said)
    for gvk in catalog.kinds_in(key):
        if confirmed := here.records.strikes.get(key, gvk).value:
            said = (
                "a resync found suspiciously many deleted; held until"
                f" {here.settings.deletion_agreement} resyncs agree ({confirmed} did)"
            )
            yield failure("deletion", f"{gvk.kind} in {key}", said)


def _check_renewal(here: Installation, cluster: Cluster) -> Iterator[Condition]:
    now, ends = here.records.clock.now(), find_expiry(cluster)
    due = find_next(cluster, now)
    if due and due > _NEVER and now - due > _OVERDUE:
        until = f", which lasts until {ends:%Y-%m-%d}" if ends else ""
        said = (
            f"its token and certificate{until}, could not be renewed; Bellhop goes on"
            " trying and logs why; `bellhop register cluster` renews them, too"
        )
        yield failure("certificate", f"forwarder of {cluster.key}", said, since=due)


def _check_senders(here: Installation) -> Iterator[Condition]:
    for sender, refusals in senders.list_refused(here):
        number = refusals.count
        if number >= REFUSAL_THRESHOLD:
            said = (
                f"{number} requests in its name were refused: they had another secret, a"
                " clock that differs by more than five minutes, or came twice; give it its present"
                f" secret, or a new one (`bellhop sender rotate {sender.cluster} {sender.name}`)"
            )
            about = f"{sender.name} of {sender.cluster}"
            yield failure("sender", about, said, since=refusals.since, count=number)


def _check_dead_letters(found: Letters) -> Iterator[Condition]:
    for inbox, letters in found.items():
        for several in group((each.reason, each) for each in letters):
            first, number = several[0], len(several)
            said = f"dead-lettered after {first.attempts} attempts: {first.reason}"
            said += count_alike(number, "messages")
            about, since = f"{inbox}/{first.id}", first.died_at
            yield failure("dead letter", about, said, since=since, count=number)
