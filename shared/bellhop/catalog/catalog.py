"""All that users declared, as one immutable whole, and which of it concerns a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct

from bellhop.api.kinds import (
    KINDS,
    Classifier,
    ClusterHealthCheck,
    ClusterProfile,
    ClusterSet,
    Declaration,
    DeclarationKey,
    EventSource,
    EventTrigger,
    HealthCheck,
)
from bellhop.api.source import CLOUD_EVENT_TTL
from bellhop.api.source_names import classifier_of, health_check_of
from bellhop.catalog.dependencies import reached, turned
from bellhop.core.digest import digest
from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.errors import PermanentError
from bellhop.state.record import Cluster, Listener, SetSelection

_DIGEST = 16

_Rule = TypeVar(
    "_Rule",
    EventSource,
    EventTrigger,
    ClusterProfile,
    ClusterSet,
    Classifier,
    ClusterHealthCheck,
    HealthCheck,
)


_Bringing = TypeVar("_Bringing", EventTrigger, ClusterProfile)


class _Found(Struct, frozen=True):
    """What triggers that select a cluster name there, be it there or not, and why others do not.

    `in_force` are the sources that are there, with the triggers that join them.
    """

    named: Mapping[str, str]
    problems: Mapping[str, PermanentError]
    in_force: Mapping[str, tuple[str, ...]]


_Alike = tuple[tuple[tuple[str, str], ...], frozenset[str]]
"""What clusters are alike by: which source each trigger names there, and which health checks."""

_NOTHING = _Found({}, {}, {})
_NOBODY: frozenset[str] = frozenset()
_UNCHOSEN: Mapping[str, SetSelection] = {}


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
    copies an EventSource only to the clusters that a trigger selects. Those of classifiers are in
    force in every cluster, without a trigger, and those of health checks where a ClusterHealthCheck
    that selects the cluster names them. A trigger whose
    eventSourceName cannot be rendered for a cluster is not in force there; `problems_in` says why.
    `choices` are what sets with maxReplicas have chosen, by their places; sets without it have all
    the clusters that they select or name. `declared` is the mark of the rules: it stays the same
    when only clusters change.
    """

    def __init__(
        self,
        revision: int,
        clusters: Iterable[Cluster],
        sources: Iterable[EventSource],
        triggers: Iterable[EventTrigger],
        profiles: Iterable[ClusterProfile],
        sets: Iterable[ClusterSet] = (),
        choices: Mapping[str, SetSelection] = _UNCHOSEN,
    ) -> None:
        self.revision = revision
        self.declared = ""
        self.clusters = {cluster.key: cluster for cluster in clusters}
        self.sources = {source.name: source for source in sources}
        self.classifiers: Mapping[str, Classifier] = {}
        self.checks: Mapping[str, ClusterHealthCheck] = {}
        self.health_checks: Mapping[str, HealthCheck] = {}
        self.triggers = {trigger.name: trigger for trigger in triggers}
        self.profiles = {each.rule: each for each in profiles}
        self.sets = {each.key.place: each for each in sets}
        self._choose(choices)
        self.named = {name: each.event_source_name for name, each in self.triggers.items()}
        self.asking = {name for name, each in self.sources.items() if each.asks_own_writes}
        # Few templates read other objects: who declares one asks these alone.
        self.reading_triggers = _reading(self.triggers)
        self.reading_profiles = _reading(self.profiles)
        # A catalog is asked the same few questions by every event: each is answered once.
        self._found: dict[str, _Found] = {}
        # Most clusters of a fleet are selected alike, and share what is found.
        self._alike: dict[_Alike, _Found] = {}
        self._digests: dict[str, str] = {}
        # What an earlier catalog found holds but for these triggers, where clusters are the same.
        self._earlier: tuple[Mapping[str, _Found], Collection[str]] = {}, ()

    def _choose(self, choices: Mapping[str, SetSelection]) -> None:
        self.choosing = {name: each for name, each in self.sets.items() if each.most is not None}
        self.choices = {name: each for name, each in choices.items() if name in self.choosing}
        self._chosen = {name: frozenset(each.clusters) for name, each in self.choices.items()}

    def with_clusters(
        self,
        revision: int,
        clusters: Iterable[Cluster],
        choices: Mapping[str, SetSelection] = _UNCHOSEN,
    ) -> Catalog:
        """Return a later catalog of the same rules, which still knows about unchanged clusters."""
        later = Catalog(revision, clusters, (), (), ())
        later.sources, later.triggers, later.profiles = self.sources, self.triggers, self.profiles
        later.sets, later.classifiers = self.sets, self.classifiers
        later.checks, later.health_checks = self.checks, self.health_checks
        later._choose(choices)
        later.named, later.asking = self.named, self.asking
        later.reading_triggers = self.reading_triggers
        later.reading_profiles = self.reading_profiles
        later._digests, later._alike = self._digests, self._alike
        later._found = self._still(later)
        return later

    def _still(self, later: Catalog) -> dict[str, _Found]:
        """Return what was found about clusters that are the same, and chosen by the same sets."""
        old, new = self._chosen, later._chosen
        moved: set[str] = set()
        for place in old.keys() | new.keys():
            moved |= old.get(place, _NOBODY) ^ new.get(place, _NOBODY)
        return {
            key: found
            for key, found in list(self._found.items())
            if key not in moved and later.clusters.get(key) == self.clusters[key]
        }

    def with_rules(
        self,
        revision: int,
        clusters: Iterable[Cluster],
        changed: Mapping[DeclarationKey, Declaration | None],
        choices: Mapping[str, SetSelection] = _UNCHOSEN,
    ) -> Catalog:
        """Return a later catalog, which still knows what the rules that changed do not concern.

        What is None is there no more.
        """
        later = Catalog(revision, clusters, (), (), ())
        later.classifiers = _changed(self.classifiers, Classifier, changed)
        later.checks = _changed(self.checks, ClusterHealthCheck, changed)
        later.health_checks = _changed(self.health_checks, HealthCheck, changed)
        asked, asking = _askers(self), _askers(later)
        later.sources = _changed(self.sources, EventSource, changed)
        for name in asked.keys() - asking.keys():
            del later.sources[name]
        later.sources |= asking
        later.triggers = _changed(self.triggers, EventTrigger, changed)
        later.profiles = _changed(self.profiles, ClusterProfile, changed)
        later.sets = _changed(self.sets, ClusterSet, changed)
        later._choose(choices)
        later.named, later._digests = dict(self.named), dict(self._digests)
        names = {key.rule for key in changed}
        names |= {each for each in asked.keys() | asking.keys() if _asker_of(each) in names}
        anew = {name for name in names if name in later.sources}
        later.asking = self.asking - names
        later.asking |= {name for name in anew if later.sources[name].asks_own_writes}
        later.reading_triggers = _reread(self.reading_triggers, later.triggers, names)
        later.reading_profiles = _reread(self.reading_profiles, later.profiles, names)
        for name in names:
            later.named.pop(name, None)
            later._digests.pop(name, None)
            if name in later.triggers:
                later.named[name] = later.triggers[name].event_source_name
        sets = {key.rule for key in changed if issubclass(KINDS[key.kind][0], ClusterSet)}
        later._earlier = self._still(later), names | later.watching_sets(sets)
        return later

    def sources_for(self, cluster: str, gvk: GVK) -> tuple[EventSource, ...]:
        """Return the sources in force in a cluster that name a kind, by name."""
        return tuple(
            self.sources[name]
            for name in self._in_force(cluster)
            if gvk in self.sources[name].kinds
        )

    def sources_of(self, cluster: str, key: ObjectKey) -> tuple[EventSource, ...]:
        """Return the sources in force in a cluster that judge an object, by name.

        A CloudEvent is kept for one of them, and says for which.
        """
        found = self.sources_for(cluster, key.gvk)
        if key.gvk != CLOUD_EVENT:
            return found
        return tuple(each for each in found if each.name == key.namespace)

    def listeners_in(self, cluster: str) -> tuple[Listener, ...]:
        """Return the sources in force in a cluster that take CloudEvents, by name."""
        sources = (self.sources[name] for name in self._in_force(cluster))
        return tuple(
            Listener(each.name, tuple(match.criterion for match in each.messages))
            for each in sources
            if each.messages
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

    def kept_in(self, cluster: str) -> tuple[GVK, ...]:
        """Return the kinds of which something is kept, in order: CloudEvents count as one.

        No cluster can be asked for those.
        """
        heard = (CLOUD_EVENT,) if self.listeners_in(cluster) else ()
        return tuple(sorted((*self.kinds_in(cluster), *heard)))

    def own_kinds_in(self, cluster: str) -> frozenset[GVK]:
        """Return the kinds of which sources in force in a cluster ask for what we apply."""
        if not self.asking:
            return frozenset()
        asking = self.asking & self._in_force(cluster).keys()
        return frozenset().union(*(self.sources[name].kinds for name in asking))

    def accounts_in(self, cluster: str) -> frozenset[tuple[str, GVK]]:
        """Return the accounts with whose rights sources in force in a cluster read, by kind."""
        found = (self.sources[name] for name in self._in_force(cluster))
        return frozenset(
            (each.account, gvk) for each in found if each.account for gvk in each.kinds
        )

    def judgement(self, cluster: str) -> Mapping[str, str]:
        """Return a digest of each source in force in a cluster: what decides what matches."""
        return {name: self.digest(name) for name in self._in_force(cluster)}

    def digest(self, source: str) -> str:
        """Return a digest of a source: what decides what matches it."""
        if source not in self._digests:
            found = self.sources[source]
            beside = filter(None, (found.annotations.get(CLOUD_EVENT_TTL), found.account))
            told = found.written["spec"]
            more = list(beside)
            self._digests[source] = digest([told, *more] if more else told)[:_DIGEST]
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

    def may_reach(self, trigger: EventTrigger, source: str, cluster: str) -> bool:
        """Say whether a cluster may be among a trigger's destinations for events in `source`.

        By a destinationCluster, which may be a template, any may.
        """
        if trigger.stays_home:
            return cluster == source
        selector, found = trigger.destination_selector, self.clusters.get(cluster)
        selected = selector is not None and found is not None and selector.matches(found.labels)
        return selected or trigger.destination_cluster is not None

    def watches(self, trigger: EventTrigger, cluster: str) -> bool:
        """Say whether a trigger selects a cluster as one where its source counts."""
        found = self.clusters.get(cluster)
        return found is not None and (
            trigger.source_selector.matches(found.labels)
            or any(self.has(place, cluster) for place in trigger.cluster_sets)
        )

    def watching_sets(self, places: AbstractSet[str]) -> set[str]:
        """Return the triggers that watch the clusters of some sets."""
        found = self.triggers.items() if places else ()
        return {name for name, each in found if not places.isdisjoint(each.cluster_sets)}

    def has(self, place: str, cluster: str) -> bool:
        """Say whether a set, by its place, has a cluster; one that is not there has none."""
        declared, found = self.sets.get(place), self.clusters.get(cluster)
        if declared is None or found is None or not declared.takes(found):
            return False
        return declared.most is None or cluster in self._chosen.get(place, _NOBODY)

    def pool(self, place: str) -> list[str]:
        """Return the clusters that a set selects or names, be they chosen or not, by name."""
        declared = self.sets[place]
        return sorted(key for key, each in self.clusters.items() if declared.takes(each))

    def choosing_from(self, cluster: str) -> Iterator[str]:
        """Yield the places of the sets with maxReplicas that may choose a cluster."""
        found = self.clusters.get(cluster)
        return (name for name, each in self.choosing.items() if found and each.takes(found))

    def checks_of(self, cluster: str) -> tuple[ClusterHealthCheck, ...]:
        """Return the health checks that select a cluster, by name."""
        found = self.clusters.get(cluster)
        checks = (each for _, each in sorted(self.checks.items()))
        return tuple(x for x in checks if found and x.cluster_selector.matches(found.labels))

    def looking_at(self, cluster: str) -> tuple[str, ...]:
        """Return the HealthChecks that are there, and that some ask of a cluster, by name."""
        named = {name for each in self.checks_of(cluster) for name in each.health_checks}
        return tuple(sorted(named & self.health_checks.keys()))

    def profile_destinations(self, profile: ClusterProfile) -> tuple[str, ...]:
        """Return the clusters that a user's own profile goes to."""
        return tuple(sorted(key for key in self.clusters if self.selects(profile, key)))

    def own_destinations(self, profile: ClusterProfile) -> frozenset[str]:
        """Return the clusters that a user's own profile selects or names itself."""
        found = self.clusters.items()
        return frozenset(
            key for key, each in found if profile.reaches(each) and self._names(profile, each)
        )

    def selects(self, profile: ClusterProfile, cluster: str) -> bool:
        """Say whether a user's own profile goes to a cluster.

        It does where it selects or names it, and, as in Sveltos, where another one of users' own
        does that comes after it.
        """
        found = self.clusters.get(cluster)
        if found is None or not profile.reaches(found):
            return False
        later = (self.profiles[each] for each in self._later.get(profile.rule, ()))
        return any(self._names(each, found) for each in (profile, *later))

    def selecting(self, place: str, cluster: str) -> set[str]:
        """Return the profiles that select or name a cluster, of one and those that depend on it."""
        found = self.clusters.get(cluster)
        places = {place, *self._later.get(place, ())} & self.profiles.keys()
        return {each for each in places if found and self._names(self.profiles[each], found)}

    @cached_property
    def after(self) -> Mapping[str, tuple[str, ...]]:
        """The profiles that users' own come after, by place; most come after none."""
        return {place: each.after for place, each in self.profiles.items() if each.after}

    @cached_property
    def _later(self) -> Mapping[str, frozenset[str]]:
        """Users' own profiles that come after each, however far."""
        later = turned(self.after)
        return {place: frozenset(reached([place], later)) for place in later}

    @cached_property
    def awaited(self) -> frozenset[str]:
        """The places of the profiles that others come after, triggers' among them."""
        triggers = (each.after for each in self.triggers.values())
        return frozenset(place for each in (*self.after.values(), *triggers) for place in each)

    def successors(self, place: str, cluster: str) -> tuple[str, ...]:
        """Return the places of users' own profiles that replace one in a cluster, by name.

        A dry run replaces nothing.
        """
        found = (self.profiles[each] for each in self._replacing.get(place, ()))
        there = (each for each in found if each.sync != "DryRun" and self.selects(each, cluster))
        return tuple(sorted(each.rule for each in there))

    def exchanged(self, place: str) -> tuple[str, ...]:
        """Return the places of users' own profiles that replace one, or that it replaces."""
        declared = self.profiles.get(place)
        former = declared.replaces if declared else ()
        found = (*self._replacing.get(place, ()), *(x for x in former if x in self.profiles))
        return tuple(dict.fromkeys(found))

    @cached_property
    def _replacing(self) -> Mapping[str, list[str]]:
        """Users' own profiles that replace each."""
        return turned({place: each.replaces for place, each in self.profiles.items()})

    def _names(self, profile: ClusterProfile, found: Cluster) -> bool:
        """Say whether a user's own profile selects or names a cluster itself."""
        return (
            (found.namespace, found.name) in profile.cluster_refs
            or profile.cluster_selector.matches(found.labels)
            or any(self.has(place, found.key) for place in profile.cluster_sets)
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
            if not self.watches(trigger, key):
                continue
            try:
                named[trigger.name] = _source_name(trigger, cluster)
            except PermanentError as error:
                problems[trigger.name] = error
        looking = frozenset(self.looking_at(key))
        alike = tuple(sorted(named.items())), looking
        if not problems and alike in self._alike:
            return self._alike[alike]
        joined: dict[str, list[str]] = {}
        for name, source in alike[0]:
            if source in self.sources:
                joined.setdefault(source, []).append(name)
        joined |= {source: [] for source in self.sources if classifier_of(source)}
        joined |= {self.health_checks[name].source.name: [] for name in looking}
        in_force = {source: tuple(names) for source, names in sorted(joined.items())}
        found = _Found(named, dict(sorted(problems.items())), in_force)
        return found if problems else self._alike.setdefault(alike, found)


def _askers(catalog: Catalog) -> dict[str, EventSource]:
    """Return the sources by which classifiers and health checks ask, by name."""
    found = [source for each in catalog.classifiers.values() for source in each.sources]
    found += [each.source for each in catalog.health_checks.values()]
    return {source.name: source for source in found}


def _asker_of(source: str) -> str:
    """Name the classifier or health check that a source is of; empty for any other source."""
    return classifier_of(source) or health_check_of(source)


def _changed(
    old: Mapping[str, _Rule],
    kind: type[_Rule],
    changed: Mapping[DeclarationKey, Declaration | None],
) -> dict[str, _Rule]:
    new = dict(old)
    for key in changed:
        # One that went may come again as another kind, which is the same: it is set below.
        if issubclass(KINDS[key.kind][0], kind):
            new.pop(key.rule, None)
    return new | {each.rule: each for each in changed.values() if isinstance(each, kind)}


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
    from bellhop.gotemplate import Limits  # noqa: PLC0415
    from bellhop.rendering.templates import dialect_of, render  # noqa: PLC0415

    variables = {
        "Cluster": cluster_object(cluster),
        "ClusterNamespace": cluster.namespace,
        "ClusterName": cluster.name,
    }
    place = f"{trigger.name}.eventSourceName"
    dialect = dialect_of(trigger.annotations)
    return render(name, variables, name=place, limits=Limits(), dialect=dialect)
