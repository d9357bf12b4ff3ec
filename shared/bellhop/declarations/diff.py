"""Difference of two catalogs: the clusters, triggers and profiles that a change touches.

A label on one of five thousand clusters touches the triggers and profiles whose selection it
changes, and those rendered with that cluster's labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from bellhop.api.kinds import ClusterProfile, DeclarationKey, EventTrigger, PolicyRef
from bellhop.api.stage_profile import StageProfile
from bellhop.catalog.catalog import Catalog, cluster_object
from bellhop.catalog.dependencies import reached
from bellhop.clusters.pause import window_in
from bellhop.core.gvk import GVK
from bellhop.core.identity import GENERATED_NAMESPACE, ROLE_REQUEST
from bellhop.core.names import is_template
from bellhop.core.windows import Window
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.content import Reading
from bellhop.state.ingest_policy import Listener

TRIGGERS = ("EventTrigger", "EventBasedAddOn")
PROFILES = ("ClusterProfile", "Profile", ROLE_REQUEST)
SETS = ("ClusterSet", "Set")
PROMOTION = "ClusterPromotion"
HOLDERS = ("ConfigMap", "Secret")

Key = tuple[str, str, str]
"""Kind, namespace and name of what was declared or registered."""


@dataclass
class Touched:
    """Objects that a change touches, by the message to publish."""

    resynced: set[str] = field(default_factory=set)
    """Clusters to resync."""
    resynced_in_full: set[str] = field(default_factory=set)
    """Those of them in which all objects are evaluated again."""
    instantiated: set[tuple[str, str | None]] = field(default_factory=set)
    """Triggers with a source cluster; None: where they are in force or have left profiles."""
    resolved: set[str] = field(default_factory=set)
    """Profiles of users."""
    placed: set[tuple[str, str]] = field(default_factory=set)
    """Triggers with destinations whose selection changed."""
    relabelled: set[str] = field(default_factory=set)
    """Destinations whose labels templates may read."""
    gates: set[str] = field(default_factory=set)
    """Clusters whose ingest policy changes."""
    reread: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """Triggers and profiles of users whose templates may read the change."""
    classified: set[str] = field(default_factory=set)
    """Clusters whose classifiers may give other labels."""
    examined: set[str] = field(default_factory=set)
    """Clusters whose health checks may have another result."""
    resumed: set[str] = field(default_factory=set)
    """Clusters whose pause changed, for which any trigger may have waited."""
    promoted: set[str] = field(default_factory=set)
    """Promotions of which anything changed."""


def compare_catalogs(before: Catalog | None, after: Catalog, keys: Iterable[Key]) -> Touched:
    """Return what changed objects touch; without a `before`, all that they may touch."""
    touched = Touched()
    keys = list(keys)
    touched.reread = list_rereaders(after, map(_as_read, keys))
    for kind, namespace, name in keys:
        if kind == "Cluster":
            _cluster(touched, before, after, f"{namespace}/{name}")
    touched.resolved |= _select_names(keys, *PROFILES)
    triggers, sources = _select_names(keys, *TRIGGERS), _select_names(keys, "EventSource")
    holders = {key for key in keys if key[0] in HOLDERS}
    if holders:
        referring = (name for name, refs in _refs(after.triggers) if _may_name(refs, holders))
        touched.instantiated |= {(name, None) for name in referring}
        touched.instantiated |= {(name, None) for name in _generating(after, holders)}
        found = (name for name, refs in _refs(after.profiles) if _may_name(refs, holders))
        touched.resolved |= set(found)
    if sources:
        triggers |= _naming(after, sources) | (_naming(before, sources) if before else set())
    if _select_names(keys, "ClusterHealthCheck", "HealthCheck"):
        touched.examined |= after.clusters.keys()
        _asked_everywhere(touched, before, after)
    if _select_names(keys, "Classifier"):
        touched.classified |= after.clusters.keys()
        _asked_everywhere(touched, before, after)
    if sets := _select_names(keys, *SETS):
        triggers |= _sets(touched, before, after, sets)
    staged = _staged(before, after, _select_names(keys, PROMOTION))
    touched.resolved |= staged
    own = _select_names(keys, "ClusterProfile") | staged
    touched.instantiated |= _entitled(before, after, own)
    if triggers:
        _rules(touched, before, after, triggers)
    _ordered(touched, before, after, keys)
    stages = (after.profiles.get(name) for name in touched.resolved)
    touched.promoted = _select_names(keys, PROMOTION)
    touched.promoted |= {x.stage.promotion for x in stages if isinstance(x, StageProfile)}
    return touched


def _staged(before: Catalog | None, after: Catalog, promotions: set[str]) -> set[str]:
    """Return the profiles that promotions have, or had."""
    return after.stages_of(promotions) | (before.stages_of(promotions) if before else set())


def _entitled(
    before: Catalog | None, after: Catalog, profiles: Iterable[str]
) -> set[tuple[str, str | None]]:
    """Return triggers that may write the name of a ClusterProfile that came or went."""
    came = any(before is None or (x in before.profiles) != (x in after.profiles) for x in profiles)
    naming = (name for name, each in after.triggers.items() if each.spec.profile_name_format)
    return {(name, None) for name in naming} if came else set()


def _ordered(touched: Touched, before: Catalog | None, after: Catalog, keys: Iterable[Key]) -> None:
    """Add the dependencies of touched profiles, and the dependents of profiles that came or left.

    A dependency is deployed where its dependent is, and learns that it has a dependent.
    """
    triggers, profiles = touched.reread
    for catalog in (each for each in (before, after) if each and each.awaited):
        asking = [catalog.triggers.get(name) for name in _select_names(keys, *TRIGGERS)]
        first = {place for each in asking if each for place in each.after}
        touched.resolved |= first | reached(touched.resolved | first, catalog.after)
        for place in touched.resolved & catalog.awaited:
            if before and (place in before.profiles) == (place in after.profiles):
                continue
            triggers |= {name for name, each in after.triggers.items() if place in each.after}
            profiles |= {name for name, each in after.profiles.items() if place in each.after}


def _select_names(keys: Iterable[Key], *kinds: str) -> set[str]:
    """Return the names, with their namespaces, of manifests of some kinds."""
    return {DeclarationKey(*key).rule for key in keys if key[0] in kinds}


def _as_read(key: Key) -> Key:
    """Return a key as templates name the object: without a namespace where the kind has none."""
    kind, namespace, name = key
    return ("SveltosCluster" if kind == "Cluster" else kind, namespace, name)


def list_readers(catalog: Catalog, keys: Iterable[Key]) -> tuple[set[str], set[str]]:
    """Return the triggers, and users' own profiles, that may refer to what triggers generate."""
    desired = set(keys)

    def reading(refs: Iterable[PolicyRef]) -> bool:
        return _may_name([ref for ref in refs if ref.namespace], desired)

    return (
        {name for name, refs in _refs(catalog.triggers) if reading(refs)},
        {name for name, refs in _refs(catalog.profiles) if reading(refs)},
    )


