"""All that users declared, as one immutable whole, and which of it concerns a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bellhop.engine.digest import digest
from bellhop.errors import PermanentError
from bellhop.model.gvk import GVK
from bellhop.model.kinds import ClusterProfile, EventSource, EventTrigger
from bellhop.model.record import Cluster

_DIGEST = 16

_Found = tuple[Mapping[str, tuple[str, ...]], Mapping[str, PermanentError]]
"""Sources in force in a cluster with the triggers that join them, and what is wrong with others."""


def cluster_object(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as templates see it: `.Cluster` is a SveltosCluster."""
    return {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "SveltosCluster",
        "metadata": {
            "namespace": cluster.namespace,
            "name": cluster.name,
            "labels": dict(cluster.labels),
        },
        "spec": {},
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
        # A catalog is asked the same few questions by every event: each is answered once.
        self._found: dict[str, _Found] = {}
        self._digests: dict[str, str] = {}

    def with_clusters(self, revision: int, clusters: Iterable[Cluster]) -> Catalog:
        """Return a later catalog of the same rules, which still knows about unchanged clusters."""
        later = Catalog(revision, clusters, (), (), ())
        later.sources, later.triggers, later.profiles = self.sources, self.triggers, self.profiles
        later._digests = self._digests
        later._found = {
            key: found
            for key, found in list(self._found.items())
            if key in later.clusters and later.clusters[key] == self.clusters.get(key)
        }
        return later

    def sources_for(self, cluster: str, gvk: GVK) -> tuple[EventSource, ...]:
        """Return the sources in force in a cluster that name a kind, by name."""
        return tuple(
            self.sources[name]
            for name in self._in_force(cluster)
            if any(selector.gvk == gvk for selector in self.sources[name].selectors)
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
        return {name: self._digest(name) for name in self._in_force(cluster)}

    def problems_in(self, cluster: str) -> Mapping[str, PermanentError]:
        """Return why triggers that select a cluster name no source there, by trigger."""
        return self._answer(cluster)[1]

    def triggers_on(self, cluster: str, source: str) -> tuple[str, ...]:
        """Return the triggers that join a source in a cluster to add-ons, by name."""
        return self._in_force(cluster).get(source, ())

    def source_of(self, trigger: EventTrigger, cluster: str) -> EventSource | None:
        """Return the source a trigger names for a cluster; None if it is not in force there."""
        for source, triggers in self._in_force(cluster).items():
            if trigger.name in triggers:
                return self.sources[source]
        return None

    def destinations(self, trigger: EventTrigger, cluster: str) -> tuple[str, ...]:
        """Return the clusters that get a trigger's add-ons for an event in `cluster`."""
        if trigger.destination_selector is None:
            return (cluster,) if cluster in self.clusters else ()
        return tuple(
            sorted(
                key
                for key, each in self.clusters.items()
                if trigger.destination_selector.matches(each.labels)
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

    def _digest(self, source: str) -> str:
        if source not in self._digests:
            self._digests[source] = digest(self.sources[source].manifest()["spec"])[:_DIGEST]
        return self._digests[source]

    def _in_force(self, cluster: str) -> Mapping[str, tuple[str, ...]]:
        return self._answer(cluster)[0]

    def _answer(self, key: str) -> _Found:
        if key not in self.clusters:
            # Nothing is kept of names that nobody registered: there is no end of them.
            return {}, {}
        if key not in self._found:
            self._found[key] = self._find(key)
        return self._found[key]

    def _find(self, key: str) -> _Found:
        found: dict[str, tuple[str, ...]] = {}
        problems: dict[str, PermanentError] = {}
        cluster = self.clusters[key]
        for trigger in self.triggers.values():
            if not trigger.source_selector.matches(cluster.labels):
                continue
            try:
                name = _source_name(trigger, cluster)
            except PermanentError as error:
                problems[trigger.name] = error
                continue
            if name in self.sources:
                found[name] = (*found.get(name, ()), trigger.name)
        return dict(sorted(found.items())), problems


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
