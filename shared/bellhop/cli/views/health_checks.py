"""HealthChecks and ClusterHealthChecks: the state of clusters, and the notices about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from bellhop.api.health_check import ClusterHealthCheck, HealthCheck, LivenessCheck
from bellhop.cli.output import Column, Row, format_age, format_time
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View, name_of, select_applied
from bellhop.diagnosis import names, profile_manifests
from bellhop.errors import MissingError
from bellhop.extras.health.records import Condition, Liveness
from bellhop.extras.health.state import MESSAGE, STATE, counting, owed
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.match import Selected, Selection

CLUSTER_COLUMNS = (
    Column("NAME", "name"),
    Column("SELECTS", "selects"),
    Column("CLUSTERS", "clusters"),
    Column("HEALTHY", "healthy"),
    Column("UNHEALTHY", "unhealthy"),
    Column("UNTOLD", "untold"),
)
COLUMNS = (
    Column("NAME", "name"),
    Column("KINDS", "kinds"),
    Column("CLUSTERS", "clusters"),
    Column("HEALTHY", "healthy"),
    Column("UNHEALTHY", "unhealthy"),
    Column("FAILING", "failing"),
)
_OPEN = "not known yet: waits for a resync"

ClusterItem = tuple[ClusterHealthCheck, Mapping[str, Condition | None], Manifest]
"""A check, and the condition of each cluster that it selects; None before its first evaluation."""

Item = tuple[HealthCheck, list[tuple[str, Selection | None]], Manifest]
"""A check, and its result in each cluster that evaluates it; None before the first one."""


def _select_clusters(here: Installation, query: Query) -> Iterator[ClusterItem]:
    declared = here.catalogs.current().checks
    for manifest in select_applied(here, query, "ClusterHealthCheck"):
        check = declared[name_of(manifest)]
        yield check, _conditions(here, check), dict(manifest)


def _conditions(here: Installation, check: ClusterHealthCheck) -> Mapping[str, Condition | None]:
    found: dict[str, Condition | None] = {}
    for cluster, each in here.catalogs.current().clusters.items():
        if check.cluster_selector.matches(each.labels):
            stored = here.records.conditions.of(cluster).get(check.name)
            found[cluster] = stored.value if stored else None
    return found


def _cluster_manifest(here: Installation, item: ClusterItem) -> Manifest:
    check, found, manifest = item
    now = here.records.clock.now()
    conditions = [
        _cluster_condition(check, cluster, each, now) for cluster, each in found.items() if each
    ]
    return {**manifest, "status": {"clusterCondition": conditions}}


def _cluster_condition(
    check: ClusterHealthCheck, cluster: str, found: Condition, now: datetime
) -> dict[str, Any]:
    """Return the condition of a cluster as Sveltos has it; a deferred notice has not failed."""
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


def _cluster_row(_here: Installation, item: ClusterItem) -> Row:
    check, found, _ = item
    known = [each for each in found.values() if each]
    return {
        "name": check.name,
        "selects": str(check.cluster_selector),
        "clusters": len(found),
        "healthy": sum(each.healthy for each in known),
        "unhealthy": sum(not each.healthy for each in known),
        "untold": sum(x.told != each.healthy for each in known for x in each.notices),
    }


def _describe_clusters(here: Installation, item: ClusterItem, description: Description) -> None:
    check, found, _ = item
    now = here.records.clock.now()
    checks = ", ".join(_liveness_check(here, each) for each in check.spec.liveness_checks)
    description.begin("ClusterHealthCheck", check.name)
    description.field("Selects", str(check.cluster_selector))
    description.field("Checks", checks)
    description.field("Notifies", ", ".join(f"{x.name} ({x.type})" for x in check.notifications))
    description.table(
        "Clusters",
        (
            (
                cluster,
                "healthy" if each.healthy else "unhealthy",
                format_age(each.since, now),
                each.message,
            )
            if each
            else (cluster, "not known yet", "", "")
            for cluster, each in found.items()
        ),
        nothing="no cluster is selected",
    )
    description.table(
        "Unsent",
        (
            (cluster, notice.name, notice.error or _next(at, now))
            for cluster, each in found.items()
            for at, notice in (owed(each, check.policies) if each else ())
        ),
    )


def _next(at: datetime, now: datetime) -> str:
    return "is sent next" if at <= now else f"is sent at {format_time(at)}, if it is still so"


def _liveness_check(here: Installation, check: LivenessCheck) -> str:
    if not check.health_check:
        return f"{check.name} (all profiles)"
    there = check.health_check in here.catalogs.current().health_checks
    return f"{check.name} (HealthCheck {check.health_check}{'' if there else ', not there'})"


def _select(here: Installation, query: Query) -> Iterator[Item]:
    declared = here.catalogs.current().health_checks
    for manifest in select_applied(here, query, "HealthCheck"):
        check = declared[name_of(manifest)]
        yield check, list(_results(here, check)), dict(manifest)


def _results(here: Installation, check: HealthCheck) -> Iterator[tuple[str, Selection | None]]:
    catalog = here.catalogs.current()
    for cluster in catalog.clusters:
        if check.name not in catalog.looking_at(cluster):
            continue
        try:
            stored = here.records.selections.get(cluster, check.source.name)
        except MissingError:
            stored = None
        known = stored is not None and (stored.value.made or stored.value.error)
        yield cluster, stored.value if stored and known else None


def _manifest(here: Installation, item: Item) -> Manifest:
    check, found, manifest = item
    now = here.records.clock.now()
    reports = [
        _report(cluster, each, counting(each, check.patience, now))
        for cluster, each in found
        if each is not None
    ]
    return {**manifest, "status": {"healthCheckReports": reports}}


def _report(cluster: str, found: Selection, unhealthy: list[Selected]) -> dict[str, Any]:
    """Return the unhealthy objects of a cluster as Sveltos' HealthCheckReports have them."""
    statuses = [
        {
            "objectRef": {
                "apiVersion": each.key.gvk.api_version,
                "kind": each.key.gvk.kind,
                **({"namespace": each.key.namespace} if each.key.namespace else {}),
                "name": each.key.name,
            },
            **each.manifest,
        }
        for each in unhealthy
    ]
    failure = "; ".join(filter(None, (found.error, found.left_out)))
    status = {"failureMessage": failure} if failure else {}
    return {
        "cluster": profile_manifests.cluster_ref(cluster),
        "resourceStatuses": statuses,
        **status,
    }


