"""Kinds whose changes a cluster reports, so that drift is corrected: those of profiles' objects.

And those of ConfigMaps and Secrets for which workloads restart; the reload index has whose.

    applied ─► watch stored as unpublished ─► a resync is requested ─► published
    resync ─► the watch of a profile that is no longer watched is deleted

If a worker dies in between, the watch stays unpublished, and the message that is delivered again
publishes it. A resync reads the profile again after it deleted a watch: one that is watched again
by then is applied again, which writes the watch.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from msgspec.structs import replace

from bellhop.core.gvk import GVK, Identity
from bellhop.deploy.context import ReconcileContext, corrects_drift
from bellhop.deploy.subscribers import list_template_dependents, list_workload_readers
from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.deployment import MOST_WATCHED, Mount, Watch
from bellhop.state.messages import Apply, Publisher, Resync
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored


class DriftWatches:
    """Watches of profiles in clusters."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def update(self, context: ReconcileContext) -> None:
        """Have a cluster report changes of a profile's objects, if drift is watched.

        Raises:
            StaleError: another worker was quicker.
        """
        self._notify_readers(context)
        if not (
            context.watches_drift or (context.is_destination and context.profile.rollout.reloads)
        ):
            return
        cluster, profile = context.cluster.key, context.profile
        mounts = sorted({name for each in context.progress.held.values() for name in each.mounted})
        mounts = mounts[:MOST_WATCHED]
        kinds = tuple(sorted(_kinds(context, mounts))[:MOST_WATCHED])
        kept = self._records.watches.get(cluster, profile.name)
        published = Watch(cluster, profile.name, profile.trigger, profile.cluster, kinds, told=True)
        charts = _kinds(context, (), of_chart=True).intersection(kinds)
        published = replace(published, mounts=tuple(mounts), charts=tuple(sorted(charts)))
        if kept and kept.value == published:
            return
        unpublished = replace(published, told=False)
        before = kept.value.mounts if kept else ()
        self._mount(unpublished, before)
        token = self._records.watches.put(unpublished, expect=kept.token if kept else ABSENT)
        self._unmount(unpublished, before)
        old = kept.value.of_charts if kept else ()
        reported = charts.issubset(old) and self._reports(cluster, kinds)
        if not reported and not self._is_requested(unpublished):
            self._publisher.publish([Resync(cluster)])
        self._records.watches.mark_published(unpublished, expect=token)

    def _notify_readers(self, context: ReconcileContext) -> None:
        """Publish profiles whose workloads or templates read the objects that were written.

        Bellhop's own writes send no event.
        If the worker dies before, the next resync corrects it.
        """
        me, cluster = context.profile.name, context.cluster.key
        dependents = set(list_workload_readers(self._records, cluster, context.progress.written))
        self._publisher.publish(Apply(*who, cluster) for who in sorted(dependents) if who[2] != me)
        if cluster == MANAGEMENT:
            again = list_template_dependents(self._records, context.progress.written)
            # A profile that reads what it writes reads that again before it ends.
            self._publisher.publish(
                each for each in again if (each.profile, each.destination) != (me, cluster)
            )

    def _mount(self, watch: Watch, before: tuple[str, ...]) -> None:
        """Index what is read from now on, before the watch says so: a retry does it again."""
        mount = Mount(watch.trigger, watch.source, watch.profile)
        for name in sorted({*watch.mounts} - {*before}):
            self._records.mounts.put(watch.cluster, Identity.parse(name), mount)

    def _unmount(self, watch: Watch, before: tuple[str, ...]) -> None:
        """Delete what is read no more, once the watch says so; an entry left over is harmless."""
        for name in sorted({*before} - {*watch.mounts}):
            self._records.mounts.delete(watch.cluster, Identity.parse(name), watch.profile)

    def _reports(self, cluster: str, kinds: tuple[GVK, ...]) -> bool:
        gate = self._records.gates.get(cluster)
        return gate is not None and {each.gvk for each in gate.value.held}.issuperset(kinds)

    def _is_requested(self, watch: Watch) -> bool:
        """Say whether another profile has requested the same of the cluster: one resync is enough.

        Of many at once the first requests it; its watch is also the first that is read.
        """
        others = (each.value for each in self._records.watches.of(watch.cluster))
        kinds, charts = set(watch.kinds), set(watch.of_charts)
        return any(
            each.profile != watch.profile
            and kinds.issubset(each.kinds)
            and charts.issubset(each.of_charts)
            for each in others
        )

    def kinds(self, cluster: str) -> tuple[list[GVK], frozenset[GVK]]:
        """Return the kinds that a cluster reports, and delete the watches that are out of date.

        And those of them that objects of Helm releases have.
        """
        found: set[GVK] = set()
        charts: set[GVK] = set()
        for kept in list(self._records.watches.of(cluster)):
            if self._is_current(kept.value):
                found.update(kept.value.kinds)
                charts.update(kept.value.of_charts)
            else:
                self._forget(kept)
        return sorted(found), frozenset(charts)

    def _forget(self, kept: Stored[Watch]) -> None:
        watch = kept.value
        with suppress(StaleError):
            self._records.watches.delete(watch.cluster, watch.profile, expect=kept.token)
            self._unmount(replace(watch, mounts=()), watch.mounts)
        if self._is_current(watch):
            # It was watched again before this, and the worker that deployed it found the watch.
            place = watch.trigger, watch.source, watch.profile
            self._publisher.publish([Apply(*place, watch.cluster)])

    def _is_current(self, watch: Watch) -> bool:
        head = self._records.profiles.head(watch.trigger, watch.source, watch.profile)
        return head is not None and _is_watched(head.value, watch.cluster)


def _kinds(context: ReconcileContext, mounts: Iterable[str], *, of_chart: bool = False) -> set[GVK]:
    """Return the kinds to report for a profile: of its objects, and of what is read.

    By `of_chart` those of what its releases consist of.
    """
    read = {Identity.parse(name).at("v1").gvk for name in mounts}
    if not context.watches_drift:
        return read
    return read | {
        key.at(each.version).gvk
        for key, each in context.progress.held.items()
        if each.version and (each.part_of or not of_chart)
    }


def _is_watched(profile: Profile, cluster: str) -> bool:
    # The clusters of a vague one are unknown: it is watched as long as it is watched anywhere.
    asked = corrects_drift(profile) or profile.rollout.reloads
    return asked and (profile.vague or cluster in profile.destinations)
