"""All that users declared, as one immutable whole, and which of it concerns a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from bellhop.engine.digest import digest
from bellhop.errors import PermanentError
from bellhop.model.gvk import GVK
from bellhop.model.kinds import (
    KINDS,
    ClusterProfile,
    Declaration,
    DeclarationKey,
    EventSource,
    EventTrigger,
)
from bellhop.model.record import Cluster

_DIGEST = 16

_Rule = TypeVar("_Rule", EventSource, EventTrigger, ClusterProfile)


_Bringing = TypeVar("_Bringing", EventTrigger, ClusterProfile)


@dataclass(frozen=True)
class _Found:
    """What triggers that select a cluster name there, be it there or not, and why others do not.

    `in_force` are the sources that are there, with the triggers that join them.
    """

    named: Mapping[str, str]
    problems: Mapping[str, PermanentError]
    in_force: Mapping[str, tuple[str, ...]]


_NOTHING = _Found({}, {}, {})


def cluster_object(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as templates see it: `.Cluster` is a SveltosCluster."""
    return {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "SveltosCluster",
        "metadata": {
            "namespace": cluster.namespace,
            "name": cluster.name,
            "labels": dict(cluster.labels),
            "annotations": dict(cluster.annotations),
        },
        "spec": dict(cluster.spec),
        "status": {"ready": True, "version": cluster.kubernetes},
    }


class Catalog:
    """Sources, triggers, profiles and clusters of one revision.

    A source is in force in a cluster if a trigger that selects the cluster names it, as Sveltos
    copies an EventSource only to the clusters that a trigger selects. A trigger whose
    eventSourceName cannot be rendered for a cluster is not in force there; `problems_in` says why.
    """

    def __init__(
        self,
        revision: int,
        clusters: Iterable[Cluster],
        sources: Iterable[EventSource],
        triggers: Iterable[EventTrigger],
        profiles: Iterable[ClusterProfile],
    ) -> None:
        self.revision = revision
        self.clusters = {cluster.key: cluster for cluster in clusters}
        self.sources = {source.name: source for source in sources}
        self.triggers = {trigger.name: trigger for trigger in triggers}
        self.profiles = {profile.name: profile for profile in profiles}
        self.named = {name: each.event_source_name for name, each in self.triggers.items()}
        # Few templates read other objects: who declares one asks these alone.
        self.reading_triggers = _reading(self.triggers)
        self.reading_profiles = _reading(self.profiles)
        # A catalog is asked the same few questions by every event: each is answered once.
        self._found: dict[str, _Found] = {}
        self._digests: dict[str, str] = {}
        # What an earlier catalog found holds but for these triggers, where clusters are the same.
        self._earlier: tuple[Mapping[str, _Found], Collection[str]] = {}, ()

    def with_clusters(self, revision: int, clusters: Iterable[Cluster]) -> Catalog:
        """Return a later catalog of the same rules, which still knows about unchanged clusters."""
        later = Catalog(revision, clusters, (), (), ())
        later.sources, later.triggers, later.profiles = self.sources, self.triggers, self.profiles
        later.named = self.named
        later.reading_triggers = self.reading_triggers
        later.reading_profiles = self.reading_profiles
        later._digests = self._digests
        later._found = {
            key: found
            for key, found in list(self._found.items())
            if key in later.clusters and later.clusters[key] == self.clusters.get(key)
        }
        return later

    def with_rules(
        self,
        revision: int,
        clusters: Iterable[Cluster],
        changed: Mapping[DeclarationKey, Declaration | None],
    ) -> Catalog:
        """Return a later catalog, which still knows what the rules that changed do not concern.

        What is None is there no more.
        """
        later = Catalog(revision, clusters, (), (), ())
        later.sources = _changed(self.sources, EventSource, changed)
        later.triggers = _changed(self.triggers, EventTrigger, changed)
        later.profiles = _changed(self.profiles, ClusterProfile, changed)
        later.named, later._digests = dict(self.named), dict(self._digests)
        names = {key.name for key in changed}
        later.reading_triggers = _reread(self.reading_triggers, later.triggers, names)
        later.reading_profiles = _reread(self.reading_profiles, later.profiles, names)
        for name in names:
            later.named.pop(name, None)
            later._digests.pop(name, None)
            if name in later.triggers:
                later.named[name] = later.triggers[name].event_source_name
        same = {
            key: found
            for key, found in list(self._found.items())
            if later.clusters.get(key) == self.clusters[key]
        }
        later._earlier = same, names
        return later

    def sources_for(self, cluster: str, gvk: GVK) -> tuple[EventSource, ...]:
        """Return the sources in force in a cluster that name a kind, by name."""
        return tuple(
            self.sources[name]
            for name in self._in_force(cluster)
            if gvk in self.sources[name].kinds
        )

    def sources_in(self, cluster: str) -> tuple[str, ...]:
        """Return the names of the sources in force in a cluster."""
        return tuple(self._in_force(cluster))

    def kinds_in(self, cluster: str) -> tuple[GVK, ...]:
        """Return the kinds that the sources in force in a cluster name, in order."""
        kinds = {
            selector.gvk
            for name in self._in_force(cluster)
            for selector in self.sources[name].selectors
        }
        return tuple(sorted(kinds))

    def judgement(self, cluster: str) -> Mapping[str, str]:
        """Return a digest of each source in force in a cluster: what decides what matches."""
        return {name: self.digest(name) for name in self._in_force(cluster)}

    def digest(self, source: str) -> str:
        """Return a digest of a source: what decides what matches it."""
        if source not in self._digests:
            self._digests[source] = digest(self.sources[source].manifest()["spec"])[:_DIGEST]
        return self._digests[source]

    def problems_in(self, cluster: str) -> Mapping[str, PermanentError]:
        """Return why triggers that select a cluster name no source there, by trigger."""
        return self._answer(cluster).problems

    def triggers_on(self, cluster: str, source: str) -> tuple[str, ...]:
        """Return the triggers that join a source in a cluster to add-ons, by name."""
        return self._in_force(cluster).get(source, ())

    def source_of(self, trigger: EventTrigger, cluster: str) -> EventSource | None:
        """Return the source a trigger names for a cluster; None if it is not in force there."""
        return self.sources.get(self._answer(cluster).named.get(trigger.name, ""))

    def destinations(self, trigger: EventTrigger, cluster: str, named: str = "") -> tuple[str, ...]:
        """Return the clusters that get a trigger's add-ons for an event in `cluster`.

        `named` is the one that its destinationCluster was rendered to; one that it selects gets
        them as well, as in Sveltos.
        """
        asked = cluster if trigger.stays_home else named
        selector = trigger.destination_selector
        return tuple(
            sorted(
                key
                for key, each in self.clusters.items()
                if key == asked or (selector is not None and selector.matches(each.labels))
            )
        )

    def profile_destinations(self, profile: ClusterProfile) -> tuple[str, ...]:
        """Return the clusters that a user's own profile selects or names."""
        return tuple(sorted(key for key in self.clusters if self.selects(profile, key)))

    def selects(self, profile: ClusterProfile, cluster: str) -> bool:
        """Say whether a user's own profile selects or names a cluster."""
        found = self.clusters.get(cluster)
        return found is not None and (
            (found.namespace, found.name) in profile.cluster_refs
            or profile.cluster_selector.matches(found.labels)
        )

    def _in_force(self, cluster: str) -> Mapping[str, tuple[str, ...]]:
        return self._answer(cluster).in_force

    def _answer(self, key: str) -> _Found:
        if key not in self.clusters:
            # Nothing is kept of names that nobody registered: there is no end of them.
            return _NOTHING
        if key not in self._found:
            self._found[key] = self._find(key)
        return self._found[key]

    def _find(self, key: str) -> _Found:
        earlier, changed = self._earlier
        old = earlier.get(key, _NOTHING)
        asked = changed if key in earlier else self.triggers
        named = {name: found for name, found in old.named.items() if name not in asked}
        problems = {name: found for name, found in old.problems.items() if name not in asked}
        cluster = self.clusters[key]
        for trigger in (self.triggers[name] for name in asked if name in self.triggers):
            if not trigger.source_selector.matches(cluster.labels):
                continue
            try:
                named[trigger.name] = _source_name(trigger, cluster)
            except PermanentError as error:
                problems[trigger.name] = error
        joined: dict[str, list[str]] = {}
        for name, source in sorted(named.items()):
            if source in self.sources:
                joined.setdefault(source, []).append(name)
        in_force = {source: tuple(names) for source, names in sorted(joined.items())}
        return _Found(named, dict(sorted(problems.items())), in_force)


