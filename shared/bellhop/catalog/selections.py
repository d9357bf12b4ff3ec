"""Selections among all that users applied: triggers, profiles, sets and checks, by cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property

from bellhop.api.kinds import (
    ClusterHealthCheck,
    ClusterProfile,
    ClusterPromotion,
    ClusterSet,
    EventTrigger,
    HealthCheck,
)
from bellhop.catalog.dependencies import reached, turned
from bellhop.state.cluster import Cluster, SetSelection

_NOBODY: frozenset[str] = frozenset()


class Selections:
    """The part of a catalog that selects clusters, without sources."""

    clusters: Mapping[str, Cluster]
    triggers: Mapping[str, EventTrigger]
    profiles: Mapping[str, ClusterProfile]
    promotions: Mapping[str, ClusterPromotion]
    sets: Mapping[str, ClusterSet]
    checks: Mapping[str, ClusterHealthCheck]
    health_checks: Mapping[str, HealthCheck]

    def _choose(self, choices: Mapping[str, SetSelection]) -> None:
        self.choosing = {name: each for name, each in self.sets.items() if each.most is not None}
        self.choices = {name: each for name, each in choices.items() if name in self.choosing}
        self._chosen = {name: frozenset(each.clusters) for name, each in self.choices.items()}

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
        """Return whether a cluster may be among a trigger's destinations for events in `source`.

        By a destinationCluster, which may be a template, any may.
        """
        if trigger.stays_home:
            return cluster == source
        selector, found = trigger.destination_selector, self.clusters.get(cluster)
        selected = selector is not None and found is not None and selector.matches(found.labels)
        return selected or trigger.destination_cluster is not None

    def watches(self, trigger: EventTrigger, cluster: str) -> bool:
        """Return whether a trigger selects a cluster as one where its source counts."""
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
        """Return whether a set, by its place, has a cluster; one that is not there has none."""
        declared, found = self.sets.get(place), self.clusters.get(cluster)
        if declared is None or found is None or not declared.takes(found):
            return False
        return declared.most is None or cluster in self._chosen.get(place, _NOBODY)

    def pool(self, place: str) -> list[str]:
        """Return the clusters that a set selects or names, be they chosen or not, by name."""
        declared = self.sets[place]
        return sorted(key for key, each in self.clusters.items() if declared.takes(each))

    def limited_sets_of(self, cluster: str) -> Iterator[str]:
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

    def stages_of(self, promotions: Iterable[str]) -> set[str]:
        """Return the names of the profiles of some promotions, which may not exist."""
        found = (self.promotions[name] for name in promotions if name in self.promotions)
        return {profile.rule for each in found for profile in each.profiles}

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
        """Return whether a user's own profile goes to a cluster.

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
        applied = (each for each in found if each.addons.sync != "DryRun")
        return tuple(sorted(each.rule for each in applied if self.selects(each, cluster)))

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
        """Return whether a user's own profile selects or names a cluster itself."""
        return (
            (found.namespace, found.name) in profile.cluster_refs
            or profile.cluster_selector.matches(found.labels)
            or any(self.has(place, found.key) for place in profile.cluster_sets)
        )
