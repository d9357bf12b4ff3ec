"""EventReports: what of a cluster matches a source now, seen over the single matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.api.kinds import event_report
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, age, count, stamp
from bellhop.cli.redaction import hidden
from bellhop.cli.views.view import Query, View
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.diagnosis import catalog_hints, overview, template_hints
from bellhop.diagnosis.held_deletions import reported
from bellhop.diagnosis.reports import AGGREGATION, Report, aggregates, object_of, phase, report
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.record import Match

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


def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield reports in the shape that users of Sveltos know."""
    for _, cluster, source, each in _reports(here, query):
        collect = here.catalogs.current().sources[source].collect_resources
        resources = [
            _resource(here, match, collect=collect, query=query) for match in each.matching
        ]
        namespace, _, name = cluster.partition("/")
        manifest = event_report(namespace, name, source, resources, collect=collect)
        status: dict[str, str] = {"phase": phase(here, cluster, source, each)}
        swept = here.records.health.head(cluster).swept_at
        if swept:
            status["sweptAt"] = stamp(swept)
        yield {**manifest, "status": {**status, **_status(here, cluster, source, each)}}


def rows(here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each report."""
    now = here.records.clock.now()
    for metadata, cluster, source, each in _reports(here, query):
        newest = max((match.since for match in each.matching), default=None)
        status = _status(here, cluster, source, each)
        yield {
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "matches": len(each.matching),
            "errors": len(each.errors),
            "phase": phase(here, cluster, source, each),
            "changed": age(newest, now) if newest else "",
            "swept": age(here.records.health.head(cluster).swept_at, now),
            "source": source,
            "cluster": cluster,
            "message": "; ".join(status.values()),
        }


def describe(here: Installation, query: Query, story: Story) -> int:
    """Tell of each report which objects match, since when, and what fails."""
    told = 0
    now = here.records.clock.now()
    for metadata, cluster, source, each in _reports(here, query):
        told += 1
        story.begin("EventReport", f"{metadata['namespace']}/{metadata['name']}")
        story.fact("Cluster", cluster)
        story.fact("EventSource", source)
        story.fact("Phase", phase(here, cluster, source, each))
        story.fact("Triggers", ", ".join(here.catalogs.current().triggers_on(cluster, source)))
        story.fact("Swept", age(here.records.health.head(cluster).swept_at, now))
        story.fact(AGGREGATION, _aggregation(each) if aggregates(here, source) else "")
        story.grid(
            count(len(each.matching), "object matches", "objects match"),
            (
                (overview.object_name(match.key), f"since {age(match.since, now)}", match.message)
                for match in each.matching
            ),
        )
        held = _status(here, cluster, source, each).get("held")
        story.fact("Held", held or "")
        story.section("Errors", each.told)
        story.section("Failed profiles", _failed(here, cluster, source))
        story.section("Hints", _hints(here, cluster, source))
    return told


def _aggregation(found: Report) -> str:
    if found.awaited:
        return "waits for a resync of all objects of the source"
    said = f"{len(found.matching)} of {count(found.given, 'object')}"
    return f"{said}: {found.message}" if found.message else said


def _reports(
    here: Installation, query: Query
) -> Iterator[tuple[Mapping[str, Any], str, str, Report]]:
    for cluster, source in overview.sources_in_force(here):
        namespace, _, name = cluster.partition("/")
        metadata = event_report(namespace, name, source, [], collect=False)["metadata"]
        if query.takes(namespace, metadata["name"], metadata["labels"]):
            yield metadata, cluster, source, report(here, cluster, source)


def _resource(here: Installation, match: Match, *, collect: bool, query: Query) -> dict[str, Any]:
    if not collect and match.key.gvk != CLOUD_EVENT:
        return _reference(match.key)
    manifest = object_of(here, match)
    if manifest is None:
        # It went between the two reads, or is lost until the next sweep writes it anew.
        return _reference(match.key)
    return dict(manifest) if query.show_secrets else hidden(dict(manifest))


def _reference(key: ObjectKey) -> dict[str, Any]:
    metadata = {"name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {"apiVersion": key.gvk.api_version, "kind": key.gvk.kind, "metadata": metadata}


def _status(here: Installation, cluster: str, source: str, found: Report) -> dict[str, str]:
    status: dict[str, str] = {}
    failing = list(found.told)
    if failing:
        more = f" (and {count(len(failing) - 1, 'other')})" if len(failing) > 1 else ""
        status["agentFailureMessage"] = failing[0] + more
    failed = list(_failed(here, cluster, source))
    if failed:
        more = f" (and {count(len(failed) - 1, 'other')})" if len(failed) > 1 else ""
        status["failureMessage"] = failed[0] + more
    hold = here.records.holds.get(cluster, source)
    if hold and (found_held := reported(here, hold.value)).number:
        status["held"] = f"{count(found_held.number, 'object')}: {found_held.why}"
    hints = list(_hints(here, cluster, source))
    if hints:
        status["hint"] = "; ".join(hints)
    return status


def _hints(here: Installation, cluster: str, source: str) -> Iterator[str]:
    """Yield what the templates that take a report's objects probably lack."""
    catalog, namespace = here.catalogs.current(), cluster.partition("/")[0]
    for name in catalog.triggers_on(cluster, source):
        trigger = catalog.triggers[name]
        yield from catalog_hints.of_trigger(catalog, trigger, here.catalogs.holder, namespace)
        for profile in here.records.profiles.of(name, cluster):
            yield from template_hints.of_contents(profile.contents)


def _failed(here: Installation, cluster: str, source: str) -> Iterator[str]:
    for trigger in here.catalogs.current().triggers_on(cluster, source):
        for profile in here.records.profiles.of(trigger, cluster):
            if profile.error:
                yield f"{profile.name}: {profile.error}"


VIEWS = {"eventreport": View(COLUMNS, rows, manifests, describe)}
