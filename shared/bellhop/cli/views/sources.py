"""EventSources: where they are in force, and what matches."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.cli.output import Column, Row, age, count
from bellhop.cli.story import Story
from bellhop.cli.views.view import Query, View, labels_of, name_of
from bellhop.fleet import overview
from bellhop.fleet.installation import Installation
from bellhop.fleet.reports import reports
from bellhop.model.kinds import EventSource, ResourceSelector
from bellhop.ports.kube import Manifest

COLUMNS = (
    Column("NAME", "name"),
    Column("SELECTS", "selects"),
    Column("CLUSTERS", "clusters"),
    Column("MATCHES", "matches"),
    Column("ERRORS", "errors"),
    Column("COLLECTS", "collects", wide=True, shown=lambda value: str(value).lower()),
    Column("CONDITIONS", "conditions", wide=True),
)


def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield EventSources as they were written."""
    for manifest in here.records.manifests.of("EventSource"):
        if query.takes("", name_of(manifest), labels_of(manifest)):
            yield manifest


def rows(here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each EventSource."""
    catalog = here.catalogs.current()
    for manifest in manifests(here, query):
        source = catalog.sources[name_of(manifest)]
        found = reports(here, source.name)
        yield {
            "name": source.name,
            "selects": ", ".join(_selects(selector) for selector in source.selectors) or "<none>",
            "clusters": len(found),
            "matches": sum(len(each.matching) for each in found.values()),
            "errors": sum(len(each.errors) for each in found.values()),
            "collects": source.collect_resources,
            "conditions": "; ".join(_conditions(each) for each in source.selectors) or "<none>",
        }


def describe(here: Installation, query: Query, story: Story) -> int:
    """Tell where sources are in force, what matches and what fails."""
    told = 0
    for manifest in manifests(here, query):
        told += 1
        _tell(here, here.catalogs.current().sources[name_of(manifest)], story)
    return told


def _tell(here: Installation, source: EventSource, story: Story) -> None:
    catalog = here.catalogs.current()
    now = here.records.clock.now()
    found = reports(here, source.name)
    story.begin(source.kind, source.name)
    story.fact("Collects", "whole objects" if source.collect_resources else "references only")
    for pace in overview.slow(here):
        if pace.source == source.name:
            story.fact("Slow", overview.slowness(here, pace))
    story.section(
        "Selects", (f"{_selects(each)}, {_conditions(each)}" for each in source.selectors)
    )
    if source.aggregation:
        story.fact("Aggregates", "a Lua script chooses among all that is selected")
    story.grid(
        "In force in",
        (
            (
                cluster,
                count(len(each.matching), "match", "matches"),
                "by " + ", ".join(catalog.triggers_on(cluster, source.name)),
                each.message,
            )
            for cluster, each in found.items()
        ),
        nothing="no cluster: no trigger that names this source selects one",
    )
    story.grid(
        "Matches",
        (
            (match.cluster, overview.object_name(match.key), age(match.since, now), match.message)
            for each in found.values()
            for match in each.matching
        ),
    )
    story.section(
        "Errors",
        (f"{cluster}  {said}" for cluster, each in found.items() for said in each.told),
    )


def _selects(selector: ResourceSelector) -> str:
    gvk = selector.gvk
    return f"{gvk.kind}.{gvk.version}.{gvk.group}" if gvk.group else f"{gvk.kind}.{gvk.version}"


def _conditions(selector: ResourceSelector) -> str:
    words = [f"namespace {selector.namespace}" if selector.namespace else "any namespace"]
    if selector.name:
        words.append(f"name {selector.name}")
    words += [
        f"{each.key} {each.operation} {each.value}".strip() for each in selector.label_filters
    ]
    if selector.selector is not None and not selector.selector.empty:
        words.append(str(selector.selector))
    ruled = [f"CEL rule {each.name}" for each in selector.rules]
    if selector.script:
        ruled.append("a Lua script")
    if ruled:
        words.append(" or ".join(ruled))
    return ", ".join(words)


VIEWS = {"eventsource": View(COLUMNS, rows, manifests, describe)}
