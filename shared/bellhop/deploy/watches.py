"""Which kinds ring in a cluster so that drift is heard of: those of what profiles hold there.

And those of what is read there by workloads that restart with it; whose these are is noted, too.

    applied ─► watch written as untold ─► a sweep is asked to have them ring ─► told
    sweep ─► the watch of a profile that is not to be watched any more goes

Whoever dies in between leaves it untold, and the message that comes again tells it. A sweep reads
the profile once more after it took a watch away: one that came back meanwhile is applied again,
which writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from msgspec.structs import replace

from bellhop.core.gvk import GVK, Identity
from bellhop.deploy.context import ReconcileContext, watches
from bellhop.deploy.subscribers import readers, rereaders
from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import Apply, Publisher, Resync
from bellhop.state.record import MOST_WATCHED, Profile, Watch
from bellhop.state.records import Records
from bellhop.state.reload_index import Mount
from bellhop.state.table import Stored


class DriftWatches:
    """Keeps what is watched in clusters as it has to be."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def keep(self, work: ReconcileContext) -> None:
        """Have a cluster ring for what a profile holds there, where drift is watched.

        Raises:
            StaleError: another worker was quicker.
        """
        self._tell_readers(work)
        if not (work.watches or (work.wanted and work.profile.rollout.reloads)):
            return
        cluster, profile = work.cluster.key, work.profile
        mounts = sorted({name for each in work.held.values() for name in each.mounted})
        mounts = mounts[:MOST_WATCHED]
        kinds = tuple(sorted(_kinds(work, mounts))[:MOST_WATCHED])
        kept = self._records.watches.get(cluster, profile.name)
        wanted = Watch(cluster, profile.name, profile.trigger, profile.cluster, kinds, told=True)
        charts = _kinds(work, (), of_chart=True).intersection(kinds)
        wanted = replace(wanted, mounts=tuple(mounts), charts=tuple(sorted(charts)))
        if kept and kept.value == wanted:
            return
        untold = replace(wanted, told=False)
        before = kept.value.mounts if kept else ()
        self._mount(untold, before)
        token = self._records.watches.put(untold, expect=kept.token if kept else ABSENT)
        self._unmount(untold, before)
        old = kept.value.of_charts if kept else ()
        rings = charts.issubset(old) and self._rings_for(cluster, kinds)
        if not rings and not self._is_asked_for(untold):
            self._publisher.publish([Resync(cluster)])
        self._records.watches.put(wanted, expect=token)

    def _tell_readers(self, work: ReconcileContext) -> None:
        """Tell others whose workloads or templates read what was written: our writes do not ring.

        Who dies before leaves it to the next sweep.
        """
        me, cluster = work.profile.name, work.cluster.key
        told = set(readers(self._records, cluster, work.written))
        self._publisher.publish(Apply(*who, cluster) for who in sorted(told) if who[2] != me)
        if cluster == MANAGEMENT:
            again = rereaders(self._records, work.written)
            # Who reads what it writes itself looks at that before it ends.
            self._publisher.publish(
                each for each in again if (each.profile, each.destination) != (me, cluster)
            )

    def _mount(self, watch: Watch, before: tuple[str, ...]) -> None:
        """Note what is read from now on, before the watch says so: who dies does it again."""
        mount = Mount(watch.trigger, watch.source, watch.profile)
        for name in sorted({*watch.mounts} - {*before}):
            self._records.mounts.put(watch.cluster, Identity.parse(name), mount)

    def _unmount(self, watch: Watch, before: tuple[str, ...]) -> None:
        """Note what is read no more, once the watch says so; what is left over is harmless."""
        for name in sorted({*before} - {*watch.mounts}):
            self._records.mounts.delete(watch.cluster, Identity.parse(name), watch.profile)

    def _rings_for(self, cluster: str, kinds: tuple[GVK, ...]) -> bool:
        gate = self._records.gates.get(cluster)
        return gate is not None and {each.gvk for each in gate.value.held}.issuperset(kinds)

    def _is_asked_for(self, watch: Watch) -> bool:
        """Say whether another profile has had the cluster asked for the same: one sweep is enough.

        Of many that come at once the first asks; it is the first watch that is read, too.
        """
        others = (each.value for each in self._records.watches.of(watch.cluster))
        wanted, charts = set(watch.kinds), set(watch.of_charts)
        return any(
            each.profile != watch.profile
            and wanted.issubset(each.kinds)
            and charts.issubset(each.of_charts)
            for each in others
        )

    def kinds(self, cluster: str) -> tuple[list[GVK], frozenset[GVK]]:
        """Return the kinds that are to ring in a cluster, and forget those that need not.

        And those of them that objects of Helm releases have.
        """
        found: set[GVK] = set()
        charts: set[GVK] = set()
        for kept in list(self._records.watches.of(cluster)):
            if self._counts(kept.value):
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
        if self._counts(watch):
            # It was meant again before it was forgotten, and who brought it found it there.
            place = watch.trigger, watch.source, watch.profile
            self._publisher.publish([Apply(*place, watch.cluster)])

    def _counts(self, watch: Watch) -> bool:
        head = self._records.profiles.head(watch.trigger, watch.source, watch.profile)
        return head is not None and _is_watched(head.value, watch.cluster)


def _kinds(work: ReconcileContext, mounts: Iterable[str], *, of_chart: bool = False) -> set[GVK]:
    """Return the kinds that are to ring for a profile: of what it holds, and of what is read.

    By `of_chart` those of what its releases consist of.
    """
    read = {Identity.parse(name).at("v1").gvk for name in mounts}
    if not work.watches:
        return read
    return read | {
        key.at(each.version).gvk
        for key, each in work.held.items()
        if each.version and (each.part_of or not of_chart)
    }


def _is_watched(profile: Profile, cluster: str) -> bool:
    # Of a vague one nobody knows its clusters: it is watched as long as it is watched anywhere.
    asked = watches(profile) or profile.rollout.reloads
    return asked and (profile.vague or cluster in profile.destinations)
