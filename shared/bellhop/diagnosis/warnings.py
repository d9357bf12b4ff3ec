"""Warnings of `bellhop apply`: manifests that select nothing now, and how to fix them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from bellhop.api.kinds import (
    ClusterProfile,
    ClusterPromotion,
    ClusterSet,
    Declaration,
    EventSource,
    EventTrigger,
    Selector,
)
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.dependencies import reached
from bellhop.diagnosis.promotion_warnings import warn_of_promotions
from bellhop.diagnosis.selection_gaps import (
    Declared,
    Gap,
    KnownRefs,
    describe_missing_ref,
    find_destination_gap,
    find_profile_gap,
    find_set_gap,
    find_source_cluster_gap,
    find_source_gap,
    lacks_source,
    list_foreign_namespaces,
    list_missing_refs,
)
from bellhop.installation import Installation

MAX_WARNINGS = 10
"""Sentences of one sort in an output."""

_SVELTOS_CLUSTER = ("lib.projectsveltos.io", "SveltosCluster")
D = TypeVar("D", EventTrigger, ClusterProfile, ClusterSet, EventSource)


def list_warnings(here: Installation, declared: Iterable[Declaration]) -> Iterator[str]:
    """Yield a sentence for each trigger, profile or set that selects nothing."""
    catalog = here.catalogs.known()
    declared = list(declared)
    triggers = [each for each in declared if isinstance(each, EventTrigger)]
    profiles = [each for each in declared if isinstance(each, ClusterProfile)]
    yield from _warn_of_gaps(
        triggers, "no source cluster", find_source_cluster_gap, _source_criteria, catalog
    )
    if catalog.clusters:
        yield from _warn_of_gaps(
            triggers, "no destination", find_destination_gap, _destination_criteria, catalog
        )
    promotions = [each for each in declared if isinstance(each, ClusterPromotion)]
    profiles += [x for each in promotions for x in each.profiles if not x.verifies]
    yield from warn_of_promotions(catalog, promotions)
    yield from _warn_of_gaps(profiles, "no cluster", find_profile_gap, _profile_criteria, catalog)
    sets = [each for each in declared if isinstance(each, ClusterSet)]
    yield from _warn_of_gaps(sets, "no cluster", find_set_gap, _set_criteria, catalog)
    yield from _warn_of_namespaces([*profiles, *sets])
    yield from _warn_of_cluster_kinds([each for each in declared if isinstance(each, EventSource)])
    yield from _warn_of_sources(triggers, catalog)
    yield from _warn_of_refs([*triggers, *profiles], KnownRefs(here))


def _warn_of_cluster_kinds(sources: Iterable[EventSource]) -> Iterator[str]:
    """Yield the sources that select SveltosClusters: registered clusters are no objects."""
    asking = [
        each
        for each in sources
        if any((gvk.group, gvk.kind) == _SVELTOS_CLUSTER for gvk in each.kinds)
    ]
    if asking:
        yield (
            f"{_format_group(asking)} SveltosCluster, and only matches objects of that kind in its"
            " source clusters: clusters that `bellhop register` added are not such objects; deploy"
            " add-ons to them by the clusterSelector of a ClusterProfile, and label them by a"
            " Classifier"
        )


def _warn_of_gaps(
    declared: Iterable[D],
    what: str,
    lack_of: Callable[[D, Catalog], Gap | None],
    asked_by: Callable[[D], object],
    catalog: Catalog,
) -> Iterator[str]:
    """Yield what selects nothing; manifests with the same criteria share a sentence."""
    alike: dict[object, list[D]] = {}
    for each in declared:
        alike.setdefault(asked_by(each), []).append(each)
    lacks: dict[Gap, list[D]] = {}
    for group in alike.values():
        lack = lack_of(group[0], catalog)
        if lack:
            lacks.setdefault(lack, []).extend(group)
        if len(lacks) > MAX_WARNINGS:
            break
    for lack, group in islice(lacks.items(), MAX_WARNINGS):
        yield f"{_format_group(group)} {what}: {lack.message}; {lack.cure}"
    if len(lacks) > MAX_WARNINGS:
        yield f"there are more that select {what}; `bellhop explain trigger NAME` explains each"


def _warn_of_namespaces(declared: Iterable[ClusterProfile | ClusterSet]) -> Iterator[str]:
    """Yield refs to another namespace, which a Profile or Set reads from its own."""
    said = (
        f"{each.kind} '{each.place}' has only the namespace '{each.namespace}': {said}; correct"
        f" the namespace, or write a Cluster{each.kind}"
        for each in declared
        for said in list_foreign_namespaces(each)
    )
    yield from islice(said, MAX_WARNINGS)
    rest = sum(1 for _ in said)
    if rest:
        yield f"{rest} more refs of Profiles and Sets name another namespace than their own"


def _warn_of_sources(triggers: Iterable[EventTrigger], catalog: Catalog) -> Iterator[str]:
    absent = (each for each in triggers if lacks_source(each, catalog))
    for each in islice(absent, MAX_WARNINGS):
        lack = find_source_gap(each, catalog)
        assert lack is not None, "it was asked just now"
        yield _format_warning(each, lack)
    rest = sum(1 for _ in absent)
    if rest:
        yield f"{rest} more triggers name an EventSource that is not there yet"


def _warn_of_refs(declared: Iterable[Declared], holders: KnownRefs) -> Iterator[str]:
    absent = ((each, ref) for each in declared for ref in list_missing_refs(holders, each))
    for each, ref in islice(absent, MAX_WARNINGS):
        yield _format_warning(each, describe_missing_ref(holders, ref))
    rest = sum(1 for _ in absent)
    if rest:
        yield f"{rest} more refs name a ConfigMap or Secret that is not there yet"


def _format_warning(declared: Declared, lack: Gap) -> str:
    return f"{declared.kind} '{declared.place}' {lack.message.removeprefix('it ')}; {lack.cure}"


def _format_group(group: list[D]) -> str:
    first, *others = group
    if not others:
        return f"{first.kind} '{first.place}' selects"
    return f"{first.kind} '{first.place}' and {len(others)} more select"


def _source_criteria(trigger: EventTrigger) -> object:
    return trigger.source_selector, trigger.cluster_sets


def _destination_criteria(trigger: EventTrigger) -> Selector | None:
    return trigger.destination_selector


def _profile_criteria(profile: ClusterProfile) -> object:
    own = (profile.namespace, profile.cluster_selector, profile.cluster_refs)
    return *own, profile.cluster_sets


def _set_criteria(declared: ClusterSet) -> object:
    own = (declared.namespace, declared.cluster_selector, declared.cluster_refs)
    return *own, declared.most


_MAX_WARNINGS = 10
"""Warnings of one command."""

_SHOWN_CLUSTERS = 3
"""Clusters that a sentence names."""


def warn_of_dependencies(catalog: Catalog, declared: Iterable[Declaration]) -> Iterator[str]:
    """Yield a sentence for each dependency that a dependent deploys to more clusters.

    Of the given profiles both the dependents and the dependencies are checked.
    """
    names = {each.rule for each in declared if isinstance(each, ClusterProfile)}
    found = (
        sentence
        for dependent, dependency in _list_pairs(catalog, names)
        if (sentence := _describe_dependency(catalog, dependent, dependency))
    )
    yield from islice(found, _MAX_WARNINGS)
    if rest := sum(1 for _ in found):
        yield f"{rest} more dependencies are deployed to clusters that they do not select"


def _list_pairs(
    catalog: Catalog, names: set[str]
) -> Iterator[tuple[ClusterProfile, ClusterProfile]]:
    """Yield dependents with their dependencies, also indirect ones, if either is among names."""
    for place in sorted(catalog.after) if names else ():
        for other in sorted(reached([place], catalog.after)):
            if other in catalog.profiles and not names.isdisjoint((place, other)):
                yield catalog.profiles[place], catalog.profiles[other]


def _describe_dependency(
    catalog: Catalog, dependent: ClusterProfile, dependency: ClusterProfile
) -> str:
    selects = not dependency.cluster_selector.empty
    if not (selects or dependency.cluster_refs or dependency.cluster_sets):
        return ""
    asked = catalog.own_destinations(dependent)
    more = sorted(asked - catalog.own_destinations(dependency))
    if not more:
        return ""
    named = ", ".join(more[:_SHOWN_CLUSTERS]) + ", …" * (len(more) > _SHOWN_CLUSTERS)
    return (
        f"{dependent.kind} '{dependent.place}' depends on '{dependency.place}', which selects"
        f" {len(asked) - len(more)} of its {len(asked)} clusters: dependsOn deploys"
        f" '{dependency.place}' to the other {len(more)}, too ({named})"
    )
