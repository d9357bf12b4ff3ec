"""Status of a cluster: health, heartbeat, pause, credentials and webhook address, and its alert.

    timer ─► resync of a cluster, or its failure ─► its alert, written if it changed
    tick  ─► the alerts that there are ─► metrics and log lines

A silent cluster sends no event, so each resync updates its alert: it runs at its interval for every
cluster, also for one that does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from msgspec.structs import replace

from bellhop.clusters.alert import Alert
from bellhop.clusters.pause import pause_of
from bellhop.diagnosis.condition import Condition
from bellhop.diagnosis.worker_status import WORKER_TIMEOUT
from bellhop.errors import BellhopError
from bellhop.installation import Installation, InstallationView
from bellhop.registration.forwarder_manifests import is_audited, is_direct
from bellhop.state.cluster import Cluster, Health
from bellhop.state.messages import Resync

_HTTPS = 443
HEARTBEAT_TIMEOUT = timedelta(minutes=5)
"""A forwarder without a heartbeat for so long does not run, or does not reach ingest."""

EXPIRY_NOTICE = timedelta(days=7)
"""Credentials that end within this time are reported."""

REFUSAL_THRESHOLD = 3
"""Refusals of a sender before they are reported: reading a new Secret costs one or two."""


def describe_refusals(here: InstallationView, cluster: str) -> str:
    """Return a sentence if senders of a cluster are refused, else nothing."""
    kept = here.records.refusals.get(cluster)
    if kept is None or kept.value.count < REFUSAL_THRESHOLD:
        return ""
    found = kept.value
    return (
        f"{found.count} requests in its name were refused since {found.since:%Y-%m-%d %H:%M} UTC,"
        " as their token is not its present one; if this state was restored from a backup, or its"
        " forwarder has an old Secret, register the cluster again"
    )


def read_health(here: InstallationView, cluster: str) -> Health:
    """Return the health of a cluster, as far as it is known.

    It is that of the last call; Down while the circuit breaker is open; and Silent where it answers
    and its events do not arrive.
    """
    found = here.records.health.head(cluster)
    kept = here.records.circuits.get(cluster)
    if kept is None or kept.value.closing:
        deaf = describe_silence(here, cluster)
        if not (deaf or found.mute) or found.state != "Healthy":
            return found
        message = "; ".join(filter(None, (found.message, deaf)))
        since = found.since if found.mute else _find_silence_begin(here, cluster)
        return replace(found, state="Silent", message=message, since=since)
    circuit = kept.value
    said = f"it has not answered since {circuit.since:%Y-%m-%d %H:%M:%S} UTC: {circuit.said}"
    return replace(found, state="Down", message=said, since=circuit.since)


def add_call(health: Health, unanswered: str) -> Health:
    """Return the health of a cluster after a call; `unanswered` is its error, if any."""
    return replace(health, state="Down", message=unanswered, since=None) if unanswered else health


def _find_silence_begin(here: InstallationView, cluster: str) -> datetime | None:
    refusals, beat = here.records.refusals.get(cluster), here.records.hearings.get(cluster)
    if refusals and refusals.value.count >= REFUSAL_THRESHOLD:
        return refusals.value.since
    kept = here.records.clusters.get(cluster)
    return beat.at if beat else kept.value.registered_at if kept else None


def describe_expiry(ends: datetime, now: datetime) -> str:
    if ends <= now:
        return f"the stored credentials ended at {ends:%Y-%m-%d %H:%M} UTC"
    return (
        f"the stored credentials end at {ends:%Y-%m-%d %H:%M} UTC; from then on nothing is"
        " applied there, and resyncs fail"
    )


def describe_pause(here: Installation, cluster: str) -> tuple[str, str] | None:
    """Return that a cluster is paused, and the cure; None if it is not."""
    kept = here.records.clusters.get(cluster)
    pause = pause_of(kept.value, here.records.clock.now()) if kept else None
    if pause is None:
        return None
    return f"it {pause}: what happens in it makes nothing before", describe_resumption(cluster)


def list_obstacles(here: Installation, cluster: str) -> Iterator[Condition]:
    """Yield why nothing is deployed to a cluster now: it does not answer, or is paused."""
    health = read_health(here, cluster)
    if health.away:
        cure = f"see that cluster '{cluster}' answers: {health.message}"
        said = f"it is {health.state.lower()}: {health.message}"
        yield Condition("cluster", cluster, "failed", said, cure)
    if pause := describe_pause(here, cluster):
        yield Condition("cluster", cluster, "waits", *pause)


def describe_resumption(cluster: str) -> str:
    return f"`bellhop resume cluster {cluster}`, or wait until its maintenance window opens"


def display_state(here: Installation, cluster: Cluster, health: Health) -> tuple[str, str]:
    """Return the displayed state of a cluster, and its reason: a healthy one may be Paused."""
    waits = sends_heartbeats(cluster) and here.records.hearings.get(cluster.key) is None
    message = health.message or "no heartbeat of its forwarder yet" * waits
    pause = pause_of(cluster, here.records.clock.now())
    if pause is None:
        return health.state, message
    state = "Paused" if health.state == "Healthy" else health.state
    return state, "; ".join(filter(None, (message, f"it {pause}")))


def sends_heartbeats(cluster: Cluster) -> bool:
    """Return whether a cluster has a forwarder: an API server without one sends no heartbeat."""
    forwarder = cluster.forwarder
    return bool(forwarder) and not (is_direct(forwarder) or is_audited(forwarder))


def describe_silence(here: InstallationView, cluster: str) -> str:
    """Return why the events of a cluster do not arrive, in a sentence; empty if they do.

    A webhook that could not be configured is part of its health.
    """
    said = describe_refusals(here, cluster)
    kept = here.records.clusters.get(cluster)
    if said or kept is None or not sends_heartbeats(kept.value):
        return said
    beat = here.records.hearings.get(cluster)
    if beat and abs(here.records.clock.now() - beat.at) <= HEARTBEAT_TIMEOUT:
        return f"its forwarder cannot read changed objects: {beat.problem}" if beat.problem else ""
    # A forwarder of an earlier version sends no heartbeat without events.
    if (beat and not beat.version) or not _is_heartbeat_due(here, kept.value.registered_at):
        return ""
    last = f"its last heartbeat at {beat.at:%Y-%m-%d %H:%M} UTC" if beat else "no heartbeat yet"
    return (
        f"its forwarder sent {last}, and should every two minutes: it does not run, or does not"
        f" reach Bellhop; `bellhop doctor {cluster}` looks where it ends"
    )


def describe_subscription(here: Installation, cluster: str) -> str:
    """Return what keeps a cluster's forwarder from its NATS, if its heartbeat is not late."""
    beat = here.records.hearings.get(cluster)
    if beat is None or abs(here.records.clock.now() - beat.at) > HEARTBEAT_TIMEOUT:
        return ""
    said = "its forwarder hears no CloudEvents of its NATS: "
    return beat.messaging and said + beat.messaging