def _changed(
    old: Mapping[str, _Rule],
    kind: type[_Rule],
    changed: Mapping[DeclarationKey, Declaration | None],
) -> dict[str, _Rule]:
    new = dict(old)
    for key in changed:
        # One that went may come again as another kind, which is the same: it is set below.
        if KINDS[key.kind][0] is kind:
            new.pop(key.name, None)
    return new | {each.name: each for each in changed.values() if isinstance(each, kind)}


def _reading(rules: Mapping[str, _Bringing]) -> dict[str, _Bringing]:
    """Return the rules whose templates read other objects, by name."""
    return {name: each for name, each in rules.items() if each.readings}


def _reread(
    old: Mapping[str, _Bringing], rules: Mapping[str, _Bringing], changed: Iterable[str]
) -> dict[str, _Bringing]:
    new = dict(old)
    for name in changed:
        new.pop(name, None)
        new |= _reading({name: rules[name]} if name in rules else {})
    return new


def _source_name(trigger: EventTrigger, cluster: Cluster) -> str:
    name = trigger.event_source_name
    if "{{" not in name:
        return name
    # Hardly any name is a template, and evaluate needs no other.
    from bellhop.engine.render import dialect_of, render  # noqa: PLC0415
    from bellhop.gotemplate import Limits  # noqa: PLC0415

    variables = {
        "Cluster": cluster_object(cluster),
        "ClusterNamespace": cluster.namespace,
        "ClusterName": cluster.name,
    }
    place = f"{trigger.name}.eventSourceName"
    dialect = dialect_of(trigger.annotations)
    return render(name, variables, name=place, limits=Limits(), dialect=dialect)
