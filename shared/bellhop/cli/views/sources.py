"""EventSources: where they are in force, and what matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bellhop.api.kinds import EventSource, ResourceSelector
from bellhop.api.source import CLOUD_EVENT_TTL, MessageSelector
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row, age, count
from bellhop.cli.views.view import Query, View, labels_of, name_of
from bellhop.core.gvk import CLOUD_EVENT, GVK
from bellhop.diagnosis import access_gaps, overview
from bellhop.diagnosis.reports import reports
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.rendering.cloud_events import CHANNEL

_Selector = ResourceSelector | MessageSelector

COLUMNS = (
    Column("NAME", "name"),
    Column("SELECTS", "selects"),
    Column("CLUSTERS", "clusters"),
    Column("MATCHES", "matches"),
    Column("ERRORS", "errors"),
    Column("COLLECTS", "collects", wide=True, shown=lambda value: str(value).lower()),
    Column("CONDITIONS", "conditions", wide=True),
    Column("WAITS FOR", "waitsFor", wide=True, shown=lambda value: value or "-"),
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
            "selects": ", ".join(_selects(each) for each in _selectors(source)) or "<none>",
            "clusters": len(found),
            "matches": sum(len(each.matching) for each in found.values()),
            "errors": sum(len(each.errors) for each in found.values()),
            "collects": source.collect_resources,
            "conditions": "; ".join(_conditions(each) for each in _selectors(source)) or "<none>",
            "waitsFor": "; ".join(_waits(here, source)),
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
    if source.account:
        story.fact("Reads as", f"service account '{source.account}' of each cluster")
        lacks = ((each, access_gaps.lacks(here.records, each, source)) for each in found)
        story.section("May not see", (f"{place}: {said}" for place, all_ in lacks for said in all_))
    story.section(
        "Selects", (f"{_selects(each)}, {_conditions(each)}" for each in _selectors(source))
    )
    if waits := list(_waits(here, source)):
        story.section("Waits for", waits)
    if source.cloud_event_ttl:
        story.fact("Keeps", f"a CloudEvent for {source.annotations[CLOUD_EVENT_TTL]} after it came")
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


def _waits(here: Installation, source: EventSource) -> Iterator[str]:
    """Yield the kinds that some clusters do not serve yet, with the first of these."""
    for gvk, clusters in overview.awaited_kinds(here, source.name).items():
        more = f" and {len(clusters) - 1} more" if len(clusters) > 1 else ""
        yield f"{_shown(gvk)} in {clusters[0]}{more}: not served there, looked for at each resync"


def _selectors(source: EventSource) -> Sequence[_Selector]:
    return (*source.selectors, *source.messages)


def _selects(selector: _Selector) -> str:
    if isinstance(selector, MessageSelector):
        return CLOUD_EVENT.kind
    return _shown(selector.gvk)


def _shown(gvk: GVK) -> str:
    return f"{gvk.kind}.{gvk.version}.{gvk.group}" if gvk.group else f"{gvk.kind}.{gvk.version}"


def _conditions(selector: _Selector) -> str:
    words = _of_event(selector) if isinstance(selector, MessageSelector) else _of_object(selector)
    ruled = [f"CEL rule {each.name}" for each in selector.rules]
    if selector.script:
        ruled.append("a Lua script")
    if ruled:
        words.append(" or ".join(ruled))
    return ", ".join(words)


def _of_event(selector: MessageSelector) -> list[str]:
    """Say which attributes are asked for, by which regular expressions."""
    asked = selector.criterion
    parts = {
        "source": asked.source,
        "type": asked.type,
        "subject": asked.subject,
        CHANNEL: asked.channel,
    }
    return [f"{name} ~ {each}" for name, each in parts.items() if each] or ["any event"]


def _of_object(selector: ResourceSelector) -> list[str]:
    words = [f"namespace {selector.namespace}" if selector.namespace else "any namespace"]
    if selector.name:
        words.append(f"name {selector.name}")
    words += [
        f"{each.key} {each.operation} {each.value}".strip() for each in selector.label_filters
    ]
    if selector.selector is not None and not selector.selector.empty:
        words.append(str(selector.selector))
    return words


VIEWS = {"eventsource": View(COLUMNS, rows, manifests, describe)}
