"""ClusterHealthChecks: which clusters are well, since when, and who was told of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bellhop.api.health_check import ClusterHealthCheck, LivenessCheck
from bellhop.api.kinds import key_of
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, age, stamp
from bellhop.cli.views.view import Query, View, labels_of
from bellhop.diagnosis import profile_manifests
from bellhop.extras.health.state import owed
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.condition import Condition, Liveness

COLUMNS = (
    Column("NAME", "name"),
    Column("SELECTS", "selects"),
    Column("CLUSTERS", "clusters"),
    Column("HEALTHY", "healthy"),
    Column("UNHEALTHY", "unhealthy"),
    Column("UNTOLD", "untold"),
)


def _found(here: Installation, query: Query) -> Iterator[tuple[ClusterHealthCheck, Manifest]]:
    declared = here.catalogs.current().checks
    for manifest in here.records.manifests.of("ClusterHealthCheck"):
        key = key_of(manifest)
        if query.takes(key.namespace, key.name, labels_of(manifest)):
            yield declared[key.name], manifest


def _conditions(here: Installation, check: ClusterHealthCheck) -> Mapping[str, Condition | None]:
    """Return how the clusters are that a check selects; None for one that nobody knows of yet."""
    found: dict[str, Condition | None] = {}
    for cluster, each in here.catalogs.current().clusters.items():
        if check.cluster_selector.matches(each.labels):
            kept = here.records.conditions.of(cluster).get(check.name)
            found[cluster] = kept.value if kept else None
    return found


def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield health checks as they were written, with how their clusters are as status."""
    now = here.records.clock.now()
    for check, manifest in _found(here, query):
        conditions = [
            _cluster_condition(check, cluster, each, now)
            for cluster, each in _conditions(here, check).items()
            if each
        ]
        yield {**manifest, "status": {"clusterCondition": conditions}}


def _cluster_condition(
    check: ClusterHealthCheck, cluster: str, found: Condition, now: datetime
) -> dict[str, Any]:
    """Return what Sveltos says of one cluster; what its policy puts off has not failed."""
    since = f"{found.since:%Y-%m-%dT%H:%M:%SZ}"
    whole = Liveness("", found.healthy, found.message)
    parts = {each.name: each for each in found.checks}
    late = {each.name for at, each in owed(found, check.policies) if each.error or at <= now}
    return {
        "clusterInfo": {"cluster": profile_manifests.cluster_ref(cluster)},
        "conditions": [
            {
                "name": each.name,
                "type": f"{each.type}:{each.name}",
                "lastTransitionTime": since,
                **_status(parts.get(each.name, whole)),
            }
            for each in check.spec.liveness_checks
        ],
        "notificationSummaries": [
            {
                "name": each.name,
                "status": "FailedToDeliver" if each.name in late else "Delivered",
            }
            for each in check.notifications
        ],
    }


def _status(found: Liveness) -> dict[str, str]:
    if found.healthy is None:
        return {"status": "Unknown"}
    return {"status": "True"} if found.healthy else {"status": "False", "message": found.message}


def rows(here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each health check."""
    for check, _ in _found(here, query):
        found = _conditions(here, check)
        known = [each for each in found.values() if each]
        yield {
            "name": check.name,
            "selects": str(check.cluster_selector),
            "clusters": len(found),
            "healthy": sum(each.healthy for each in known),
            "unhealthy": sum(not each.healthy for each in known),
            "untold": sum(x.told != each.healthy for each in known for x in each.notices),
        }


def describe(here: Installation, query: Query, story: Story) -> int:
    """Tell of each health check how its clusters are, and what could not be sent."""
    now, told = here.records.clock.now(), 0
    for check, _ in _found(here, query):
        told += 1
        found = _conditions(here, check)
        story.begin("ClusterHealthCheck", check.name)
        story.fact("Selects", str(check.cluster_selector))
        story.fact("Checks", ", ".join(_asked(here, each) for each in check.spec.liveness_checks))
        story.fact("Notifies", ", ".join(f"{x.name} ({x.type})" for x in check.notifications))
        story.grid(
            "Clusters",
            (
                (
                    cluster,
                    "healthy" if each.healthy else "unhealthy",
                    age(each.since, now),
                    each.message,
                )
                if each
                else (cluster, "not known yet", "", "")
                for cluster, each in found.items()
            ),
            nothing="no cluster is selected",
        )
        story.grid(
            "Unsent",
            (
                (cluster, notice.name, notice.error or _next(at, now))
                for cluster, each in found.items()
                for at, notice in (owed(each, check.policies) if each else ())
            ),
        )
    return told


def _next(at: datetime, now: datetime) -> str:
    return "is sent next" if at <= now else f"is sent at {stamp(at)}, if it is still so"


def _asked(here: Installation, check: LivenessCheck) -> str:
    if not check.health_check:
        return f"{check.name} (all profiles)"
    there = check.health_check in here.catalogs.current().health_checks
    return f"{check.name} (HealthCheck {check.health_check}{'' if there else ', not there'})"


VIEWS = {"clusterhealthcheck": View(COLUMNS, rows, manifests, describe)}