def describe_address_change(here: Installation, cluster: Cluster) -> str:
    """Return Bellhop's address if an API server calls the one of its registration."""
    record, now = cluster.forwarder, here.inbound.url
    calls = record.get("url", "")
    given = not is_direct(record) or record.get("ingest-url") or not (now and calls)
    if given or _split_address(calls) == _split_address(now):
        return ""
    return f"it calls {calls.partition('/clusters/')[0]}, and Bellhop is at {now.rstrip('/')}"


def _split_address(url: str) -> tuple[str | None, int, str]:
    """Return host, port, and the path before the cluster's own."""
    parts = urlsplit(url)
    path = parts.path.partition("/clusters/")[0].rstrip("/")
    return parts.hostname, parts.port or _HTTPS, path


def _is_heartbeat_due(here: InstallationView, since: datetime) -> bool:
    """Return whether a heartbeat of a cluster registered at that time could have arrived."""
    now, worker = here.records.clock.now(), here.records.pulses.get()
    if worker is None:
        return now - since > HEARTBEAT_TIMEOUT
    # A time by a clock that was ahead counts as now.
    begun = min(max(since, worker.since), now)
    return now - begun > HEARTBEAT_TIMEOUT and abs(now - worker.at) <= WORKER_TIMEOUT


_BAD = frozenset({"Down", "Unauthorized", "Silent"})


class ClusterAlerts:
    """Resyncs a cluster, and then updates its alert."""

    def __init__(self, here: Installation, resync: Callable[[Resync], None]) -> None:
        self._here = here
        self._resync = resync

    def handle(self, message: Resync) -> None:
        """Resync, and update the alert even if that failed."""
        try:
            self._resync(message)
        finally:
            # The work does not fail if the alert cannot be written; the next resync writes it.
            with suppress(BellhopError):
                self._update(message.cluster)

    def _update(self, cluster: str) -> None:
        found = read_health(self._here, cluster)
        now, ends_at = self._here.records.clock.now(), found.ends_at
        alert = Alert(
            found.state if found.state in _BAD else "",
            ends_at if ends_at and ends_at - now < EXPIRY_NOTICE else None,
        )
        if alert != self._here.records.alerts.get(cluster):
            self._here.records.alerts.put(cluster, alert)
