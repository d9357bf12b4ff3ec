"""Questions over several records at once, which only people ask: the stages never do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.source_names import asker
from bellhop.clusters.pause import pause_of
from bellhop.core.gvk import GVK, Identity, ObjectKey
from bellhop.errors import AwayError, PausedError
from bellhop.installation.installation import Installation
from bellhop.profiles.records.profiles import place
from bellhop.registration.forwarder_manifests import is_audited, is_direct
from bellhop.state.record import Cluster, DeploymentStatus, Ended, Health, Profile, SlowScript

_HTTPS = 443

SILENT = timedelta(minutes=5)
"""A forwarder that says nothing for so long is not there, or not heard."""

PULSELESS = timedelta(seconds=90)
"""A process that has written nothing for so long is not there, or cannot write."""

TICKLESS = timedelta(minutes=5)
"""A schedule that ticks each minute and has not for so long is switched off, or fails."""

ENDING = timedelta(days=7)
"""So long before the credentials of a cluster end it is told."""

MANY = 3
"""So often a sender is refused before it is told: one that is about to read its new Secret is once
or twice."""

Who = tuple[str, str, str]
"""A profile's trigger, source cluster and name."""


class ProfileStatus(Struct, frozen=True):
    """A profile and how applying it ended where it was tried."""

    profile: Profile
    outcomes: Sequence[DeploymentStatus]

    @property
    def provisioned(self) -> int:
        """Count the destinations where all is as it should be."""
        good = {each.cluster for each in self.outcomes if each.phase == "Provisioned"}
        return len(good.intersection(self.profile.destinations))

    @property
    def removing(self) -> bool:
        """Say whether it goes nowhere any more, and clusters still have something of it."""
        return bool(self.profile.leaving) and not self.profile.destinations

    @property
    def state(self) -> str:
        """Sum up in one word; the worst counts."""
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


def rolled_out(here: Installation, status: ProfileStatus) -> str:
    """Count the clusters of a profile that changes so many at a time; empty for any other."""
    profile = status.profile
    if not profile.rollout.paced or not profile.matched:
        return ""
    every, kept = set(profile.matched), here.records.rotas.get(place(profile))
    mine = [x for x in status.outcomes if x.cluster in every and x.revision == profile.revision]
    updated = {each.cluster for each in mine if each.phase == "Provisioned"}
    failed = {each.cluster for each in mine if each.phase.startswith("Failed")}
    updating = every.intersection(kept.value.at_work if kept else ()) - updated - failed
    waiting = len(every) - len(updated) - len(failed) - len(updating)
    return (
        f"{len(updated)} updated, {len(updating)} updating, {len(failed)} failed, {waiting}"
        f" waiting; {profile.rollout.places(len(every))} at a time"
    )


def outcomes(here: Installation) -> dict[Who, list[DeploymentStatus]]:
    """Collect the outcomes of all clusters by profile."""
    found: dict[Who, list[DeploymentStatus]] = {}
    for cluster in here.catalogs.known().clusters:
        for outcome in here.records.outcomes.of(cluster):
            found.setdefault((outcome.trigger, outcome.source, outcome.profile), []).append(outcome)
    return found


def statuses(
    here: Installation,
    trigger: str | None = None,
    known: Mapping[Who, Sequence[DeploymentStatus]] | None = None,
) -> Iterator[ProfileStatus]:
    """Yield every profile, users' own first, or those of one trigger; by trigger and name.

    Triggers that were deleted count while a cluster still holds something of theirs. `known`
    are the outcomes, for who asks more than once.
    """
    known = outcomes(here) if known is None else known
    triggers = {who[0] for who in known} | set(here.catalogs.known().triggers) | {""}
    for name in sorted(triggers) if trigger is None else [trigger]:
        for profile in here.records.profiles.of(name):
            who = (profile.trigger, profile.cluster, profile.name)
            yield ProfileStatus(profile, known.get(who, ()))


def sources_in_force(here: Installation) -> Iterator[tuple[str, str]]:
    """Yield (cluster, source) wherever a source is in force that somebody declared."""
    catalog = here.catalogs.known()
    for cluster in catalog.clusters:
        for source in catalog.sources_in(cluster):
            if not asker(source):
                yield cluster, source


def awaited_kinds(here: Installation, source: str) -> dict[GVK, list[str]]:
    """Return the kinds of a source that clusters where it is in force do not serve, with these."""
    catalog = here.catalogs.known()
    found: dict[GVK, list[str]] = {}
    for cluster in catalog.clusters:
        if source not in catalog.sources_in(cluster):
            continue
        for gvk in here.records.health.head(cluster).unserved:
            if gvk in catalog.sources[source].kinds:
                found.setdefault(gvk, []).append(cluster)
    return found