def list_rereaders(catalog: Catalog, keys: Iterable[Key]) -> tuple[set[str], set[str]]:
    """Return the triggers, and users' own profiles, whose templates may read some objects."""
    desired = set(keys)
    return (
        {name for name, each in catalog.reading_triggers.items() if _may_read(each, desired)},
        {name for name, each in catalog.reading_profiles.items() if _may_read(each, desired)},
    )


def _may_read(declared: EventTrigger | ClusterProfile, keys: set[Key]) -> bool:
    return any(
        kind == read_kind
        and (is_template(there) or there in ("", namespace))
        and (is_template(read) or read == name)
        for read_kind, there, read in map(_key_read, declared.readings)
        for kind, namespace, name in keys
    )


def _key_read(reading: Reading) -> Key:
    """Return which object is read, maybe by templates; of a URL the Secret of its credentials."""
    if reading.address:
        return "Secret", reading.address.namespace, reading.address.secret
    return reading.kind, reading.namespace, reading.name


def reads_generated(trigger: EventTrigger) -> bool:
    """Return whether a trigger may refer to what other triggers generate."""
    places = {ref.namespace for ref in trigger.holder_refs}
    return GENERATED_NAMESPACE in places or any(map(is_template, places))


def _generating(catalog: Catalog, holders: set[Key]) -> Iterator[str]:
    """Yield the triggers that may generate what users declare, or declared until now."""
    kinds = {kind for kind, namespace, _ in holders if namespace == GENERATED_NAMESPACE}
    for name, trigger in catalog.triggers.items() if kinds else ():
        if any(each.ref.kind in kinds for each in trigger.generators):
            yield name


