"""Held deletions: of reports that lost too many objects, and of changes that remove too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.api.kinds import event_report
from bellhop.cli import output
from bellhop.cli.output import Column, Row, format_count
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View
from bellhop.diagnosis.held_clusters import HeldClusters, list_held_clusters
from bellhop.diagnosis.held_deletions import (
    HeldChange,
    HeldReport,
    describe_removal,
    format_rule,
    list_held_changes,
    list_held_objects,
    list_held_reports,
)
from bellhop.diagnosis.names import object_name
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest

COLUMNS = (
    Column("CLUSTER", "cluster"),
    Column("EVENTSOURCE", "eventsource"),
    Column("HELD", "held"),
    Column("OF", "of", shown=lambda value: str(value or "-")),
    Column("SINCE", "since", wide=True, shown=output.format_time),
    Column("EXAMPLES", "examples", wide=True),
    Column("CHANGE", "change", shown=lambda value: str(value or "-")),
    Column("WHY", "why", prose=True),
)


_EXAMPLES = 3

Item = HeldReport | HeldChange | HeldClusters


def _select(here: Installation, query: Query) -> Iterator[Item]:
    for each in list_held_reports(here):
        metadata = _metadata(each)
        if query.matches(metadata["namespace"], metadata["name"], metadata["labels"]):
            yield each
    changes: list[HeldChange | HeldClusters] = [*list_held_changes(here), *list_held_clusters(here)]
    yield from (each for each in changes if query.matches("", each.name, {}))


def _metadata(item: HeldReport) -> Mapping[str, Any]:
    """Return the metadata of the EventReport whose objects are held."""
    namespace, _, name = item.hold.cluster.partition("/")
    report = event_report(namespace, name, item.hold.source, [], collect=False)
    metadata: Mapping[str, Any] = report["metadata"]
    return metadata


def _row(_here: Installation, item: Item) -> Row:
    if isinstance(item, HeldChange):
        return {
            "namespace": "",
            "name": item.name,
            "cluster": ", ".join(item.clusters[:1]) + ", …" * (len(item.clusters) > 1),
            "eventsource": "-",
            "held": item.addons,
            "of": item.of,
            "since": item.since,
            "examples": ", ".join(map(format_rule, item.removals)),
            "change": item.name,
            "why": item.why,
        }
    if isinstance(item, HeldClusters):
        return {
            "namespace": "",
            "name": item.name,
            "cluster": ", ".join(item.clusters[:1]) + ", …" * (len(item.clusters) > 1),
            "eventsource": "-",
            "held": len(item.clusters),
            "of": None,
            "since": item.since,
            "examples": ", ".join(item.clusters[:_EXAMPLES]),
            "change": item.name,
            "why": item.why,
        }
    metadata = _metadata(item)
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "cluster": item.hold.cluster,
        "eventsource": item.hold.source,
        "held": item.number,
        "of": item.hold.of,
        "since": item.hold.since,
        "examples": item.named,
        "change": "",
        "why": item.why,
    }


def _manifest(here: Installation, item: Item) -> Manifest:
    if isinstance(item, HeldChange):
        return _object("HeldChange", {"name": item.name}, _change_status(item))
    if isinstance(item, HeldClusters):
        clusters, since = list(item.clusters), item.since.isoformat()
        found = {"held": len(clusters), "since": since, "why": item.why, "clusterNames": clusters}
        return _object("HeldClusters", {"name": item.name}, found)
    metadata = _metadata(item)
    status = {
        "cluster": item.hold.cluster,
        "eventSource": item.hold.source,
        "held": item.number,
        "of": item.hold.of,
        "since": item.hold.since.isoformat(),
        "decided": item.hold.held_at is not None,
        "cause": item.hold.cause,
        "why": item.why,
        "objects": [object_name(key) for key in list_held_objects(here, item.hold)],
    }
    named = {"name": metadata["name"], "namespace": metadata["namespace"]}
    return _object("HeldReport", named, status)


def _object(kind: str, metadata: Mapping[str, str], status: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": "bellhop.dev/v1", "kind": kind, "metadata": metadata, "status": status}


def _change_status(change: HeldChange) -> dict[str, Any]:
    return {
        "held": change.addons,
        "of": change.of,
        "since": change.since.isoformat() if change.since else "",
        "cause": change.cause,
        "why": change.why,
        "removals": [
            {
                "rule": format_rule(each),
                "profiles": each.profiles,
                "addons": each.addons,
                "clusters": each.number,
                "clusterNames": list(each.clusters),
            }
            for each in change.removals
        ],
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    if isinstance(item, HeldChange):
        description.begin("HeldChange", item.name)
        description.field("Cause", item.cause)
        description.field("Since", output.format_time(item.since))
        description.field("Release", item.release)
        description.section(
            format_count(item.addons, "add-on"), map(describe_removal, item.removals)
        )
        return
    if isinstance(item, HeldClusters):
        description.begin("HeldClusters", item.name)
        description.field("Why", item.why)
        description.field("Since", output.format_time(item.since))
        description.section(format_count(len(item.clusters), "cluster"), item.clusters)
        return
    metadata = _metadata(item)
    description.begin("HeldReport", f"{metadata['namespace']}/{metadata['name']}")
    description.field("Cluster", item.hold.cluster)
    description.field("EventSource", item.hold.source)
    description.field("Since", output.format_time(item.hold.since))
    description.field("Why", item.why)
    names = (object_name(key) for key in list_held_objects(here, item.hold))
    description.section(format_count(item.number, "object"), names)


VIEWS = {"heldreport": View(COLUMNS, _select, _row, _manifest, _describe)}