def refused(here: Installation, cluster: str) -> str:
    """Say that senders of a cluster are refused, in a sentence; empty if they are not."""
    kept = here.records.refusals.get(cluster)
    if kept is None or kept.value.count < MANY:
        return ""
    found = kept.value
    return (
        f"{found.count} requests in its name were refused since {found.since:%Y-%m-%d %H:%M} UTC,"
        " as their token is not its present one; if this state was restored from a backup, or its"
        " forwarder has an old Secret, register the cluster again"
    )


def health(here: Installation, cluster: str) -> Health:
    """Return how a cluster is, as far as is known.

    As it was when last met; down as long as it does not answer; and silent where it answers, and
    what happens in it does not ring.
    """
    found = here.records.health.head(cluster)
    kept = here.records.circuits.get(cluster)
    if kept is None or kept.value.closing:
        deaf = ringing(here, cluster)
        if not (deaf or found.mute) or found.state != "Healthy":
            return found
        message = "; ".join(filter(None, (found.message, deaf)))
        since = found.since if found.mute else _unheard_since(here, cluster)
        return replace(found, state="Silent", message=message, since=since)
    circuit = kept.value
    said = f"it has not answered since {circuit.since:%Y-%m-%d %H:%M:%S} UTC: {circuit.said}"
    return replace(found, state="Down", message=said, since=circuit.since)


def called(health: Health, unanswered: str) -> Health:
    """Return how a cluster is, now that a call of it has met this; nothing if it answered."""
    if not unanswered:
        return health
    return replace(health, state="Down", message=unanswered, since=None)


def _unheard_since(here: Installation, cluster: str) -> datetime | None:
    """Return when a silent cluster's sender was heard last, or began to be refused."""
    refusals, heard = here.records.refusals.get(cluster), here.records.hearings.get(cluster)
    if refusals and refusals.value.count >= MANY:
        return refusals.value.since
    kept = here.records.clusters.get(cluster)
    return heard.at if heard else kept.value.registered_at if kept else None


def ending(ends: datetime, now: datetime) -> str:
    """Say when the stored credentials of a cluster end, or that they have ended."""
    if ends <= now:
        return f"the stored credentials ended at {ends:%Y-%m-%d %H:%M} UTC"
    return (
        f"the stored credentials end at {ends:%Y-%m-%d %H:%M} UTC; from then on nothing is"
        " applied there, and resyncs fail"
    )


def paused(here: Installation, cluster: str) -> tuple[str, str] | None:
    """Say that a cluster is paused, and what to do about it; None of one that is not."""
    kept = here.records.clusters.get(cluster)
    pause = pause_of(kept.value, here.records.clock.now()) if kept else None
    if pause is None:
        return None
    return f"it {pause}: what happens in it makes nothing before", resuming(cluster)


def resuming(cluster: str) -> str:
    """Say what to do about a cluster that is paused."""
    return f"`bellhop resume cluster {cluster}`, or wait until its maintenance window opens"


def standing(here: Installation, cluster: Cluster, health: Health) -> tuple[str, str]:
    """Return the state of a cluster as people are told it, and why it is so.

    One that is well may be paused; of any other that is told beside what is wrong.
    """
    pause = pause_of(cluster, here.records.clock.now())
    if pause is None:
        return health.state, health.message
    state = "Paused" if health.state == "Healthy" else health.state
    return state, "; ".join(filter(None, (health.message, f"it {pause}")))


def beats(cluster: Cluster) -> bool:
    """Return whether a cluster has a forwarder: an API server alone sends no heartbeat."""
    forwarder = cluster.forwarder
    return bool(forwarder) and not (is_direct(forwarder) or is_audited(forwarder))


def ringing(here: Installation, cluster: str) -> str:
    """Say why what happens in a cluster is not heard of, in a sentence; empty if it is.

    That its API server could not be told to ring is in its health.
    """
    said = refused(here, cluster)
    kept = here.records.clusters.get(cluster)
    if said or kept is None or not beats(kept.value):
        return said
    heard = here.records.hearings.get(cluster)
    if heard and abs(here.records.clock.now() - heard.at) <= SILENT:
        return (
            f"its forwarder cannot read changed objects: {heard.problem}" if heard.problem else ""
        )
    # A forwarder of an earlier version says nothing while nothing rings.
    if (heard and not heard.version) or not _could_be_heard(here, kept.value.registered_at):
        return ""
    last = f"its last heartbeat at {heard.at:%Y-%m-%d %H:%M} UTC" if heard else "no heartbeat yet"
    return (
        f"its forwarder sent {last}, and should every two minutes: it does not run, or does not"
        f" reach Bellhop; `bellhop doctor {cluster}` looks where it ends"
    )


