"""Limits of the deletion guard: how much one change may remove at once.

    more than a share of at least twenty add-ons ─► too much
    all of two or more, and fewer are added      ─► too much
    a rule over its limit ─► all that the change removes from the same clusters is held

Two is the limit of "all": a mistyped label or selector removes everything that it concerns, however
little that is. A single add-on is removed whenever its only object or cluster is. A rule that is
deleted itself was named by the user, so it loses all of its add-ons, and so do profiles deployed
only as its dependencies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from bellhop.api.kinds import EventTrigger
from bellhop.api.stage_profile import StageProfile
from bellhop.catalog.catalog import Catalog
from bellhop.declarations.records import Rule
from bellhop.rendering.deletion_limit import DeletionLimit
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.records import Records

_MASS = 2
"""Add-ons that are a mass, if they are all that there are."""

_NOT_DEPLOYED = ("DryRun", "Removing", "Removed")


@dataclass
class RemovalCount:
    """The add-ons of one rule that a change would remove, by cluster, and the sources behind it.

    `clusters` has the names of the profiles that would leave each. `of` counts the add-ons of the
    profiles that were read: all of a rule, or those made in one cluster. `sources` has the same two
    numbers by the cluster in which profiles were made.
    """

    profiles: int = 0
    addons: int = 0
    of: int = 0
    clusters: dict[str, list[str]] = field(default_factory=dict)
    sources: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, profile: str, source: str, leaving: Iterable[str], of: int) -> None:
        """Count a profile that was made in a source cluster, and the clusters that it leaves."""
        leaving = tuple(leaving)
        self.profiles += bool(leaving)
        self.addons += len(leaving)
        self.of += of
        for cluster in leaving:
            self.clusters.setdefault(cluster, []).append(profile)
        lost, had = self.sources.get(source, (0, 0))
        self.sources[source] = lost + len(leaving), had + of


Counts = Mapping[Rule, RemovalCount]


class Step(NamedTuple):
    """The declarations before and after a change, and whether rules are what it changes."""

    before: Catalog | None
    after: Catalog
    of_rules: bool


class RemovalLimits:
    """Says of which rules a change would remove too much."""

    def __init__(self, records: Records, guard: DeletionLimit) -> None:
        self._records = records
        self._guard = guard

    def exceeded(self, step: Step, counts: Counts, held: Collection[Rule]) -> set[Rule]:
        """Return the rules of which a change would remove too much, and what goes with them.

        Of those that are `held` something is held already.
        """
        if not self._guard.is_on:
            return set()
        leaving = {rule: each for rule, each in counts.items() if each.addons}
        total = sum(each.addons for each in leaving.values())
        if step.of_rules and self._is_large(total, sum(each.of for each in counts.values())):
            return set(leaving)
        found = {
            rule
            for rule, each in leaving.items()
            if rule in held
            or self._is_large(each.addons, each.of)
            or any(self._is_large(*both) for both in each.sources.values())
            or self._loses_all(step, rule, each)
        }
        return together(self._by_cluster(step, leaving, found), leaving)

    def _is_large(self, leaving: int, of: int) -> bool:
        return self._guard.heeds(of) and self._guard.exceeds(leaving, of)

    def _loses_all(self, step: Step, rule: Rule, count: RemovalCount) -> bool:
        """Return whether a rule that stays would have no add-on any more, and is not just moved."""
        if count.addons < max(_MASS, count.of) or all(
            _is_meant(step, rule, x) for x in count.clusters
        ):
            return False
        return not (self._has_other_sources(step.after, rule, count) or _is_moved(step, rule))

    def _has_other_sources(self, catalog: Catalog, rule: Rule, count: RemovalCount) -> bool:
        """Return whether a rule has add-ons because of clusters of which nothing was read."""
        trigger, _ = rule
        return bool(trigger) and any(
            head.vague or any(each in catalog.clusters for each in head.matched)
            for head in self._records.profiles.heads(trigger)
            if head.cluster not in count.sources
        )

    def _by_cluster(self, step: Step, leaving: Counts, found: set[Rule]) -> set[Rule]:
        """Add the rules through which a cluster would lose too much of what is deployed there."""
        found, lost = set(found), Counter[str]()
        for each in leaving.values():
            lost.update({cluster: len(names) for cluster, names in each.clusters.items()})
        for cluster, count in lost.most_common():
            losing = {rule: each for rule, each in leaving.items() if cluster in each.clusters}
            if count < _MASS or losing.keys() <= found:
                continue
            of = self._deployed(step, cluster, max(self._guard.least, self._guard.needed(count)))
            if self._is_large(count, of) or (count >= of and _is_emptied(step, cluster, losing)):
                found |= losing.keys()
        return found

    def _deployed(self, step: Step, cluster: str, most: int) -> int:
        """Count the add-ons that are deployed in a cluster, and not on their way out, up to `most`.

        An earlier change may have withdrawn some that are still there: they do not count.
        """
        there = self._records.outcomes.of(cluster)
        staying = (x for x in there if x.phase not in _NOT_DEPLOYED and _stays(step.before, x))
        return sum(1 for _ in islice(staying, most))


def together(found: Iterable[Rule], leaving: Counts) -> set[Rule]:
    """Add to some rules all by which the same clusters lose add-ons: one question for each."""
    found, size = set(found), 0
    while len(found) > size:
        size = len(found)
        clusters = {cluster for rule in found for cluster in leaving[rule].clusters}
        found |= {x for x, each in leaving.items() if not clusters.isdisjoint(each.clusters)}
    return found


def _stays(before: Catalog | None, outcome: DeploymentStatus) -> bool:
    """Return whether the catalog before a change may still select an add-on's cluster."""
    if before is None:
        return True
    if outcome.trigger:
        return outcome.trigger in before.triggers
    own = before.profiles.get(outcome.profile)
    return own is not None and (own.paused or before.selects(own, outcome.cluster))


