"""What follows from a change of what is declared: who is looked at, made and applied again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice

from msgspec.structs import replace

from bellhop.catalog.catalog import Catalog
from bellhop.declarations.diff import Key, Touched, difference
from bellhop.declarations.records.held_removals import Rule
from bellhop.declarations.rerender import applied_again
from bellhop.settings import Settings
from bellhop.state.delays import renewal_timer, spread, sweep_timer
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import (
    Apply,
    CheckHealth,
    Envelope,
    Instantiate,
    Publisher,
    PurgeCluster,
    Renew,
    Resolve,
    Resync,
    UpdateLabels,
)
from bellhop.state.record import Cluster, Profile, WatchedKind
from bellhop.state.records import Records

_PAGE = 500
"""Messages published at a time: a declaration may touch every profile of the fleet."""

_WORK = timedelta(minutes=2)
"""Longer than work on one message takes."""

_REGISTERING = timedelta(minutes=1)
"""Longer than it takes to register a cluster, from its record on."""


class ChangeFanOut:
    """Opens gates, sets timers and asks for all that a change touches."""

    def __init__(self, records: Records, publisher: Publisher, settings: Settings) -> None:
        self._records = records
        self._publisher = publisher
        self._settings = settings

    def follow(self, keys: Sequence[Key], before: Catalog | None, after: Catalog) -> None:
        """Publish all that follows from changed objects; without a `before`, all that may."""
        touched = difference(before, after, keys)
        self._open_gates(after, touched.gates)
        for key in sorted(touched.swept):
            if key in after.clusters:
                self._keep_sweeping(key)
            else:
                self._tidy_later(key)
        for kind, namespace, name in keys:
            if kind == "Cluster" and f"{namespace}/{name}" in after.clusters:
                self._keep_renewing(after.clusters[f"{namespace}/{name}"])
        self._publish(self._following(after, touched))

    def tell_profiles(self, destination: str) -> None:
        """Ask again for all profiles that were applied in a cluster, or wait to leave it."""
        self._publish(self._applied_again(destination, ()))

    def withdraw(self, after: Catalog, rules: Iterable[Rule]) -> None:
        """Ask for all profiles of some triggers, and for some of users' own, which may leave now.

        Where a trigger has no source any more, the matches that stayed with its profiles end.
        """
        for trigger, profile in rules:
            if profile:
                self._publish([Resolve(profile)])
                continue
            asked = list(self._instantiated(after, trigger, None))
            self._publish(asked)
            declared = after.triggers.get(trigger)
            self._publish(
                Resync(each.cluster, full=True)
                for each in asked
                if each.cluster in after.clusters
                and not (declared and after.source_of(declared, each.cluster))
            )

    def _publish(self, messages: Iterable[Envelope]) -> None:
        """Publish messages in pages, as they are read from the records, however many."""
        rest = iter(messages)
        while page := list(islice(rest, _PAGE)):
            self._publisher.publish(page)

    def _following(self, after: Catalog, touched: Touched) -> Iterator[Envelope]:
        """Yield what asks for all that is touched."""
        for key in sorted(touched.swept & set(after.clusters)):
            yield Resync(key, full=key in touched.anew)
        yield from (CheckHealth(key) for key in sorted(touched.examined))
        yield from (UpdateLabels(key) for key in sorted(touched.classified & set(after.clusters)))
        for trigger, cluster in sorted(touched.instantiated, key=str):
            yield from self._instantiated(after, trigger, cluster)
        for key in sorted(touched.resumed):
            yield from self._left_in(after, key)
        for trigger, destination in sorted(touched.placed):
            yield from self._placed(trigger, destination)
        yield from (Resolve(name) for name in sorted(touched.resolved))
        yield from applied_again(self._records, *touched.reread)
        for destination in sorted(touched.relabelled):
            came = destination in touched.anew and destination in after.clusters
            yield from self._applied_again(
                destination, self._naming(after, destination) if came else ()
            )
            yield from self._hosted(after, destination)
        if MANAGEMENT in touched.anew:
            yield from self._housed_anew(after)

    def _keep_sweeping(self, cluster: str) -> None:
        name = sweep_timer(cluster)
        if self._records.timers.get(name) is None:
            at = self._records.clock.now() + spread(name, self._settings.sweep_interval)
            self._records.timers.set(name, at, Resync(cluster).message().body)

    def _keep_renewing(self, cluster: Cluster) -> None:
        """Have it looked at what a cluster that rings needs next: its record may say another time.

        Soon enough to finish a registration that dies; whoever looks sets the time after that.
        """
        if not cluster.forwarder and not cluster.abandoned:
            return
        name, at = renewal_timer(cluster.key), self._records.clock.now() + _REGISTERING
        kept = self._records.timers.get(name)
        # Written anew in any case: who has looked at an older record is to notice.
        at = min(at, kept.value.at) if kept else at
        self._records.timers.set(name, at, Renew(cluster.key).message().body)

    def _tidy_later(self, cluster: str) -> None:
        """Have the traces of a cluster deleted that those leave who are at work on it now."""
        self._records.timers.cancel(sweep_timer(cluster))
        self._records.timers.cancel(renewal_timer(cluster))
        at = self._records.clock.now() + _WORK
        self._records.timers.set(f"tidy/{cluster}", at, PurgeCluster(cluster).message().body)

    def _instantiated(
        self, catalog: Catalog, name: str, cluster: str | None
    ) -> Iterator[Instantiate]:
        """Ask for a trigger in one cluster, or wherever it is in force or has left profiles."""
        clusters = (
            {cluster} if cluster else {each.cluster for each in self._records.profiles.heads(name)}
        )
        if cluster is None and name in catalog.triggers:
            clusters |= {
                key
                for key in catalog.clusters
                if catalog.source_of(catalog.triggers[name], key) is not None
            }
        return (Instantiate(name, each) for each in sorted(filter(None, clusters)))

    def _left_in(self, catalog: Catalog, cluster: str) -> Iterator[Instantiate]:
        """Ask for the triggers that have left profiles in a cluster and watch it no more.

        A pause kept them from withdrawing those. Triggers that watch it are asked in any case.
        """
        for name, trigger in catalog.triggers.items():
            if not catalog.watches(trigger, cluster):
                heads = self._records.profiles.heads(name, cluster)
                yield from (Instantiate(name, cluster) for _ in islice(heads, 1))

    def _placed(self, trigger: str, destination: str) -> Iterator[Envelope]:
        """Ask for all profiles of a trigger that now selects a destination, or no longer does.

        Those that name it already may have named another cluster that had its name.
        """
        for each in self._records.profiles.heads(trigger):
            yield Instantiate(trigger, each.cluster, each.object)
            if each.may_name(destination):
                yield Apply(trigger, each.cluster, each.name, destination)

    def _applied_again(self, destination: str, profiles: Iterable[Profile]) -> Iterator[Apply]:
        """Ask for the profiles there, which may be rendered with its labels, and for others."""
        asked = {
            (each.trigger, each.source, each.profile)
            for each in self._records.outcomes.of(destination)
        }
        asked |= {(each.trigger, each.cluster, each.name) for each in profiles}
        for trigger, cluster, name in sorted(asked):
            yield Apply(trigger, cluster, name, destination)

    def _hosted(self, catalog: Catalog, cluster: str) -> Iterator[Apply]:
        """Ask for what is Local of the profiles of a cluster: its labels may be in it.

        What holds such though nothing that is declared does, as what was rolled back, is known by
        its outcome.
        """
        heads = self._records.profiles
        for profile in (name for name, each in catalog.profiles.items() if each.local):
            head = heads.head("", "", profile)
            if head and cluster in head.value.guests(MANAGEMENT):
                yield Apply("", "", profile, MANAGEMENT)
        for trigger in (name for name, each in catalog.triggers.items() if each.local):
            for each in heads.heads(trigger):
                if each.vague or cluster in each.guests(MANAGEMENT):
                    yield Apply(trigger, each.cluster, each.name, MANAGEMENT)
        for outcome in self._records.outcomes.of(MANAGEMENT):
            which = outcome.trigger, outcome.source, outcome.profile
            if outcome.guests and not _is_local(catalog, outcome.trigger, outcome.profile):
                head = heads.head(*which)
                if head and cluster in head.value.guests(MANAGEMENT):
                    yield Apply(*which, MANAGEMENT)

    def _housed_anew(self, catalog: Catalog) -> Iterator[Envelope]:
        """Have made again what holds what is Local, though nothing declared does, as `mgmt` came.

        Or went. All profiles are looked at; that happens once in the life of an installation.
        """
        for each in self._records.profiles.heads(""):
            if each.hosting and not _is_local(catalog, "", each.name):
                yield Resolve(each.name)
        for trigger in (name for name in catalog.triggers if not _is_local(catalog, name, "")):
            for each in self._records.profiles.heads(trigger):
                if each.hosting:
                    yield Instantiate(trigger, each.cluster, each.object)

    def _naming(self, catalog: Catalog, cluster: str) -> Iterator[Profile]:
        """Yield the profiles that name a cluster, for one that came.

        They may have named another one of its name, whose end they have not heard of; what was
        applied there is forgotten, and they would not be asked for again. `_placed` asks for those
        that select it by its labels.
        """
        heads = self._records.profiles
        for trigger in catalog.triggers.values():
            if catalog.watches(trigger, cluster):
                found = heads.heads(trigger.name, cluster)
                yield from (each for each in found if each.may_name(cluster))
        yield from (each for each in heads.heads("") if each.may_name(cluster))

    def _open_gates(self, catalog: Catalog, clusters: Iterable[str]) -> None:
        """Let each cluster's kinds in; what discovery told of them before is kept."""
        for key in sorted(set(clusters) & set(catalog.clusters)):
            cluster = catalog.clusters[key]
            old = self._records.gates.known(key)
            plurals = {each.gvk: each.plural for each in old.value.kinds} if old else {}
            own = catalog.own_kinds_in(key)
            kinds = (
                WatchedKind(gvk, plurals.get(gvk, ""), gvk in own) for gvk in catalog.kinds_in(key)
            )
            held = old.value.held if old else ()
            followed = old.value.followed if old else ()
            listeners = catalog.listeners_in(key)
            gate = cluster.gate(kinds, catalog.revision, listeners, held, followed)
            if not old or replace(old.value, revision=gate.revision) != gate:
                self._records.gates.put(key, gate)


def _is_local(catalog: Catalog, trigger: str, profile: str) -> bool:
    """Say whether what is declared of a trigger, or of a user's own profile, is Local in part."""
    declared = catalog.triggers.get(trigger) if trigger else catalog.profiles.get(profile)
    return declared is not None and declared.local
