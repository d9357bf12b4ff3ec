"""Profiles that `dependsOn` deploys to clusters which they do not select, as in Sveltos.

Authors of `dependsOn` seldom read the other profile's selector, so `apply` warns with the number.
A profile without any selector is there to be deployed with its dependents: it gets no warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from bellhop.api.kinds import ClusterProfile, Declaration
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.dependencies import reached

_MOST = 10
"""Warnings of one command."""

_CLUSTERS = 3
"""Clusters that a sentence names."""


def warn_of_dependencies(catalog: Catalog, declared: Iterable[Declaration]) -> Iterator[str]:
    """Yield a sentence for each dependency that a dependent takes to more clusters.

    Of profiles that are declared in the catalog those that depend on others are looked at, and
    those that others depend on.
    """
    names = {each.rule for each in declared if isinstance(each, ClusterProfile)}
    found = (
        sentence
        for dependent, dependency in _pairs(catalog, names)
        if (sentence := _said(catalog, dependent, dependency))
    )
    yield from islice(found, _MOST)
    if rest := sum(1 for _ in found):
        yield f"{rest} more dependencies are deployed to clusters that they do not select"


def _pairs(catalog: Catalog, names: set[str]) -> Iterator[tuple[ClusterProfile, ClusterProfile]]:
    """Yield dependents and what they depend on, however far, where one of both is among names."""
    for place in sorted(catalog.after) if names else ():
        for other in sorted(reached([place], catalog.after)):
            if other in catalog.profiles and not names.isdisjoint((place, other)):
                yield catalog.profiles[place], catalog.profiles[other]


def _said(catalog: Catalog, dependent: ClusterProfile, dependency: ClusterProfile) -> str:
    selects = not dependency.cluster_selector.empty
    if not (selects or dependency.cluster_refs or dependency.cluster_sets):
        return ""
    asked = catalog.own_destinations(dependent)
    more = sorted(asked - catalog.own_destinations(dependency))
    if not more:
        return ""
    named = ", ".join(more[:_CLUSTERS]) + ", …" * (len(more) > _CLUSTERS)
    return (
        f"{dependent.kind} '{dependent.place}' depends on '{dependency.place}', which selects"
        f" {len(asked) - len(more)} of its {len(asked)} clusters: dependsOn deploys"
        f" '{dependency.place}' to the other {len(more)}, too ({named})"
    )
