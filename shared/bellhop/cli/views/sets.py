"""ClusterSets and Sets: their clusters, and the triggers and profiles that name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from bellhop.api.kinds import ClusterProfile, ClusterSet, EventTrigger, key_of
from bellhop.catalog.catalog import Catalog
from bellhop.cli.output import Column, Row
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View, select_applied
from bellhop.diagnosis import cluster_status
from bellhop.diagnosis.profile_manifests import cluster_ref
from bellhop.diagnosis.selection_gaps import find_set_gap
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.cluster import SetSelection

COLUMNS = (
    Column("NAME", "name"),
    Column("SELECTS", "selects"),
    Column("MATCHING", "matching"),
    Column("SELECTED", "selected"),
    Column("MAX", "max", shown=lambda value: "-" if value is None else str(value)),
    Column("FAILING", "failing"),
    Column("CLUSTERS", "clusters", wide=True),
)


Item = tuple[ClusterSet, Catalog, Mapping[str, Any]]


def _select(kind: str, here: Installation, query: Query) -> Iterator[Item]:
    catalog = here.catalogs.current()
    for manifest in select_applied(here, query, kind):
        yield catalog.sets[key_of(manifest).place], catalog, manifest


def _manifest(_here: Installation, item: Item) -> Manifest:
    declared, catalog, manifest = item
    place = declared.key.place
    clusters = {"matching": catalog.pool(place), "selected": _members(catalog, place)}
    status = {f"{name}ClusterRefs": list(map(cluster_ref, each)) for name, each in clusters.items()}
    return {**manifest, "status": status}


def _row(_here: Installation, item: Item) -> Row:
    declared, catalog, _ = item
    place = declared.key.place
    members = _members(catalog, place)
    return {
        "namespace": declared.namespace,
        "name": declared.name,
        "selects": _selects(declared),
        "matching": len(catalog.pool(place)),
        "selected": len(members),
        "max": declared.most,
        "failing": len(catalog.choices.get(place, SetSelection()).failing),
        "clusters": ", ".join(members) or "<none>",
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    declared, catalog, _ = item
    place = declared.key.place
    members, failing = _members(catalog, place), catalog.choices.get(place, SetSelection()).failing
    description.begin(declared.kind, place)
    description.field("Selects", _selects(declared))
    description.field("At most", "all of them" if declared.most is None else str(declared.most))
    lack = find_set_gap(declared, catalog)
    description.field("Lacks", f"{lack.message}; {lack.cure}" if lack else "")
    description.table(
        "Clusters",
        (
            (
                key,
                "selected" if key in members else "",
                cluster_status.read_health(here, key).state,
                "stays, as no other can take its place" if key in failing else "",
            )
            for key in sorted(catalog.pool(place), key=lambda key: (key not in members, key))
        ),
        nothing="no cluster is selected or named",
    )
    description.section("Named by", _users(catalog, place))


def _members(catalog: Catalog, place: str) -> Sequence[str]:
    return [key for key in catalog.pool(place) if catalog.has(place, key)]


def _selects(declared: ClusterSet) -> str:
    parts = [str(declared.cluster_selector)] if not declared.cluster_selector.empty else []
    parts += [f"{ref.namespace}/{ref.name}" for ref in declared.cluster_refs]
    return ", ".join(parts) or "<none>"


def _users(catalog: Catalog, place: str) -> Iterator[str]:
    users: list[EventTrigger | ClusterProfile] = [*catalog.triggers.values()]
    users += catalog.profiles.values()
    return (f"{each.kind} {each.place}" for each in users if place in each.cluster_sets)


def _view(kind: str, columns: tuple[Column, ...]) -> View[Item]:
    return View(columns, partial(_select, kind), _row, _manifest, _describe)


VIEWS = {
    "clusterset": _view("ClusterSet", COLUMNS),
    "set": _view("Set", (Column("NAMESPACE", "namespace"), *COLUMNS)),
}