def _rules(touched: Touched, before: Catalog | None, after: Catalog, triggers: set[str]) -> None:
    """Add what triggers touch that changed, or whose source did: each cluster is asked once."""
    touched.instantiated |= {(each, None) for each in triggers}
    catalogs = [each for each in (before, after) if each]
    for cluster in after.clusters:
        if not any(_selecting(catalog, cluster, triggers) for catalog in catalogs):
            continue
        if before is None:
            touched.resynced_in_full.add(cluster)
        _evaluated(touched, before, after, cluster)


def _sets(touched: Touched, before: Catalog | None, after: Catalog, sets: set[str]) -> set[str]:
    """Add the effects of changed sets; return the triggers that may watch other clusters now.

    Only the clusters that a set gained or lost are touched.
    """
    watching = after.watching_sets(sets)
    naming = [each for each in after.profiles.values() if not sets.isdisjoint(each.cluster_sets)]
    if before is None:
        touched.resolved |= {each.rule for each in naming}
        return watching
    for profile in naming:
        if before.profile_destinations(profile) != after.profile_destinations(profile):
            touched.resolved.add(profile.rule)
    for cluster in after.clusters if watching else ():
        rules = [after.triggers[name] for name in watching]
        moved = [x for x in rules if before.watches(x, cluster) != after.watches(x, cluster)]
        touched.instantiated |= {(each.name, cluster) for each in moved}
        if moved:
            _evaluated(touched, before, after, cluster)
    return set()


def _asked_everywhere(touched: Touched, before: Catalog | None, after: Catalog) -> None:
    """Add what classifiers and health checks touch that changed: any cluster may be asked."""
    for cluster in after.clusters:
        if before is None:
            touched.resynced_in_full.add(cluster)
        _evaluated(touched, before, after, cluster)


def _evaluated(touched: Touched, before: Catalog | None, after: Catalog, cluster: str) -> None:
    """Add a cluster to those that are looked at again if other sources count there."""
    if before is None or before.judgement(cluster) != after.judgement(cluster):
        touched.resynced.add(cluster)
    if before is None or _let_in(before, cluster) != _let_in(after, cluster):
        touched.gates.add(cluster)


def _let_in(
    catalog: Catalog, cluster: str
) -> tuple[Sequence[GVK], frozenset[GVK], Sequence[Listener]]:
    """Return which kinds and CloudEvents ingest lets in, and of which what we apply ourselves."""
    listeners = catalog.listeners_in(cluster)
    return catalog.kinds_in(cluster), catalog.own_kinds_in(cluster), listeners


def _cluster(touched: Touched, before: Catalog | None, after: Catalog, key: str) -> None:
    """Add what a cluster touches that came, went or changed."""
    old = before.clusters.get(key) if before else None
    new = after.clusters.get(key)
    catalogs = [each for each in (before, after) if each]
    touched.gates.add(key)
    touched.classified |= _classified(after, old, new)
    touched.resumed |= _resumed(before, old, new)
    if before is None or old is None or new is None or not _only_relabelled(old, new):
        touched.resynced.add(key)
        touched.resynced_in_full.add(key)
    elif before.judgement(key) != after.judgement(key):
        touched.resynced.add(key)
    triggers = {name for catalog in catalogs for name in catalog.triggers}
    for name in sorted(triggers):
        if new is None or any(_selecting(catalog, key, {name}) for catalog in catalogs):
            touched.instantiated.add((name, key))
        if before is None or _destined(before, name, old) != _destined(after, name, new):
            touched.placed.add((name, key))
    for name in {name for catalog in catalogs for name in catalog.profiles}:
        if before is None or _selected(before, name, old) != _selected(after, name, new):
            touched.resolved.add(name)
    _hosting(touched, after, key)
    if not before or not new or not old or cluster_object(old) != cluster_object(new):
        touched.relabelled.add(key)
        touched.resolved |= _named_by_cluster(after, new)
    elif not _only_relabelled(old, new):
        # It may be another cluster under an old name.
        touched.relabelled.add(key)


