"""All that users declared, as one immutable whole, and which of it concerns a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from bellhop.api.kinds import (
    KINDS,
    Classifier,
    ClusterHealthCheck,
    ClusterProfile,
    ClusterPromotion,
    ClusterSet,
    Declaration,
    DeclarationKey,
    EventSource,
    EventTrigger,
    HealthCheck,
)
from bellhop.api.names import classifier_of
from bellhop.api.source import CLOUD_EVENT_TTL
from bellhop.catalog.rule_changes import (
    change_readers,
    change_rules,
    change_stages,
    find_asker,
    find_askers,
    select_readers,
)
from bellhop.catalog.selections import Selections
from bellhop.core.digest import digest
from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.errors import PermanentError
from bellhop.state.cluster import Cluster, SetSelection
from bellhop.state.ingest_policy import Listener

_DIGEST = 16


class _Found(Struct, frozen=True):
    """Sources that the triggers of a cluster name there, existing or not, and the errors of others.

    `in_force` are the existing sources, with the triggers that join them.
    """

    named: Mapping[str, str]
    problems: Mapping[str, PermanentError]
    in_force: Mapping[str, tuple[str, ...]]


_Alike = tuple[tuple[tuple[str, str], ...], frozenset[str]]
"""Key of clusters that are selected alike: the source of each trigger, and the health checks."""

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


class Catalog(Selections):
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
        self.promotions: Mapping[str, ClusterPromotion] = {}
        self.sets = {each.key.place: each for each in sets}
        self._choose(choices)
        self.named = {name: each.event_source_name for name, each in self.triggers.items()}
        self.asking = {name for name, each in self.sources.items() if each.asks_own_writes}
        # Few templates read other objects: a changed object concerns only these rules.
        self.reading_triggers = select_readers(self.triggers)
        self.reading_profiles = select_readers(self.profiles)
        # A catalog is asked the same few questions by every event: each is answered once.
        self._found: dict[str, _Found] = {}
        # Most clusters of a fleet are selected alike, and share one answer.
        self._alike: dict[_Alike, _Found] = {}
        self._digests: dict[str, str] = {}
        # Answers of an earlier catalog stay valid for unchanged clusters, except of these triggers.
        self._earlier: tuple[Mapping[str, _Found], Collection[str]] = {}, ()

    @cached_property
    def configuration(self) -> str:
        """Return the cluster whose custom resources are the configuration; empty for none."""
        found = (key for key, each in self.clusters.items() if each.configuration)
        return min(found, default="")

    def with_cluster(self, cluster: Cluster) -> Catalog:
        """Return the catalog as it is, or would be, with a cluster as given."""
        clusters = {**self.clusters, cluster.key: cluster}.values()
        return self.with_clusters(self.revision, clusters, self.choices)

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
        later.promotions = self.promotions
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
        """Return a later catalog, which keeps the answers that the changed rules do not concern.

        A rule that is None is deleted.
        """
        later = Catalog(revision, clusters, (), (), ())
        later.classifiers = change_rules(self.classifiers, Classifier, changed)
        later.checks = change_rules(self.checks, ClusterHealthCheck, changed)
        later.health_checks = change_rules(self.health_checks, HealthCheck, changed)
        asked = find_askers(self.classifiers.values(), self.health_checks.values())
        asking = find_askers(later.classifiers.values(), later.health_checks.values())
        later.sources = change_rules(self.sources, EventSource, changed)
        for name in asked.keys() - asking.keys():
            del later.sources[name]
        later.sources |= asking
        later.triggers = change_rules(self.triggers, EventTrigger, changed)
        later.promotions = change_rules(self.promotions, ClusterPromotion, changed)
        later.profiles = change_rules(self.profiles, ClusterProfile, changed)
        names = {key.rule for key in changed} | change_stages(self, later, changed)
        later.sets = change_rules(self.sets, ClusterSet, changed)
        later._choose(choices)
        later.named, later._digests = dict(self.named), dict(self._digests)
        names |= {each for each in asked.keys() | asking.keys() if find_asker(each) in names}
        again = {name for name in names if name in later.sources}
        later.asking = self.asking - names
        later.asking |= {name for name in again if later.sources[name].asks_own_writes}
        later.reading_triggers = change_readers(self.reading_triggers, later.triggers, names)
        later.reading_profiles = change_readers(self.reading_profiles, later.profiles, names)
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
        """Return the sources in force in a cluster that may match an object, by name.

        A CloudEvent is stored for one of them, and names it.
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
        events = (CLOUD_EVENT,) if self.listeners_in(cluster) else ()
        return tuple(sorted((*self.kinds_in(cluster), *events)))

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
            spec = found.written["spec"]
            more = list(beside)
            self._digests[source] = digest([spec, *more] if more else spec)[:_DIGEST]
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

    def _in_force(self, cluster: str) -> Mapping[str, tuple[str, ...]]:
        return self._answer(cluster).in_force

    def _answer(self, key: str) -> _Found:
        if key not in self.clusters:
            # Nothing is cached for names of no cluster: their number has no limit.
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
