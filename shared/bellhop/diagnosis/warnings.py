"""What was just declared, and will come to nothing as things are: told at once, with the cure.

Nothing of it is an error, since what is missing may come later. Of a thousand triggers with the
same selector one sentence is made, and of many sentences the first few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from bellhop.api.kinds import (
    ClusterProfile,
    ClusterSet,
    Declaration,
    EventSource,
    EventTrigger,
    Selector,
)
from bellhop.catalog.catalog import Catalog
from bellhop.diagnosis.selection_gaps import (
    Declared,
    Holders,
    Lack,
    elsewhere,
    lacking,
    lacks_source,
    no_cluster,
    no_destination,
    no_holder,
    no_member,
    no_source,
    no_source_cluster,
)
from bellhop.installation.installation import Installation

MOST = 10
"""Sentences of one sort that are told."""

_SVELTOS_CLUSTER = ("lib.projectsveltos.io", "SveltosCluster")

D = TypeVar("D", EventTrigger, ClusterProfile, ClusterSet, EventSource)


def outlook(here: Installation, declared: Iterable[Declaration]) -> Iterator[str]:
    """Yield a sentence for what triggers, profiles and sets reach nothing by."""
    catalog = here.catalogs.known()
    declared = list(declared)
    triggers = [each for each in declared if isinstance(each, EventTrigger)]
    profiles = [each for each in declared if isinstance(each, ClusterProfile)]
    yield from _unreached(triggers, "no source cluster", no_source_cluster, _source, catalog)
    if catalog.clusters:
        yield from _unreached(triggers, "no destination", no_destination, _destination, catalog)
    yield from _unreached(profiles, "no cluster", no_cluster, _own, catalog)
    sets = [each for each in declared if isinstance(each, ClusterSet)]
    yield from _unreached(sets, "no cluster", no_member, _pool, catalog)
    yield from _elsewhere([*profiles, *sets])
    yield from _registered([each for each in declared if isinstance(each, EventSource)])
    yield from _absent_sources(triggers, catalog)
    yield from _absent_holders([*triggers, *profiles], Holders(here))


def _registered(sources: Iterable[EventSource]) -> Iterator[str]:
    """Tell which sources ask for clusters as Sveltos keeps them: none of ours is an object."""
    asking = [
        each
        for each in sources
        if any((gvk.group, gvk.kind) == _SVELTOS_CLUSTER for gvk in each.kinds)
    ]
    if asking:
        yield (
            f"{_names(asking)} SveltosCluster, and only matches objects of that kind in its"
            " source clusters: clusters that `bellhop register` added are not such objects; deploy"
            " add-ons to them by the clusterSelector of a ClusterProfile, and label them by a"
            " Classifier"
        )


def _unreached(
    declared: Iterable[D],
    what: str,
    lack_of: Callable[[D, Catalog], Lack | None],
    asked_by: Callable[[D], object],
    catalog: Catalog,
) -> Iterator[str]:
    """Tell what selects nothing; those that ask for the same are judged and told together."""
    alike: dict[object, list[D]] = {}
    for each in declared:
        alike.setdefault(asked_by(each), []).append(each)
    lacks: dict[Lack, list[D]] = {}
    for group in alike.values():
        lack = lack_of(group[0], catalog)
        if lack:
            lacks.setdefault(lack, []).extend(group)
        if len(lacks) > MOST:
            break
    for lack, group in islice(lacks.items(), MOST):
        yield f"{_names(group)} {what}: {lack.said}; {lack.cure}"
    if len(lacks) > MOST:
        yield f"there are more that select {what}; `bellhop explain trigger NAME` explains each"


def _elsewhere(declared: Iterable[ClusterProfile | ClusterSet]) -> Iterator[str]:
    """Tell what is not read where it was written to be, as a Profile or Set has one namespace."""
    said = (
        f"{each.kind} '{each.place}' has only the namespace '{each.namespace}': {told}; correct"
        f" the namespace, or write a Cluster{each.kind}"
        for each in declared
        for told in elsewhere(each)
    )
    yield from islice(said, MOST)
    rest = sum(1 for _ in said)
    if rest:
        yield f"{rest} more refs of Profiles and Sets name another namespace than their own"


def _absent_sources(triggers: Iterable[EventTrigger], catalog: Catalog) -> Iterator[str]:
    absent = (each for each in triggers if lacks_source(each, catalog))
    for each in islice(absent, MOST):
        lack = no_source(each, catalog)
        assert lack is not None, "it was asked just now"
        yield _naming(each, lack)
    rest = sum(1 for _ in absent)
    if rest:
        yield f"{rest} more triggers name an EventSource that is not there yet"


def _absent_holders(declared: Iterable[Declared], holders: Holders) -> Iterator[str]:
    absent = ((each, ref) for each in declared for ref in lacking(holders, each))
    for each, ref in islice(absent, MOST):
        yield _naming(each, no_holder(holders, ref))
    rest = sum(1 for _ in absent)
    if rest:
        yield f"{rest} more refs name a ConfigMap or Secret that is not there yet"


def _naming(declared: Declared, lack: Lack) -> str:
    return f"{declared.kind} '{declared.place}' {lack.said.removeprefix('it ')}; {lack.cure}"


def _names(group: list[D]) -> str:
    first, *others = group
    if not others:
        return f"{first.kind} '{first.place}' selects"
    return f"{first.kind} '{first.place}' and {len(others)} more select"


def _source(trigger: EventTrigger) -> object:
    return trigger.source_selector, trigger.cluster_sets


def _destination(trigger: EventTrigger) -> Selector | None:
    return trigger.destination_selector


def _own(profile: ClusterProfile) -> object:
    own = (profile.namespace, profile.cluster_selector, profile.cluster_refs)
    return *own, profile.cluster_sets


def _pool(declared: ClusterSet) -> object:
    own = (declared.namespace, declared.cluster_selector, declared.cluster_refs)
    return *own, declared.most