def _row(here: Installation, item: Item) -> Row:
    check, found, _ = item
    now = here.records.clock.now()
    known = [each for _, each in found if each and not each.error]
    unhealthy = sum(bool(counting(each, check.patience, now)) for each in known)
    return {
        "name": check.name,
        "kinds": ",".join(sorted({each.gvk.kind for each in check.source.selectors})),
        "clusters": len(found),
        "healthy": len(known) - unhealthy,
        "unhealthy": unhealthy,
        "failing": sum(bool(each and each.error) for _, each in found),
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    check, found, _ = item
    now = here.records.clock.now()
    description.begin("HealthCheck", check.name)
    description.field("Selects", ", ".join(str(each.gvk) for each in check.source.selectors))
    description.table(
        "Clusters",
        (
            (cluster, *_state(each, check.patience, now), format_age(each.since, now))
            if each
            else (cluster, _OPEN, "", "")
            for cluster, each in found
        ),
        nothing="no ClusterHealthCheck names it in a cluster that is there",
    )
    description.table(
        "Unhealthy",
        (
            (
                cluster,
                names.object_name(one.key),
                str(one.manifest.get(STATE)),
                _counts(one.since + check.patience, now) + str(one.manifest.get(MESSAGE)),
            )
            for cluster, each in found
            for one in (each.selected if each else ())
        ),
    )


def _state(found: Selection, patience: timedelta, now: datetime) -> tuple[str, str]:
    if found.error:
        return "fails", found.error
    message = "; ".join(filter(None, (found.message, found.left_out)))
    return ("unhealthy" if counting(found, patience, now) else "healthy"), message


def _counts(at: datetime, now: datetime) -> str:
    return "" if at <= now else f"counts from {format_time(at)}; "


VIEWS = {
    "clusterhealthcheck": View(
        CLUSTER_COLUMNS, _select_clusters, _cluster_row, _cluster_manifest, _describe_clusters
    ),
    "healthcheck": View(COLUMNS, _select, _row, _manifest, _describe),
}
