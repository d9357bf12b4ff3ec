"""Deletion guard of changes: hold a change's removals if they are too many at once.

    a change ─► count the add-ons that it would remove ─► few, or a small share ─► removed
                                                      └► too many: held, then the change is written
    deploy is about to remove an add-on ─► its trigger or profile is held, and the catalog
                                           no longer selects the cluster ─► the add-on stays
    another change ─► the add-ons of a held rule are desired again ─► the hold is deleted
    a release      ─► the hold is deleted, deploy is asked again, and removes them

An add-on is one profile in one cluster. The held add-ons are not stored: they are those that
profiles have deployed and the catalog no longer selects. So a reverted change leaves nothing to
clean up, and a redelivered message computes the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.catalog.catalog import Catalog
from bellhop.declarations.diff import Key, compare_catalogs
from bellhop.declarations.records import HeldRemoval, Rule
from bellhop.declarations.removal_limits import Counts, RemovalCount, RemovalLimits, Step, together
from bellhop.errors import StaleError
from bellhop.events.transfer import Foreseen
from bellhop.ports.store import ABSENT
from bellhop.rendering.deletion_limit import DeletionLimit
from bellhop.rendering.leave_policy import list_departing
from bellhop.settings import Settings
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.profile import Profile
from bellhop.state.records import Records

_NAMED = 10
"""Clusters that a record names."""

_WINDOWS = 6
"""Windows within which clusters that change one by one count as changed at once."""


class RemovalPlan(NamedTuple):
    """The add-ons that a change would remove, by trigger or profile: held, or at once.

    `addons` has the names of the profiles that would leave each cluster, by trigger or profile.
    """

    held: list[HeldRemoval]
    at_once: list[HeldRemoval]
    addons: Mapping[Rule, Mapping[str, Sequence[str]]]

    def released(self) -> RemovalPlan:
        """Return what a change removes that is released as soon as it is made."""
        at_once = sorted([*self.held, *self.at_once], key=lambda each: each.rule)
        return RemovalPlan([], at_once, self.addons)


class RemovalGuard:
    """Finds what a change would remove, and holds it where that is too much at once."""

    def __init__(self, records: Records, settings: Settings) -> None:
        self._records = records
        self._rule = DeletionLimit(settings.hold_from, settings.hold_share)
        self._limits = RemovalLimits(records, self._rule)
        self._transfers = Foreseen(records)
        self._window = settings.hold_window

    def hold(
        self,
        before: Catalog,
        after: Catalog,
        keys: Sequence[Key],
        cause: str,
        also: Collection[Rule] = (),
    ) -> list[HeldRemoval]:
        """Hold the removals of a change from `before` to `after`, if they are too many.

        Called before the change is written. Return the holds of the rules that it concerns. `also`
        names rules that exceed the limit together with other changes of the same command.
        """
        if not self._rule.is_on:
            return []
        counts, large = self._measured(before, after, keys, also)
        return self._write(_drafts(counts, large), cause)

    def plan(
        self,
        before: Catalog,
        after: Catalog,
        keys: Sequence[Key],
        also: Collection[Rule] = (),
    ) -> RemovalPlan:
        """Return what a change from `before` to `after` would remove; nothing is written."""
        counts, large = self._measured(before, after, keys, also, exact=True)
        rest = {rule for rule, each in counts.items() if each.addons and rule not in large}
        return _plan(counts, large, rest)

    def hold_one_of_many(
        self, before: Catalog, after: Catalog, cluster: str, cause: str
    ) -> list[HeldRemoval]:
        """Hold what the labels of one cluster would remove, if many clusters change one by one.

        Classifiers change clusters this way. A rule may lose an eighth of its add-ons within the
        time that counts as at once: the number of clusters that follow is unknown.
        """
        if not self._rule.is_on:
            return []
        namespace, _, name = cluster.partition("/")
        keys = [("Cluster", namespace, name)]
        held = {each.value.rule for each in self._records.removals.all()}
        counts = self._counted(before, after, keys, held)
        leaving = {rule: each for rule, each in counts.items() if each.addons}
        large = self._limits.exceeded(Step(before, after, of_rules=False), counts, held)
        for rule in sorted(leaving.keys() - large):
            if self._is_many(rule, cluster, leaving[rule].addons):
                large.add(rule)
        return self._write(_drafts(counts, together(large, leaving)), cause)

    def _is_many(self, rule: Rule, cluster: str, addons: int) -> bool:
        """Note that a rule loses add-ons, and return whether it has lost too many a moment ago."""
        until = self._records.clock.now() + _WINDOWS * self._window
        self._records.removals.leave(rule, cluster, addons, until)
        lost = 0
        for count in self._records.removals.left(rule):
            lost += count
            if lost > self._rule.few:
                break
        else:
            return False
        lost = sum(self._records.removals.left(rule))
        # Some of what was lost may still be deployed, and counts twice: a few more may go then.
        there = lost + sum(len(head.matched) for head in self._heads(rule, ""))
        return self._rule.heeds(there) and not self._rule.is_little(lost, there)

    def _write(self, foreseen: Iterable[HeldRemoval], cause: str) -> list[HeldRemoval]:
        """Write drafts of holds, as one change."""
        now, change = self._records.clock.now(), uuid.uuid4().hex[:8]
        drafts = [replace(each, change=change, cause=cause, since=now) for each in foreseen]
        return [self._put(each) for each in drafts]

    def settle(
        self,
        before: Catalog | None,
        after: Catalog,
        keys: Sequence[Key],
        mine: Sequence[HeldRemoval] = (),
    ) -> None:
        """Release the rules that a change concerns and that would lose no add-on any more.

        Called after the change is written. A hold of `mine` that another change released meanwhile
        is written again.
        """
        held = {each.value.rule: each for each in self._records.removals.all()}
        if not held and not mine:
            return
        rules = held.keys() | {each.rule for each in mine}
        counts = self._counted(before, after, keys, held, only=rules)
        clusters = {f"{namespace}/{name}" for kind, namespace, name in keys if kind == "Cluster"}
        deregistered = not clusters <= after.clusters.keys()
        for rule, kept in held.items():
            # Add-ons in a deregistered cluster are not held any more, for any rule.
            is_free = deregistered and not self.remaining(after, kept.value).addons
            if is_free or (rule in counts and not counts[rule].addons):
                with suppress(StaleError):
                    # Another change holds more of it.
                    self._records.removals.delete(rule, expect=kept.token)
        for each in mine:
            if each.rule not in held and each.rule in counts and counts[each.rule].addons:
                self._put(each)

    def _measured(
        self,
        before: Catalog,
        after: Catalog,
        keys: Sequence[Key],
        also: Collection[Rule],
        *,
        exact: bool = False,
    ) -> tuple[Counts, set[Rule]]:
        """Count what a change would remove, and return of which rules that is too much.

        A rename removes nothing: what other profiles wait for is handed over to them. To know that
        much is read, so it is not counted only if it matters, or the numbers are to be `exact`.
        """
        held = {each.value.rule for each in self._records.removals.all()}
        step = Step(before, after, of_rules=any(kind != "Cluster" for kind, _, _ in keys))
        counts = self._counted(before, after, keys, held)
        large = self._limits.exceeded(step, counts, {*held, *also})
        if large or exact:
            counts = self._counted(before, after, keys, held, removed=self._transfers.removes)
            large = self._limits.exceeded(step, counts, {*held, *also})
        return counts, large

    def plan_deregistration(self, catalog: Catalog, clusters: Iterable[str]) -> RemovalPlan:
        """Return the removals from other clusters if clusters leave in this order; none is held.

        Objects in a cluster stay there once it has left.
        """
        counts: dict[Rule, RemovalCount] = {}
        there = set(catalog.clusters)
        for cluster in clusters:
            there.discard(cluster)
            for name, trigger in catalog.triggers.items():
                for head in self._heads((name, ""), cluster):
                    stays = not trigger.policy.withdraws or head.sync == "DryRun"
                    leaving = [] if stays else [each for each in head.matched if each in there]
                    count = counts.setdefault((name, ""), RemovalCount())
                    count.add(head.name, cluster, leaving, len(leaving))
        return _plan(counts, (), {rule for rule, each in counts.items() if each.addons})

    def remaining(self, catalog: Catalog, held: HeldRemoval) -> HeldRemoval:
        """Return what is still held of a rule: events may have removed some of it meanwhile."""
        count = RemovalCount()
        for head in self._heads(held.rule, ""):
            count.add(head.name, head.cluster, list_departing(catalog, head), 0)
        now = _draft(held.rule, count)
        return replace(now, of=held.of, change=held.change, cause=held.cause, since=held.since)

    def _put(self, new: HeldRemoval) -> HeldRemoval:
        """Write the hold of a rule; an existing hold keeps its change and cause."""
        kept = self._records.removals.get(new.rule)
        if kept:
            old = kept.value
            new = replace(new, change=old.change, cause=old.cause, since=old.since)
        try:
            self._records.removals.put(new, expect=kept.token if kept else ABSENT)
        except StaleError:
            return self._put(new)
        if kept is None:
            self._note(new)
        return new

    def _note(self, held: HeldRemoval) -> None:
        """Note in the event log that add-ons are held, and because of what."""
        release = f"bellhop release --change {held.change}"
        detail = (
            f"{held.cause}: {held.addons} of {held.of} add-ons would be removed from"
            f" {held.number} clusters; they stay until the change is taken back, or `{release}`"
            " removes them"
        )
        context = {"trigger": held.trigger} if held.trigger else {"profile": held.profile}
        write(self._records, Nobody(), "", "", Note("held", detail, context=context))

    # Removals -----------------------------------------------------------------------------------

    def _counted(
        self,
        before: Catalog | None,
        after: Catalog,
        keys: Sequence[Key],
        held: Collection[Rule],
        only: Collection[Rule] | None = None,
        removed: Callable[[Profile, str], bool] = lambda *_: True,
    ) -> dict[Rule, RemovalCount]:
        """Count the removals of a change for each rule that may lose add-ons.

        Add-ons that were not desired before either are being removed already, unless they are held.
        Of the others those that `removed` rejects are not counted.
        """
        counts: dict[Rule, RemovalCount] = {}
        for rule, source in _concerned(before, after, keys, held):
            if only is not None and rule not in only:
                continue
            count = counts.setdefault(rule, RemovalCount())
            earlier = None if rule in held else before
            for head in self._heads(rule, source):
                leaving = set(list_departing(after, head, before))
                if earlier and leaving:
                    leaving.difference_update(list_departing(earlier, head))
                leaving = {each for each in leaving if removed(head, each)}
                there = sum(1 for each in head.matched if each in after.clusters)
                count.add(head.name, head.cluster, leaving, there)
        return counts

    def _heads(self, rule: Rule, source: str) -> Iterator[Profile]:
        """Yield the profiles of a rule, of one source cluster or of all, with all destinations."""
        trigger, profile = rule
        if profile:
            kept = self._records.profiles.head("", "", profile)
            yield from [kept.value] if kept else []
            return
        for head in self._records.profiles.heads(trigger, source):
            if head.vague:
                kept = self._records.profiles.head(trigger, head.cluster, head.name)
                yield from [kept.value] if kept else []
            else:
                yield head


def _concerned(
    before: Catalog | None, after: Catalog, keys: Sequence[Key], held: Collection[Rule]
) -> Iterator[tuple[Rule, str]]:
    """Yield the rules that a change may take add-ons from, some with only one source cluster.

    Only the profiles of these are read; of a rule with a hold all are.
    """
    touched = compare_catalogs(before, after, keys)
    whole = {name for name, cluster in touched.instantiated if cluster is None}
    whole = {name for name in whole if before is None or _may_lose(before, after, name)}
    whole |= {name for name, cluster in touched.placed if _unplaced(before, after, name, cluster)}
    named = {name for name, _ in touched.instantiated} | {name for name, _ in touched.placed}
    whole |= {name for name in named if (name, "") in held}
    yield from (((name, ""), "") for name in sorted(whole))
    for name, cluster in sorted(touched.instantiated, key=str):
        if cluster and name not in whole and _loses_source(before, after, name, cluster):
            yield (name, ""), cluster
    yield from ((("", name), "") for name in sorted(touched.resolved))


def _may_lose(before: Catalog, after: Catalog, name: str) -> bool:
    """Return whether a trigger that a change touches may remove anything, wherever it counts."""
    old, new = before.triggers.get(name), after.triggers.get(name)
    if old is None or new is None:
        return old is not None
    if old.written != new.written:
        return True
    return any(_loses_source(before, after, name, each) for each in after.clusters)


def _loses_source(before: Catalog | None, after: Catalog, name: str, cluster: str) -> bool:
    """Return whether a trigger has no source in a cluster any more."""
    if cluster not in after.clusters:
        return False
    if before is None:
        return True
    old, new = before.triggers.get(name), after.triggers.get(name)
    if old is None or before.source_of(old, cluster) is None:
        return False
    return new is None or after.source_of(new, cluster) is None


def _unplaced(before: Catalog | None, after: Catalog, name: str, cluster: str) -> bool:
    """Return whether a trigger does not select a destination any more that is registered."""
    if before is None or cluster not in after.clusters:
        return cluster in after.clusters
    old, new = before.triggers.get(name), after.triggers.get(name)
    return bool(
        old
        and before.may_reach(old, "", cluster)
        and not (new and after.may_reach(new, "", cluster))
    )


def _plan(counts: Counts, held: Iterable[Rule], at_once: Iterable[Rule]) -> RemovalPlan:
    addons = {rule: each.clusters for rule, each in counts.items()}
    return RemovalPlan(_drafts(counts, held), _drafts(counts, at_once), addons)


def _drafts(counts: Counts, rules: Iterable[Rule]) -> list[HeldRemoval]:
    return [_draft(rule, counts[rule]) for rule in sorted(rules)]


def _draft(rule: Rule, count: RemovalCount) -> HeldRemoval:
    named = tuple(sorted(count.clusters)[:_NAMED])
    return HeldRemoval(*rule, count.profiles, count.addons, count.of, len(count.clusters), named)
