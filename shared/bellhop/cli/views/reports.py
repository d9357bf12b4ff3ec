"""EventReports: the objects of a cluster that match a source, made from the single matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.api.kinds import event_report
from bellhop.cli.output import Column, Row, format_age, format_count, format_time
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View
from bellhop.diagnosis import catalog_hints, names, source_status, template_hints
from bellhop.diagnosis.event_reports import (
    join_failures,
    list_failed_profiles,
    make_event_report,
)
from bellhop.diagnosis.held_deletions import read_held_report
from bellhop.diagnosis.source_status import (
    AGGREGATION,
    Report,
    find_phase,
    has_aggregation,
    read_report,
)
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest

COLUMNS = (
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("MATCHES", "matches"),
    Column("ERRORS", "errors"),
    Column("PHASE", "phase"),
    Column("CHANGED", "changed", wide=True, shown=lambda value: value or "-"),
    Column("RESYNCED", "swept", wide=True),
    Column("EVENTSOURCE", "source", wide=True),
    Column("CLUSTER", "cluster", wide=True),
    Column("MESSAGE", "message", wide=True),
)


Item = tuple[Mapping[str, Any], str, str, Report, bool]
"""Metadata, cluster, source, report, and whether values of Secrets are shown."""


def _select(here: Installation, query: Query) -> Iterator[Item]:
    for cluster, source in source_status.list_sources_in_force(here):
        namespace, _, name = cluster.partition("/")
        metadata = event_report(namespace, name, source, [], collect=False)["metadata"]
        if query.matches(namespace, metadata["name"], metadata["labels"]):
            yield metadata, cluster, source, read_report(here, cluster, source), query.show_secrets


def _manifest(here: Installation, item: Item) -> Manifest:
    """Return a report in the shape that users of Sveltos know."""
    _, cluster, source, found, show = item
    collect = here.catalogs.current().sources[source].collect_resources
    manifest = make_event_report(here, cluster, source, found, collect=collect, show=show)
    status: dict[str, str] = {"phase": find_phase(here, cluster, source, found)}
    resynced = here.records.health.head(cluster).swept_at
    if resynced:
        status["sweptAt"] = format_time(resynced)
    return {**manifest, "status": {**status, **_status(here, cluster, source, found)}}


def _row(here: Installation, item: Item) -> Row:
    metadata, cluster, source, found, _ = item
    now = here.records.clock.now()
    newest = max((match.since for match in found.matching), default=None)
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "matches": len(found.matching),
        "errors": len(found.errors),
        "phase": find_phase(here, cluster, source, found),
        "changed": format_age(newest, now) if newest else "",
        "swept": format_age(here.records.health.head(cluster).swept_at, now),
        "source": source,
        "cluster": cluster,
        "message": "; ".join(_status(here, cluster, source, found).values()),
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    metadata, cluster, source, found, _ = item
    now = here.records.clock.now()
    description.begin("EventReport", f"{metadata['namespace']}/{metadata['name']}")
    description.field("Cluster", cluster)
    description.field("EventSource", source)
    description.field("Phase", find_phase(here, cluster, source, found))
    description.field("Triggers", ", ".join(here.catalogs.current().triggers_on(cluster, source)))
    description.field("Swept", format_age(here.records.health.head(cluster).swept_at, now))
    description.field(AGGREGATION, _aggregation(found) if has_aggregation(here, source) else "")
    description.table(
        format_count(len(found.matching), "object matches", "objects match"),
        (
            (names.object_name(match.key), f"since {format_age(match.since, now)}", match.message)
            for match in found.matching
        ),
    )
    description.field("Held", _status(here, cluster, source, found).get("held") or "")
    description.section("Errors", found.messages)
    description.section("Failed profiles", list_failed_profiles(here, cluster, source))
    description.section("Hints", _hints(here, cluster, source))


def _aggregation(found: Report) -> str:
    if found.awaited:
        return "waits for a resync of all objects of the source"
    chosen = f"{len(found.matching)} of {format_count(found.given, 'object')}"
    return f"{chosen}: {found.message}" if found.message else chosen


def _status(here: Installation, cluster: str, source: str, found: Report) -> dict[str, str]:
    status: dict[str, str] = {}
    if errors := list(found.messages):
        status["agentFailureMessage"] = join_failures(errors)
    if failed := list(list_failed_profiles(here, cluster, source)):
        status["failureMessage"] = join_failures(failed)
    hold = here.records.holds.get(cluster, source)
    if hold and (held := read_held_report(here, hold.value)).number:
        status["held"] = f"{format_count(held.number, 'object')}: {held.why}"
    if hints := list(_hints(here, cluster, source)):
        status["hint"] = "; ".join(hints)
    return status


def _hints(here: Installation, cluster: str, source: str) -> Iterator[str]:
    """Yield what the templates for a report's objects probably lack."""
    catalog, namespace = here.catalogs.current(), cluster.partition("/")[0]
    for name in catalog.triggers_on(cluster, source):
        trigger = catalog.triggers[name]
        yield from catalog_hints.list_trigger_hints(
            catalog, trigger, here.catalogs.holder, namespace
        )
        for profile in here.records.profiles.of(name, cluster):
            yield from template_hints.list_content_hints(profile.contents)


VIEWS = {"eventreport": View(COLUMNS, _select, _row, _manifest, _describe)}
