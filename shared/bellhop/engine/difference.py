"""What the difference of two catalogs touches: who is looked at, instantiated and placed again.

A label on one of five thousand clusters concerns the triggers and profiles whose selection it
changes, and what is rendered with that cluster's labels; nobody else is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bellhop.engine.catalog import Catalog
from bellhop.model.kinds import PolicyRef
from bellhop.model.names import is_template
from bellhop.model.record import Cluster

TRIGGERS = ("EventTrigger", "EventBasedAddOn")
HOLDERS = ("ConfigMap", "Secret")

Key = tuple[str, str, str]
"""Kind, namespace and name of what was declared or registered."""


@dataclass
class Touched:
    """What is to be done again.

    `swept` are clusters to be looked at, and `anew` those of them where nothing that was known
    counts; `instantiated` are triggers with the
    source clusters of their events, None being all where they are in force or have left profiles;
    `resolved` are users' own profiles; `placed` are triggers with destinations that they select
    now and did not, or the other way round; `relabelled` are destinations whose labels templates
    may read; `gates` are clusters of which ingest must know something else.
    """

    swept: set[str] = field(default_factory=set)
    anew: set[str] = field(default_factory=set)
    instantiated: set[tuple[str, str | None]] = field(default_factory=set)
    resolved: set[str] = field(default_factory=set)
    placed: set[tuple[str, str]] = field(default_factory=set)
    relabelled: set[str] = field(default_factory=set)
    gates: set[str] = field(default_factory=set)


def difference(before: Catalog | None, after: Catalog, keys: Iterable[Key]) -> Touched:
    """Return what changed objects touch; without a `before`, all that they may touch."""
    touched = Touched()
    triggers: set[str] = set()
    for kind, namespace, name in keys:
        if kind == "Cluster":
            _cluster(touched, before, after, f"{namespace}/{name}")
        elif kind in HOLDERS:
            touched.instantiated |= {
                (each, None) for each in _referring(after, kind, namespace, name)
            }
            touched.resolved |= _profiles_referring(after, kind, namespace, name)
        elif kind == "ClusterProfile":
            touched.resolved.add(name)
        elif kind in TRIGGERS:
            triggers.add(name)
        else:
            triggers |= _naming(after, name) | (_naming(before, name) if before else set())
    if triggers:
        _rules(touched, before, after, triggers)
    return touched


def _rules(touched: Touched, before: Catalog | None, after: Catalog, triggers: set[str]) -> None:
    """Add what triggers touch that changed, or whose source did: each cluster is asked once."""
    touched.instantiated |= {(each, None) for each in triggers}
    catalogs = [each for each in (before, after) if each]
    for cluster in after.clusters:
        if not any(_selecting(catalog, cluster, triggers) for catalog in catalogs):
            continue
        if before is None:
            touched.anew.add(cluster)
        if before is None or before.judgement(cluster) != after.judgement(cluster):
            touched.swept.add(cluster)
        if before is None or before.kinds_in(cluster) != after.kinds_in(cluster):
            touched.gates.add(cluster)


def _cluster(touched: Touched, before: Catalog | None, after: Catalog, key: str) -> None:
    """Add what a cluster touches that came, went or changed."""
    old = before.clusters.get(key) if before else None
    new = after.clusters.get(key)
    catalogs = [each for each in (before, after) if each]
    touched.gates.add(key)
    if before is None or old is None or new is None or not _only_relabelled(old, new):
        touched.swept.add(key)
        touched.anew.add(key)
    elif before.judgement(key) != after.judgement(key):
        touched.swept.add(key)
    triggers = {name for catalog in catalogs for name in catalog.triggers}
    for name in sorted(triggers):
        if new is None or any(_selecting(catalog, key, {name}) for catalog in catalogs):
            touched.instantiated.add((name, key))
        if before is None or _destined(before, name, old) != _destined(after, name, new):
            touched.placed.add((name, key))
    for name in {name for catalog in catalogs for name in catalog.profiles}:
        if before is None or _selected(before, name, old) != _selected(after, name, new):
            touched.resolved.add(name)
    if before is None or new is None or old is None or old.labels != new.labels:
        touched.relabelled.add(key)
    elif not _only_relabelled(old, new):
        # It may be another cluster under an old name.
        touched.relabelled.add(key)


def _only_relabelled(old: Cluster, new: Cluster) -> bool:
    """Say whether a cluster is the one it was, credentials and registration included."""
    return replace(old, labels=new.labels) == new


def _selecting(catalog: Catalog, cluster: str, triggers: Iterable[str]) -> bool:
    """Say whether one of some triggers joins a source in a cluster, or fails to say which."""
    found = catalog.clusters.get(cluster)
    return found is not None and any(
        name in catalog.triggers and catalog.triggers[name].source_selector.matches(found.labels)
        for name in triggers
    )


def _destined(catalog: Catalog, trigger: str, cluster: Cluster | None) -> bool:
    declared = catalog.triggers.get(trigger)
    if declared is None or cluster is None or declared.destination_selector is None:
        return False
    return declared.destination_selector.matches(cluster.labels)


def _selected(catalog: Catalog, profile: str, cluster: Cluster | None) -> bool:
    declared = catalog.profiles.get(profile)
    return bool(declared and cluster and catalog.selects(declared, cluster.key))


def _naming(catalog: Catalog, source: str) -> set[str]:
    """Return the triggers that may mean a source, whose name may be a template."""
    return {
        trigger.name
        for trigger in catalog.triggers.values()
        if trigger.event_source_name == source or is_template(trigger.event_source_name)
    }


def _referring(catalog: Catalog, kind: str, namespace: str, name: str) -> set[str]:
    return {
        trigger.name
        for trigger in catalog.triggers.values()
        if any(_may_name(ref, kind, namespace, name) for ref in trigger.policy_refs)
    }


def _profiles_referring(catalog: Catalog, kind: str, namespace: str, name: str) -> set[str]:
    return {
        profile.name
        for profile in catalog.profiles.values()
        if any(_may_name(ref, kind, namespace, name) for ref in profile.policy_refs)
    }


def _may_name(ref: PolicyRef, kind: str, namespace: str, name: str) -> bool:
    """Say whether a ref, whose names may be templates, can mean an object."""
    return ref.kind == kind and all(
        is_template(given) or given in allowed
        for given, allowed in ((ref.namespace, {namespace, ""}), (ref.name, {name}))
    )
