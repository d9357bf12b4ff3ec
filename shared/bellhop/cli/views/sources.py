"""EventSources: the clusters where they are in force, and the objects that match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bellhop.api.kinds import EventSource, ResourceSelector
from bellhop.api.source import CLOUD_EVENT_TTL, MessageSelector
from bellhop.cli.output import Column, Row, format_age, format_count
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View, name_of, select_applied
from bellhop.core.gvk import CLOUD_EVENT, GVK
from bellhop.diagnosis import access_gaps, names, source_status
from bellhop.diagnosis.source_status import read_reports
from bellhop.installation import Installation
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


Item = tuple[EventSource, Mapping[str, Any]]


def _select(here: Installation, query: Query) -> Iterator[Item]:
    catalog = here.catalogs.current()
    for manifest in select_applied(here, query, "EventSource"):
        yield catalog.sources[name_of(manifest)], manifest


def _manifest(_here: Installation, item: Item) -> Manifest:
    return dict(item[1])


def _row(here: Installation, item: Item) -> Row:
    source = item[0]
    found = read_reports(here, source.name)
    return {
        "name": source.name,
        "selects": ", ".join(_selects(each) for each in _selectors(source)) or "<none>",
        "clusters": len(found),
        "matches": sum(len(each.matching) for each in found.values()),
        "errors": sum(len(each.errors) for each in found.values()),
        "collects": source.collect_resources,
        "conditions": "; ".join(_conditions(each) for each in _selectors(source)) or "<none>",
        "waitsFor": "; ".join(_waits(here, source)),
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    source = item[0]
    catalog = here.catalogs.current()
    now = here.records.clock.now()
    found = read_reports(here, source.name)
    description.begin(source.kind, source.name)
    description.field(
        "Collects", "whole objects" if source.collect_resources else "references only"
    )
    for script in source_status.list_slow_scripts(here):
        if script.source == source.name:
            description.field("Slow", source_status.describe_slow_script(here, script))
    if source.account:
        description.field("Reads as", f"service account '{source.account}' of each cluster")
        lacks = ((each, access_gaps.list_access_gaps(here.records, each, source)) for each in found)
        description.section(
            "May not see", (f"{place}: {each}" for place, all_ in lacks for each in all_)
        )
    description.section(
        "Selects", (f"{_selects(each)}, {_conditions(each)}" for each in _selectors(source))
    )
    if waits := list(_waits(here, source)):
        description.section("Waits for", waits)
    if source.cloud_event_ttl:
        description.field(
            "Keeps", f"a CloudEvent for {source.annotations[CLOUD_EVENT_TTL]} after it came"
        )
    if source.aggregation:
        description.field("Aggregates", "a Lua script chooses among all that is selected")
    description.table(
        "In force in",
        (
            (
                cluster,
                format_count(len(each.matching), "match", "matches"),
                "by " + ", ".join(catalog.triggers_on(cluster, source.name)),
                each.message,
            )
            for cluster, each in found.items()
        ),
        nothing="no cluster: no trigger that names this source selects one",
    )
    description.table(
        "Matches",
        (
            (
                match.cluster,
                names.object_name(match.key),
                format_age(match.since, now),
                match.message,
            )
            for each in found.values()
            for match in each.matching
        ),
    )
    description.section(
        "Errors",
        (f"{cluster}  {error}" for cluster, each in found.items() for error in each.messages),
    )


def _waits(here: Installation, source: EventSource) -> Iterator[str]:
    """Yield the kinds that some clusters do not serve yet, with the first cluster."""
    for gvk, clusters in source_status.find_unserved_kinds(here, source.name).items():
        more = f" and {len(clusters) - 1} more" if len(clusters) > 1 else ""
        place = f"{_format_kind(gvk)} in {clusters[0]}{more}"
        yield f"{place}: not served there, looked for at each resync"


def _selectors(source: EventSource) -> Sequence[_Selector]:
    return (*source.selectors, *source.messages)


def _selects(selector: _Selector) -> str:
    if isinstance(selector, MessageSelector):
        return CLOUD_EVENT.kind
    return _format_kind(selector.gvk)


def _format_kind(gvk: GVK) -> str:
    return f"{gvk.kind}.{gvk.version}.{gvk.group}" if gvk.group else f"{gvk.kind}.{gvk.version}"


def _conditions(selector: _Selector) -> str:
    words = (
        _event_conditions(selector)
        if isinstance(selector, MessageSelector)
        else _object_conditions(selector)
    )
    ruled = [f"CEL rule {each.name}" for each in selector.rules]
    if selector.script:
        ruled.append("a Lua script")
    if ruled:
        words.append(" or ".join(ruled))
    return ", ".join(words)


def _event_conditions(selector: MessageSelector) -> list[str]:
    """Return the attributes of a CloudEvent, with their regular expressions."""
    asked = selector.criterion
    parts = {
        "source": asked.source,
        "type": asked.type,
        "subject": asked.subject,
        CHANNEL: asked.channel,
    }
    return [f"{name} ~ {each}" for name, each in parts.items() if each] or ["any event"]


def _object_conditions(selector: ResourceSelector) -> list[str]:
    words = [f"namespace {selector.namespace}" if selector.namespace else "any namespace"]
    if selector.name:
        words.append(f"name {selector.name}")
    words += [
        f"{each.key} {each.operation} {each.value}".strip() for each in selector.label_filters
    ]
    if selector.selector is not None and not selector.selector.empty:
        words.append(str(selector.selector))
    return words


VIEWS = {"eventsource": View(COLUMNS, _select, _row, _manifest, _describe)}
