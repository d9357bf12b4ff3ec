"""HealthChecks: in which clusters they are asked, and which resources are not well there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from bellhop.api.health_check import HealthCheck
from bellhop.api.kinds import key_of
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, age, stamp
from bellhop.cli.views.view import Query, View, labels_of
from bellhop.diagnosis import overview, profile_manifests
from bellhop.errors import MissingError
from bellhop.extras.health.state import MESSAGE, STATE, counting
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.record import Selected, Selection

COLUMNS = (
    Column("NAME", "name"),
    Column("KINDS", "kinds"),
    Column("CLUSTERS", "clusters"),
    Column("HEALTHY", "healthy"),
    Column("UNHEALTHY", "unhealthy"),
    Column("FAILING", "failing"),
)


def _found(here: Installation, query: Query) -> Iterator[tuple[HealthCheck, Manifest]]:
    declared = here.catalogs.current().health_checks
    for manifest in here.records.manifests.of("HealthCheck"):
        key = key_of(manifest)
        if query.takes(key.namespace, key.name, labels_of(manifest)):
            yield declared[key.name], manifest


def _assessed(here: Installation, check: HealthCheck) -> Iterator[tuple[str, Selection | None]]:
    """Yield the clusters where it is asked, each with what it says; None where nobody knows yet."""
    catalog = here.catalogs.current()
    for cluster in catalog.clusters:
        if check.name not in catalog.looking_at(cluster):
            continue
        try:
            kept = here.records.selections.get(cluster, check.source.name)
        except MissingError:
            kept = None
        known = kept is not None and (kept.value.made or kept.value.error)
        yield cluster, kept.value if kept and known else None


def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield health checks as they were written, with what is not well in each cluster as status."""
    now = here.records.clock.now()
    for check, manifest in _found(here, query):
        reports = [
            _report(cluster, each, counting(each, check.patience, now))
            for cluster, each in _assessed(here, check)
            if each is not None
        ]
        yield {**manifest, "status": {"healthCheckReports": reports}}


def _report(cluster: str, found: Selection, counted: list[Selected]) -> dict[str, Any]:
    """Return what is not well in a cluster, in the words of Sveltos' HealthCheckReports."""
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
        for each in counted
    ]
    failure = "; ".join(filter(None, (found.error, found.left_out)))
    said = {"failureMessage": failure} if failure else {}
    return {"cluster": profile_manifests.cluster_ref(cluster), "resourceStatuses": statuses, **said}


def rows(here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each health check."""
    now = here.records.clock.now()
    for check, _ in _found(here, query):
        found = [each for _, each in _assessed(here, check)]
        known = [each for each in found if each and not each.error]
        unwell = sum(bool(counting(each, check.patience, now)) for each in known)
        yield {
            "name": check.name,
            "kinds": ",".join(sorted({each.gvk.kind for each in check.source.selectors})),
            "clusters": len(found),
            "healthy": len(known) - unwell,
            "unhealthy": unwell,
            "failing": sum(bool(each and each.error) for each in found),
        }


def describe(here: Installation, query: Query, story: Story) -> int:
    """Tell of each health check how the clusters are, and what is not well in them."""
    now, told = here.records.clock.now(), 0
    for check, _ in _found(here, query):
        told += 1
        found = list(_assessed(here, check))
        story.begin("HealthCheck", check.name)
        story.fact("Selects", ", ".join(str(each.gvk) for each in check.source.selectors))
        story.grid(
            "Clusters",
            (
                (cluster, *_state(each, check.patience, now), age(each.since, now))
                if each
                else (cluster, _OPEN, "", "")
                for cluster, each in found
            ),
            nothing="no ClusterHealthCheck names it in a cluster that is there",
        )
        story.grid(
            "Unhealthy",
            (
                (
                    cluster,
                    overview.object_name(one.key),
                    str(one.manifest.get(STATE)),
                    _counts(one.since + check.patience, now) + str(one.manifest.get(MESSAGE)),
                )
                for cluster, each in found
                for one in (each.selected if each else ())
            ),
        )
    return told


_OPEN = "not known yet: waits for a resync"


def _state(found: Selection, patience: timedelta, now: datetime) -> tuple[str, str]:
    if found.error:
        return "fails", found.error
    said = "; ".join(filter(None, (found.message, found.left_out)))
    return ("unhealthy" if counting(found, patience, now) else "healthy"), said


def _counts(at: datetime, now: datetime) -> str:
    return "" if at <= now else f"counts from {stamp(at)}; "


VIEWS = {"healthcheck": View(COLUMNS, rows, manifests, describe)}