def _is_emptied(step: Step, cluster: str, losing: Counts) -> bool:
    """Return whether rules that stay leave a cluster of which all goes, and fewer rules come."""
    rules = [rule for rule in losing if not _is_meant(step, rule, cluster)]
    if sum(len(losing[rule].clusters[cluster]) for rule in rules) < _MASS:
        return False
    before = _rules_of(step.before, cluster) if step.before else set()
    return len(_rules_of(step.after, cluster) - before) < len(rules)


def _is_moved(step: Step, rule: Rule) -> bool:
    """Return whether a rule gains as many clusters as it loses."""
    before = _clusters_of(step.before, rule) if step.before else set()
    after = _clusters_of(step.after, rule)
    return len(after - before) >= max(1, len(before - after))


def _is_meant(step: Step, rule: Rule, cluster: str) -> bool:
    """Return whether a rule leaves a cluster because it, or all that need it there, is deleted."""
    trigger, profile = rule
    if trigger:
        return trigger not in step.after.triggers
    if profile not in step.after.profiles:
        was = step.before.profiles.get(profile) if step.before else None
        # A stage that is taken out of its promotion was not named by the user.
        return not isinstance(was, StageProfile) or was.stage.promotion not in step.after.promotions
    selecting = step.before.selecting(profile, cluster) if step.before else set()
    return bool(selecting) and selecting.isdisjoint(step.after.profiles)


def _rules_of(catalog: Catalog, cluster: str) -> set[Rule]:
    """Return the rules that deploy something to a cluster, or do once something matches."""
    profiles = catalog.profiles.items()
    own = {("", name) for name, each in profiles if catalog.selects(each, cluster)}
    triggers = catalog.triggers.items()
    return own | {(name, "") for name, each in triggers if _goes_to(catalog, each, cluster)}


def _goes_to(catalog: Catalog, trigger: EventTrigger, cluster: str) -> bool:
    if trigger.stays_home:
        return catalog.watches(trigger, cluster)
    return trigger.destination_cluster is None and catalog.may_reach(trigger, "", cluster)


def _clusters_of(catalog: Catalog, rule: Rule) -> set[tuple[str, str]]:
    """Return the clusters that a rule deploys to, and those whose events a trigger looks at."""
    trigger, profile = rule
    if profile:
        own = catalog.profiles.get(profile)
        return {("to", each) for each in catalog.profile_destinations(own)} if own else set()
    declared = catalog.triggers.get(trigger)
    if declared is None:
        return set()
    sources = {("from", each) for each in catalog.clusters if catalog.watches(declared, each)}
    if declared.stays_home:
        return sources
    return sources | {("to", each) for each in catalog.destinations(declared, "")}
