"""Change fan-out: messages to publish after a change of manifests or clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice

from msgspec.structs import replace

from bellhop.catalog.catalog import Catalog
from bellhop.declarations.diff import Key, Touched, compare_catalogs
from bellhop.declarations.records import Rule
from bellhop.settings import Settings
from bellhop.state.cluster import MANAGEMENT, RENEWAL_OPTION, Cluster
from bellhop.state.delays import renewal_timer, spread, sweep_timer
from bellhop.state.envelope import Envelope
from bellhop.state.ingest_policy import WatchedKind
from bellhop.state.messages import (
    Apply,
    CheckHealth,
    Instantiate,
    Promote,
    Publisher,
    PurgeCluster,
    Renew,
    Resolve,
    Resync,
    UpdateLabels,
)
from bellhop.state.profile import Profile
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

    def publish_effects(self, keys: Sequence[Key], before: Catalog | None, after: Catalog) -> None:
        """Publish all that follows from changed objects; without a `before`, all that may."""
        touched = compare_catalogs(before, after, keys)
        self._write_ingest_policies(after, touched.gates)
        for key in sorted(touched.resynced):
            if key in after.clusters:
                self._set_resync_timer(key)
            else:
                self._set_purge_timer(key)
        for kind, namespace, name in keys:
            if kind == "Cluster" and f"{namespace}/{name}" in after.clusters:
                self._set_renewal_timer(after.clusters[f"{namespace}/{name}"])
        self._publish(self._list_messages(after, touched))

    def publish_profiles(self, destination: str) -> None:
        """Ask again for all profiles that were applied in a cluster, or wait to leave it."""
        self._publish(self._apply_again(destination, ()))

    def withdraw(self, after: Catalog, rules: Iterable[Rule]) -> None:
        """Publish all profiles of some triggers, and some own profiles, which may be removed now.

        If a trigger has no source any more, the matches that stayed with its profiles end.
        """
        for trigger, profile in rules:
            if profile:
                self._publish([Resolve(profile)])
                continue
            asked = list(self._list_instantiations(after, trigger, None))
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

    def _list_messages(self, after: Catalog, touched: Touched) -> Iterator[Envelope]:
        """Yield what asks for all that is touched."""
        for key in sorted(touched.resynced & set(after.clusters)):
            yield Resync(key, full=key in touched.resynced_in_full)
        yield from (CheckHealth(key) for key in sorted(touched.examined))
        yield from (UpdateLabels(key) for key in sorted(touched.classified & set(after.clusters)))
        for trigger, cluster in sorted(touched.instantiated, key=str):
            yield from self._list_instantiations(after, trigger, cluster)
        for key in sorted(touched.resumed):
            yield from self._list_withdrawals(after, key)
        for trigger, destination in sorted(touched.placed):
            yield from self._list_placements(trigger, destination)
        yield from (Promote(name) for name in sorted(touched.promoted))
        yield from (Resolve(name) for name in sorted(touched.resolved))
        yield from list_applications(self._records, *touched.reread)
        for destination in sorted(touched.relabelled):
            came = destination in touched.resynced_in_full and destination in after.clusters
            yield from self._apply_again(
                destination, self._list_naming_profiles(after, destination) if came else ()
            )
            yield from self._list_local_profiles(after, destination)
        if MANAGEMENT in touched.resynced_in_full:
            yield from self._list_all_local_profiles(after)

    def _set_resync_timer(self, cluster: str) -> None:
        name = sweep_timer(cluster)
        if self._records.timers.get(name) is None:
            at = self._records.clock.now() + spread(name, self._settings.sweep_interval)
            self._records.timers.set(name, at, Resync(cluster).message().body)

    def _set_renewal_timer(self, cluster: Cluster) -> None:
        """Have the next renewal of a cluster computed: its record may have changed.

        The timer is early enough to finish a registration that dies; the renewal sets the next one.
        """
        if not (cluster.forwarder or cluster.abandoned or RENEWAL_OPTION in cluster.spec):
            return
        name, at = renewal_timer(cluster.key), self._records.clock.now() + _REGISTERING
        kept = self._records.timers.get(name)
        # It is written in any case, so that a worker which read an older record notices.
        at = min(at, kept.value.at) if kept else at
        self._records.timers.set(name, at, Renew(cluster.key).message().body)

    def _set_purge_timer(self, cluster: str) -> None:
        """Have the traces deleted that workers still write for a removed cluster."""
        self._records.timers.cancel(sweep_timer(cluster))
        self._records.timers.cancel(renewal_timer(cluster))
        at = self._records.clock.now() + _WORK
        self._records.timers.set(f"tidy/{cluster}", at, PurgeCluster(cluster).message().body)

    def _list_instantiations(
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

    def _list_withdrawals(self, catalog: Catalog, cluster: str) -> Iterator[Instantiate]:
        """Ask for the triggers that have left profiles in a cluster and watch it no more.

        A pause kept them from withdrawing those. Triggers that watch it are asked in any case.
        """
        for name, trigger in catalog.triggers.items():
            if not catalog.watches(trigger, cluster):
                heads = self._records.profiles.heads(name, cluster)
                yield from (Instantiate(name, cluster) for _ in islice(heads, 1))

    def _list_placements(self, trigger: str, destination: str) -> Iterator[Envelope]:
        """Ask for all profiles of a trigger that now selects a destination, or no longer does.

        Those that name it already may have named another cluster that had its name.
        """
        for each in self._records.profiles.heads(trigger):
            yield Instantiate(trigger, each.cluster, each.object)
            if each.may_name(destination):
                yield Apply(trigger, each.cluster, each.name, destination)

    def _apply_again(self, destination: str, profiles: Iterable[Profile]) -> Iterator[Apply]:
        """Ask for the profiles there, which may be rendered with its labels, and for others."""
        asked = {
            (each.trigger, each.source, each.profile)
            for each in self._records.outcomes.of(destination)
        }
        asked |= {(each.trigger, each.cluster, each.name) for each in profiles}
        for trigger, cluster, name in sorted(asked):
            yield Apply(trigger, cluster, name, destination)

    def _list_local_profiles(self, catalog: Catalog, cluster: str) -> Iterator[Apply]:
        """Publish the profiles of a cluster that have parts for the management cluster.

        These may read the cluster's labels. A rolled-back profile may have such parts although its
        manifest has none; its status shows it.
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

    def _list_all_local_profiles(self, catalog: Catalog) -> Iterator[Envelope]:
        """Publish profiles that have parts for the management cluster after it came or left.

        All profiles are read, which happens once in the life of an installation.
        """
        for each in self._records.profiles.heads(""):
            if each.hosting and not _is_local(catalog, "", each.name):
                yield Resolve(each.name)
        for trigger in (name for name in catalog.triggers if not _is_local(catalog, name, "")):
            for each in self._records.profiles.heads(trigger):
                if each.hosting:
                    yield Instantiate(trigger, each.cluster, each.object)

    def _list_naming_profiles(self, catalog: Catalog, cluster: str) -> Iterator[Profile]:
        """Yield the profiles that name a cluster, after it was registered.

        They may still refer to a former cluster of the same name, whose inventory was deleted.
        `_placed` publishes the profiles that select it by labels.
        """
        heads = self._records.profiles
        for trigger in catalog.triggers.values():
            if catalog.watches(trigger, cluster):
                found = heads.heads(trigger.name, cluster)
                yield from (each for each in found if each.may_name(cluster))
        yield from (each for each in heads.heads("") if each.may_name(cluster))

    def _write_ingest_policies(self, catalog: Catalog, clusters: Iterable[str]) -> None:
        """Write the ingest policies of clusters; plurals known from discovery are kept."""
        for key in sorted(set(clusters) & set(catalog.clusters)):
            cluster = catalog.clusters[key]
            old = self._records.gates.get_or_none(key)
            plurals = {each.gvk: each.plural for each in old.value.kinds} if old else {}
            own = catalog.own_kinds_in(key)
            kinds = (
                WatchedKind(gvk, plurals.get(gvk, ""), gvk in own) for gvk in catalog.kinds_in(key)
            )
            held = old.value.held if old else ()
            followed = old.value.followed if old else ()
            listeners = catalog.listeners_in(key)
            configured = old.value.configured if old and key == catalog.configuration else ()
            gate = cluster.gate(kinds, catalog.revision, listeners, held, followed, configured)
            if not old or replace(old.value, revision=gate.revision) != gate:
                self._records.gates.put(key, gate)


def _is_local(catalog: Catalog, trigger: str, profile: str) -> bool:
    """Return whether a trigger, or an own profile, deploys parts to the management cluster."""
    declared = catalog.triggers.get(trigger) if trigger else catalog.profiles.get(profile)
    return declared is not None and declared.local


def list_applications(
    records: Records, triggers: Iterable[str], profiles: Iterable[str]
) -> Iterator[Apply]:
    """Yield the messages that apply all profiles of some triggers, and some own profiles."""
    for trigger in sorted(triggers):
        for each in records.profiles.heads(trigger):
            yield from _applications(records, each)
    for name in sorted(profiles):
        found = records.profiles.head("", "", name)
        if found:
            yield from _applications(records, found.value)


def _applications(records: Records, profile: Profile) -> Iterator[Apply]:
    place = profile.trigger, profile.cluster, profile.name
    found = records.profiles.head(*place) if profile.vague else None
    for destination in (found.value if found else profile).destinations:
        yield Apply(*place, destination)