def unsubscribed(here: Installation, cluster: str) -> str:
    """Say what keeps a cluster's forwarder from its NATS, in a sentence; empty for nothing.

    Who is silent has said nothing lately, which is told elsewhere.
    """
    heard = here.records.hearings.get(cluster)
    if heard is None or not heard.messaging or abs(here.records.clock.now() - heard.at) > SILENT:
        return ""
    return f"its forwarder hears no CloudEvents of its NATS: {heard.messaging}"


def moved(here: Installation, cluster: Cluster) -> str:
    """Return where Bellhop is now, if an API server calls where it was at registration."""
    record, now = cluster.forwarder, here.inbound.url
    calls = record.get("url", "")
    given = not is_direct(record) or record.get("ingest-url") or not (now and calls)
    if given or _place(calls) == _place(now):
        return ""
    return f"it calls {calls.partition('/clusters/')[0]}, and Bellhop is at {now.rstrip('/')}"


def _place(url: str) -> tuple[str | None, int, str]:
    """Return the host, the port and the path before the cluster's own."""
    parts = urlsplit(url)
    path = parts.path.partition("/clusters/")[0].rstrip("/")
    return parts.hostname, parts.port or _HTTPS, path


def _could_be_heard(here: Installation, since: datetime) -> bool:
    """Say whether a cluster that is there since then could have been heard for long enough."""
    now, pulse = here.records.clock.now(), here.records.pulses.get()
    if pulse is None:
        return now - since > SILENT
    # What a clock that was ahead has said is as good as now.
    begun = min(max(since, pulse.since), now)
    return now - begun > SILENT and abs(now - pulse.at) <= PULSELESS


def lateness(here: Installation) -> str:
    """Say that the schedule of functions does not tick, in a sentence; empty if it does."""
    pulse, now = here.records.pulses.get(), here.records.clock.now()
    if pulse is None:
        return "the schedule has not ticked yet"
    if abs(now - pulse.at) <= TICKLESS:
        return ""
    return f"the schedule has not ticked since {pulse.at:%Y-%m-%d %H:%M:%S} UTC"


def waits(outcome: DeploymentStatus) -> bool:
    """Say whether a profile waits for nothing but its cluster, to answer or not to be paused."""
    away = outcome.reason == AwayError.code and outcome.retry_at is None
    return away or outcome.reason == PausedError.code


def by_feature(outcome: DeploymentStatus) -> tuple[Ended, ...]:
    """Return how each feature of a profile ended in a cluster.

    An earlier version noted it of the whole, which had one feature.
    """
    whole = Ended("Resources", outcome.phase, outcome.reason, outcome.message, outcome.retry_at)
    return outcome.features or (whole,)


def next_try(outcome: DeploymentStatus | Ended) -> str:
    """Say when a profile is tried next in a cluster where it failed; nothing where it is not.

    Of one that waits for a window its message says so. One that is FailedNonRetriable is tried
    when an input changes; beside that it is checked at long intervals.
    """
    if outcome.retry_at is None or outcome.reason == PausedError.code:
        return ""
    at = f"{outcome.retry_at.astimezone(UTC):%H:%M:%S} UTC"
    if outcome.phase == "FailedNonRetriable":
        return f"; it is tried when an input changes, and checked again at {at}"
    return f"; next try at {at}"


def object_name(key: ObjectKey | Identity | str) -> str:
    """Name an object of a cluster for people: `Service default/web`."""
    if isinstance(key, str):
        if not key:
            return ""
        key = ObjectKey.parse(key)
    if isinstance(key, ObjectKey):
        key = key.identity
    place = f"{key.namespace}/{key.name}" if key.namespace else key.name
    return f"{key.kind} {place}"


def slow(here: Installation) -> Iterator[SlowScript]:
    """Yield the sources whose scripts take long, as they are written now."""
    catalog = here.catalogs.known()
    for pace in here.records.paces.all():
        if pace.source in catalog.sources and catalog.digest(pace.source) == pace.digest:
            yield pace


def slowness(here: Installation, pace: SlowScript) -> str:
    """Say of a source that its script takes long, and what follows."""
    return (
        f"its script took more than {here.settings.script_first_seconds:g} s {pace.times} times"
        " in a row, and its objects are judged apart, later than others; shorten the script"
    )
