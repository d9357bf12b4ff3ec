"""Clusters: their labels, their health at the last call, and the add-ons in them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

from bellhop.api.names import asker
from bellhop.cli.output import Column, Row, format_age, format_count, format_labels, format_time
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View
from bellhop.clusters.pause import describe_pause, pause_of, window_in
from bellhop.core.windows import Window, next_times
from bellhop.diagnosis import cluster_status, names, profile_status
from bellhop.diagnosis.calls import find_unanswered_here
from bellhop.diagnosis.names import ProfileNames
from bellhop.diagnosis.releases import describe_origin
from bellhop.diagnosis.source_status import read_report
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.registration.forwarder_manifests import is_audited, is_direct
from bellhop.state.cluster import Cluster, Health

COLUMNS = (
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("LABELS", "labels"),
    Column("VERSION", "version"),
    Column("STATE", "state"),
    Column("AGE", "age"),
    Column("LAST RESYNC", "lastSweep", wide=True),
    Column("MISSED", "missed", wide=True),
    Column("MESSAGE", "message", wide=True),
)


Item = tuple[Cluster, Health, ProfileNames]


def _select(here: Installation, query: Query) -> Iterator[Item]:
    """Yield clusters with their health; those without a recent call are called."""
    titled = ProfileNames(here)
    found = [
        cluster
        for cluster in here.records.clusters.all()
        if query.matches(cluster.namespace, cluster.name, cluster.labels)
    ]
    errors = query.calls.get([each.key for each in found], partial(find_unanswered_here, here))
    for cluster in found:
        health = cluster_status.read_health(here, cluster.key)
        yield cluster, cluster_status.add_call(health, errors.get(cluster.key, "")), titled


def _manifest(here: Installation, item: Item) -> Manifest:
    """Return a cluster as a SveltosCluster with its status, without credentials."""
    from bellhop.catalog.catalog import cluster_object

    cluster, health, _ = item
    manifest = cluster_object(cluster)
    window = window_in(cluster)
    # The second key is the former name, for one more release.
    resynced = {"lastResyncTime": health.swept_at, "lastSweepTime": health.swept_at}
    manifest["metadata"]["creationTimestamp"] = cluster.registered_at
    manifest["status"] = {
        "ready": health.state in {"Healthy", "Silent"},
        "version": cluster.kubernetes,
        "connectionStatus": health.state,
        **({"failureMessage": health.message} if health.message else {}),
        **(resynced if health.swept_at else {}),
        "observed": health.seen,
        "missed": health.missed,
        **({"countedSince": health.counted_since} if health.tallies else {}),
        **(_times(window, here.records.clock.now()) if window else {}),
    }
    return manifest


def _times(window: Window, now: datetime) -> dict[str, Any]:
    found = next_times(window, now)
    return {"nextPause": found.closes, "nextUnpause": found.opens}


def _row(here: Installation, item: Item) -> Row:
    cluster, health, _ = item
    now = here.records.clock.now()
    state, message = cluster_status.display_state(here, cluster, health)
    return {
        "namespace": cluster.namespace,
        "name": cluster.name,
        "labels": format_labels(cluster.labels),
        "version": cluster.kubernetes,
        "state": state,
        "age": format_age(cluster.registered_at, now),
        "lastSweep": format_age(health.swept_at, now),
        "missed": f"{health.missed}/{health.seen}" if cluster.forwarder else "-",
        "message": message,
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    cluster, health, titled = item
    now = here.records.clock.now()
    catalog = here.catalogs.current()
    description.begin("Cluster", cluster.key)
    description.field("Labels", format_labels(cluster.labels))
    description.field("Kubernetes", cluster.kubernetes)
    description.field("Registered", format_time(cluster.registered_at))
    description.field("State", cluster_status.display_state(here, cluster, health)[0])
    description.field("Message", health.message)
    description.field("Paused", _pause(cluster, now))
    description.field("Last resync", format_age(health.swept_at, now))
    heartbeat = here.records.hearings.get(cluster.key)
    if cluster_status.sends_heartbeats(cluster):
        description.field("Last heartbeat", format_age(heartbeat.at if heartbeat else None, now))
    since = f" since {format_time(health.counted_since)}" if health.tallies else ""
    description.field("Found by resyncs", f"{health.missed} of {health.seen} reads{since}")
    description.field("Events", _event_path(cluster))
    description.table(
        "Sources in force",
        (
            (
                source,
                format_count(
                    len(read_report(here, cluster.key, source).matching), "match", "matches"
                ),
                f"by {asker(source) or ', '.join(catalog.triggers_on(cluster.key, source))}",
            )
            for source in catalog.sources_in(cluster.key)
        ),
    )
    description.table(
        "Profiles",
        (
            (
                titled.shown(outcome.profile),
                outcome.phase,
                format_age(outcome.shown_at, now),
                outcome.message + profile_status.describe_next_try(outcome),
            )
            for outcome in here.records.outcomes.of(cluster.key)
        ),
    )
    description.table(
        "Objects",
        (
            (names.object_name(key), titled.with_kind(inventory.profile), describe_origin(held))
            for inventory in here.records.inventories.of(cluster.key)
            for key, held in inventory.held.items()
        ),
    )


def _pause(cluster: Cluster, now: datetime) -> str:
    window = window_in(cluster)
    if window is None:
        return "until `bellhop resume`" if pause_of(cluster, now) else ""
    times_ = f"active from '{window.opens}' to '{window.closes}', in UTC"
    return f"it {describe_pause(cluster, now)}; {times_}"


def _event_path(cluster: Cluster) -> str:
    if not cluster.forwarder:
        return "none: only resyncs find changes"
    if is_direct(cluster.forwarder):
        return "directly: its API server calls ingest itself"
    if is_audited(cluster.forwarder):
        return "by its audit log, which its API server sends to ingest"
    return cluster.forwarder.get("url") or "its forwarder, a Service in the cluster"


VIEWS = {"cluster": View(COLUMNS, _select, _row, _manifest, _describe)}
