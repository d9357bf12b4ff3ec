"""Clusters: who they are, and how they were when last met."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

from bellhop.api.source_names import asker
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, age, count, pairs, stamp
from bellhop.cli.views.view import Query, View
from bellhop.clusters.pause import Window, pause_of, standing, times, window_in
from bellhop.diagnosis import overview
from bellhop.diagnosis.cluster_calls import unanswered
from bellhop.diagnosis.names import Titled
from bellhop.diagnosis.releases import origin
from bellhop.diagnosis.reports import report
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.registration.forwarder_manifests import is_audited, is_direct
from bellhop.state.record import Cluster, Health

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


def _clusters(here: Installation, query: Query) -> Iterator[tuple[Cluster, Health]]:
    """Yield clusters, and how they are: those that were not reached lately are called."""
    found = [
        cluster
        for cluster in here.records.clusters.all()
        if query.takes(cluster.namespace, cluster.name, cluster.labels)
    ]
    silent = query.answers.of([each.key for each in found], partial(unanswered, here))
    for cluster in found:
        health = overview.health(here, cluster.key)
        yield cluster, overview.called(health, silent.get(cluster.key, ""))


def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield clusters as SveltosClusters, with how they are; credentials are never shown."""
    from bellhop.catalog.catalog import cluster_object

    for cluster, health in _clusters(here, query):
        manifest = cluster_object(cluster)
        window = window_in(cluster)
        manifest["metadata"]["creationTimestamp"] = cluster.registered_at
        manifest["status"] = {
            "ready": health.state in {"Healthy", "Silent"},
            "version": cluster.kubernetes,
            "connectionStatus": health.state,
            **({"failureMessage": health.message} if health.message else {}),
            # The second key is the former name, for one more release.
            **(
                {"lastResyncTime": health.swept_at, "lastSweepTime": health.swept_at}
                if health.swept_at
                else {}
            ),
            "observed": health.seen,
            "missed": health.missed,
            **({"countedSince": health.counted_since} if health.tallies else {}),
            **(_times(window, here.records.clock.now()) if window else {}),
        }
        yield manifest


def _times(window: Window, now: datetime) -> dict[str, Any]:
    """Return when a window opens and closes next, in the words of a SveltosCluster."""
    found = times(window, now)
    return {"nextPause": found.closes, "nextUnpause": found.opens}


def rows(here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each cluster."""
    now = here.records.clock.now()
    for cluster, health in _clusters(here, query):
        state, message = overview.standing(here, cluster, health)
        yield {
            "namespace": cluster.namespace,
            "name": cluster.name,
            "labels": pairs(cluster.labels),
            "version": cluster.kubernetes,
            "state": state,
            "age": age(cluster.registered_at, now),
            "lastSweep": age(health.swept_at, now),
            "missed": f"{health.missed}/{health.seen}" if cluster.forwarder else "-",
            "message": message,
        }


def describe(here: Installation, query: Query, story: Story) -> int:
    """Tell of each cluster how it rings, what is in force and what it holds."""
    told, titled = 0, Titled(here)
    for cluster, health in _clusters(here, query):
        told += 1
        _tell(here, cluster, health, titled, story)
    return told


def _tell(
    here: Installation, cluster: Cluster, health: Health, titled: Titled, story: Story
) -> None:
    now = here.records.clock.now()
    catalog = here.catalogs.current()
    story.begin("Cluster", cluster.key)
    story.fact("Labels", pairs(cluster.labels))
    story.fact("Kubernetes", cluster.kubernetes)
    story.fact("Registered", stamp(cluster.registered_at))
    story.fact("State", overview.standing(here, cluster, health)[0])
    story.fact("Message", health.message)
    story.fact("Paused", _pause(cluster, now))
    story.fact("Last resync", age(health.swept_at, now))
    heard = here.records.hearings.get(cluster.key)
    if overview.beats(cluster):
        story.fact("Last heartbeat", age(heard.at if heard else None, now))
    since = f" since {stamp(health.counted_since)}" if health.tallies else ""
    story.fact("Found by resyncs", f"{health.missed} of {health.seen} reads{since}")
    story.fact("Events", _rings(cluster))
    story.grid(
        "Sources in force",
        (
            (
                source,
                count(len(report(here, cluster.key, source).matching), "match", "matches"),
                f"by {asker(source) or ', '.join(catalog.triggers_on(cluster.key, source))}",
            )
            for source in catalog.sources_in(cluster.key)
        ),
    )
    story.grid(
        "Profiles",
        (
            (
                titled.shown(outcome.profile),
                outcome.phase,
                age(outcome.shown_at, now),
                outcome.message + overview.next_try(outcome),
            )
            for outcome in here.records.outcomes.of(cluster.key)
        ),
    )
    story.grid(
        "Objects",
        (
            (overview.object_name(key), titled.with_kind(inventory.profile), origin(held))
            for inventory in here.records.inventories.of(cluster.key)
            for key, held in inventory.held.items()
        ),
    )


def _pause(cluster: Cluster, now: datetime) -> str:
    """Say whether a cluster is paused, and when it is active; nothing of one that always is."""
    window = window_in(cluster)
    if window is None:
        return "until `bellhop resume`" if pause_of(cluster, now) else ""
    said = f"active from '{window.opens}' to '{window.closes}', in UTC"
    return f"it {standing(cluster, now)}; {said}"


def _rings(cluster: Cluster) -> str:
    if not cluster.forwarder:
        return "none: only resyncs find changes"
    if is_direct(cluster.forwarder):
        return "directly: its API server calls ingest itself"
    if is_audited(cluster.forwarder):
        return "by its audit log, which its API server sends to ingest"
    return cluster.forwarder.get("url") or "its forwarder, a Service in the cluster"


VIEWS = {"cluster": View(COLUMNS, rows, manifests, describe)}