def _named_by_cluster(after: Catalog, cluster: Cluster | None) -> set[str]:
    """Return the profiles of a cluster whose refs it names: they are templates over it."""
    return {
        name
        for name, each in after.profiles.items()
        if any(ref.templated for ref in each.holder_refs) and _selected(after, name, cluster)
    }


def _hosting(touched: Touched, after: Catalog, cluster: str) -> None:
    """Add what has anything that is Local where the cluster that hosts it came or went."""
    if cluster != MANAGEMENT:
        return
    touched.instantiated |= {(name, None) for name, each in after.triggers.items() if each.local}
    touched.resolved |= {name for name, each in after.profiles.items() if each.local}


def _classified(after: Catalog, old: Cluster | None, new: Cluster | None) -> set[str]:
    """Add a cluster whose labels changed, if there is any classifier.

    A label that a user sets belongs to no classifier any more; one that a user removes may again.
    """
    if new is None or not (after.classifiers or new.given):
        return set()
    return {new.key} if old is None or old.labels != new.labels else set()


def _only_relabelled(old: Cluster, new: Cluster) -> bool:
    """Return whether a cluster is unchanged, credentials and registration included.

    Fields that only templates read do not count.
    """
    described = replace(old, annotations=new.annotations, spec=new.spec, kubernetes=new.kubernetes)
    return replace(described, labels=new.labels, given=new.given) == new


def _resumed(before: Catalog | None, old: Cluster | None, new: Cluster | None) -> set[str]:
    """Name a cluster whose pause changed; without a `before`, one whose pause may have."""
    if new is None or (before and old is None):
        return set()
    return {new.key} if old is None or _pauses(old) != _pauses(new) else set()


def _pauses(cluster: Cluster) -> tuple[bool, Window | None]:
    return bool(cluster.spec.get("paused")), window_in(cluster)


def _selecting(catalog: Catalog, cluster: str, triggers: Iterable[str]) -> bool:
    """Return whether one of some triggers joins a source in a cluster, or fails to say which."""
    return any(
        name in catalog.triggers and catalog.watches(catalog.triggers[name], cluster)
        for name in triggers
    )


def _destined(catalog: Catalog, trigger: str, cluster: Cluster | None) -> bool:
    declared = catalog.triggers.get(trigger)
    if declared is None or cluster is None:
        return False
    selector = declared.destination_selector
    # A template may name any cluster that is there.
    return declared.destination_cluster is not None or (
        selector is not None and selector.matches(cluster.labels)
    )


def _selected(catalog: Catalog, profile: str, cluster: Cluster | None) -> bool:
    declared = catalog.profiles.get(profile)
    return bool(declared and cluster and catalog.selects(declared, cluster.key))


def _naming(catalog: Catalog, sources: set[str]) -> set[str]:
    """Return the triggers that may mean one of some sources, whose name may be a template."""
    return {
        name for name, source in catalog.named.items() if source in sources or is_template(source)
    }


def _refs(
    declared: Mapping[str, EventTrigger] | Mapping[str, ClusterProfile],
) -> Iterator[tuple[str, Iterable[PolicyRef]]]:
    return ((name, each.holder_refs) for name, each in declared.items())


def _may_name(refs: Iterable[PolicyRef], holders: set[Key]) -> bool:
    """Return whether refs, whose names may be templates, can name one of some objects."""
    for ref in refs:
        if ref.namespace and not is_template(ref.namespace + ref.name):
            if (ref.kind, ref.namespace, ref.name) in holders:
                return True
        elif any(_can_mean(ref, holder) for holder in holders):
            return True
    return False


def _can_mean(ref: PolicyRef, holder: Key) -> bool:
    kind, namespace, name = holder
    return ref.kind == kind and all(
        is_template(given) or given in allowed
        for given, allowed in ((ref.namespace, {namespace, ""}), (ref.name, {name}))
    )
