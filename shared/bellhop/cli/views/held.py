"""What is held: reports of which too much ended at once, and changes that remove too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bellhop.api.kinds import event_report
from bellhop.cli import output
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, count
from bellhop.cli.views.view import Query, View
from bellhop.diagnosis.held_deletions import HeldReport, held, objects
from bellhop.diagnosis.held_removals import HeldChange, described, held_changes, rule_name
from bellhop.diagnosis.overview import object_name
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest

COLUMNS = (
    Column("CLUSTER", "cluster"),
    Column("EVENTSOURCE", "eventsource"),
    Column("HELD", "held"),
    Column("OF", "of", shown=lambda value: str(value or "-")),
    Column("SINCE", "since", wide=True, shown=output.stamp),
    Column("EXAMPLES", "examples", wide=True),
    Column("CHANGE", "change", shown=lambda value: str(value or "-")),
    Column("WHY", "why", prose=True),
)


def _found(here: Installation, query: Query) -> Iterator[tuple[Mapping[str, str], HeldReport]]:
    for each in held(here):
        namespace, _, name = each.hold.cluster.partition("/")
        report = event_report(namespace, name, each.hold.source, [], collect=False)
        metadata = report["metadata"]
        if query.takes(namespace, metadata["name"], metadata["labels"]):
            yield metadata, each


def rows(here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each report."""
    for metadata, each in _found(here, query):
        yield {
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "cluster": each.hold.cluster,
            "eventsource": each.hold.source,
            "held": each.number,
            "of": each.hold.of,
            "since": each.hold.since,
            "examples": each.named,
            "change": "",
            "why": each.why,
        }
    for change in _changes(here, query):
        yield {
            "namespace": "",
            "name": change.name,
            "cluster": ", ".join(change.clusters[:1]) + ", …" * (len(change.clusters) > 1),
            "eventsource": "-",
            "held": change.addons,
            "of": change.of,
            "since": change.since,
            "examples": ", ".join(map(rule_name, change.removals)),
            "change": change.name,
            "why": change.why,
        }


def _changes(here: Installation, query: Query) -> Iterator[HeldChange]:
    return (each for each in held_changes(here) if query.takes("", each.name, {}))


def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield reports as objects, by their names as EventReports."""
    for metadata, each in _found(here, query):
        status = {
            "cluster": each.hold.cluster,
            "eventSource": each.hold.source,
            "held": each.number,
            "of": each.hold.of,
            "since": each.hold.since.isoformat(),
            "decided": each.hold.held_at is not None,
            "cause": each.hold.cause,
            "why": each.why,
            "objects": [object_name(key) for key in objects(here, each.hold)],
        }
        yield {
            "apiVersion": "bellhop.dev/v1",
            "kind": "HeldReport",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "status": status,
        }
    for change in _changes(here, query):
        yield {
            "apiVersion": "bellhop.dev/v1",
            "kind": "HeldChange",
            "metadata": {"name": change.name},
            "status": {
                "held": change.addons,
                "of": change.of,
                "since": change.since.isoformat() if change.since else "",
                "cause": change.cause,
                "why": change.why,
                "removals": [
                    {
                        "rule": rule_name(each),
                        "profiles": each.profiles,
                        "addons": each.addons,
                        "clusters": each.number,
                        "clusterNames": list(each.clusters),
                    }
                    for each in change.removals
                ],
            },
        }


def describe(here: Installation, query: Query, story: Story) -> int:
    """Tell of each report which objects are held, and why."""
    told = 0
    for metadata, each in _found(here, query):
        told += 1
        story.begin("HeldReport", f"{metadata['namespace']}/{metadata['name']}")
        story.fact("Cluster", each.hold.cluster)
        story.fact("EventSource", each.hold.source)
        story.fact("Since", output.stamp(each.hold.since))
        story.fact("Why", each.why)
        names = (object_name(key) for key in objects(here, each.hold))
        story.section(count(each.number, "object"), names)
    for change in _changes(here, query):
        told += 1
        story.begin("HeldChange", change.name)
        story.fact("Cause", change.cause)
        story.fact("Since", output.stamp(change.since))
        story.fact("Release", change.release)
        story.section(count(change.addons, "add-on"), map(described, change.removals))
    return told


VIEWS = {"heldreport": View(COLUMNS, rows, manifests, describe)}
