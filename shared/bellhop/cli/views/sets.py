"""ClusterSets and Sets: which clusters they have, and who names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from bellhop.api.kinds import ClusterProfile, ClusterSet, EventTrigger, key_of
from bellhop.catalog.catalog import Catalog
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row
from bellhop.cli.views.view import Query, View, labels_of
from bellhop.diagnosis import overview, profile_manifests
from bellhop.diagnosis.selection_gaps import no_member
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.record import SetSelection

COLUMNS = (
    Column("NAME", "name"),
    Column("SELECTS", "selects"),
    Column("MATCHING", "matching"),
    Column("SELECTED", "selected"),
    Column("MAX", "max", shown=lambda value: "-" if value is None else str(value)),
    Column("FAILING", "failing"),
    Column("CLUSTERS", "clusters", wide=True),
)


def _found(here: Installation, kind: str, query: Query) -> Iterator[tuple[ClusterSet, Manifest]]:
    catalog = here.catalogs.current()
    for manifest in here.records.manifests.of(kind):
        key = key_of(manifest)
        if query.takes(key.namespace, key.name, labels_of(manifest)):
            yield catalog.sets[key.place], manifest


def manifests(kind: str, here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield sets as they were written, with the clusters that they have as their status."""
    catalog = here.catalogs.current()
    for declared, manifest in _found(here, kind, query):
        place = declared.key.place
        status: dict[str, Any] = {
            "matchingClusterRefs": [
                profile_manifests.cluster_ref(each) for each in catalog.pool(place)
            ],
            "selectedClusterRefs": [
                profile_manifests.cluster_ref(each) for each in _has(catalog, place)
            ],
        }
        yield {**manifest, "status": status}


def rows(kind: str, here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each set."""
    catalog = here.catalogs.current()
    for declared, _ in _found(here, kind, query):
        place = declared.key.place
        has = _has(catalog, place)
        yield {
            "namespace": declared.namespace,
            "name": declared.name,
            "selects": _selects(declared),
            "matching": len(catalog.pool(place)),
            "selected": len(has),
            "max": declared.most,
            "failing": len(catalog.choices.get(place, SetSelection()).failing),
            "clusters": ", ".join(has) or "<none>",
        }


def describe(kind: str, here: Installation, query: Query, story: Story) -> int:
    """Tell of each set which clusters it has, which it could have, and who names it."""
    told = 0
    for declared, _ in _found(here, kind, query):
        told += 1
        _tell(here, declared, story)
    return told


def _tell(here: Installation, declared: ClusterSet, story: Story) -> None:
    catalog, place = here.catalogs.current(), declared.key.place
    has, failing = _has(catalog, place), catalog.choices.get(place, SetSelection()).failing
    story.begin(declared.kind, place)
    story.fact("Selects", _selects(declared))
    story.fact("At most", "all of them" if declared.most is None else str(declared.most))
    lack = no_member(declared, catalog)
    story.fact("Lacks", f"{lack.said}; {lack.cure}" if lack else "")
    story.grid(
        "Clusters",
        (
            (
                key,
                "selected" if key in has else "",
                overview.health(here, key).state,
                "stays, as no other can take its place" if key in failing else "",
            )
            for key in sorted(catalog.pool(place), key=lambda key: (key not in has, key))
        ),
        nothing="no cluster is selected or named",
    )
    story.section("Named by", _users(catalog, place))


def _has(catalog: Catalog, place: str) -> Sequence[str]:
    return [key for key in catalog.pool(place) if catalog.has(place, key)]


def _selects(declared: ClusterSet) -> str:
    told = [str(declared.cluster_selector)] if not declared.cluster_selector.empty else []
    told += [f"{ref.namespace}/{ref.name}" for ref in declared.cluster_refs]
    return ", ".join(told) or "<none>"


def _users(catalog: Catalog, place: str) -> Iterator[str]:
    users: list[EventTrigger | ClusterProfile] = [*catalog.triggers.values()]
    users += catalog.profiles.values()
    return (f"{each.kind} {each.place}" for each in users if place in each.cluster_sets)


def _view(kind: str, columns: tuple[Column, ...]) -> View:
    return View(columns, partial(rows, kind), partial(manifests, kind), partial(describe, kind))


VIEWS = {
    "clusterset": _view("ClusterSet", COLUMNS),
    "set": _view("Set", (Column("NAMESPACE", "namespace"), *COLUMNS)),
}
