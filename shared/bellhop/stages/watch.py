"""Which kinds ring in a cluster so that drift is heard of: those of what profiles hold there.

    applied ─► watch written as untold ─► a sweep is asked to have them ring ─► told
    sweep ─► the watch of a profile that is not to be watched any more goes

Whoever dies in between leaves it untold, and the message that comes again tells it. A sweep reads
the profile once more after it took a watch away: one that came back meanwhile is applied again,
which writes it anew.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from bellhop.errors import StaleError
from bellhop.messages import Apply, Publisher, Sweep
from bellhop.model.gvk import GVK
from bellhop.model.record import MOST_WATCHED, Profile, Watch
from bellhop.ports.store import ABSENT
from bellhop.records import Kept, Records
from bellhop.stages.work import Work, watches


class Watching:
    """Keeps what is watched in clusters as it has to be."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def keep(self, work: Work) -> None:
        """Have a cluster ring for what a profile holds there, where drift is watched.

        Raises:
            StaleError: another worker was quicker.
        """
        if not work.watches:
            return
        cluster, profile = work.cluster.key, work.profile
        held = {key.at(each.version).gvk for key, each in work.held.items() if each.version}
        kinds = tuple(sorted(held)[:MOST_WATCHED])
        kept = self._records.watches.get(cluster, profile.name)
        wanted = Watch(cluster, profile.name, profile.trigger, profile.cluster, kinds, told=True)
        if kept and kept.value == wanted:
            return
        untold = replace(wanted, told=False)
        token = self._records.watches.put(untold, expect=kept.token if kept else ABSENT)
        if not self._rings_for(cluster, kinds) and not self._is_asked_for(untold):
            self._publisher.publish([Sweep(cluster)])
        self._records.watches.put(wanted, expect=token)

    def _rings_for(self, cluster: str, kinds: tuple[GVK, ...]) -> bool:
        gate = self._records.gates.get(cluster)
        return gate is not None and {each.gvk for each in gate.value.held}.issuperset(kinds)

    def _is_asked_for(self, watch: Watch) -> bool:
        """Say whether another profile has had the cluster asked for the same: one sweep is enough.

        Of many that come at once the first asks; it is the first watch that is read, too.
        """
        others = (each.value for each in self._records.watches.of(watch.cluster))
        wanted = set(watch.kinds)
        return any(each.profile != watch.profile and wanted.issubset(each.kinds) for each in others)

    def kinds(self, cluster: str) -> list[GVK]:
        """Return the kinds that are to ring in a cluster, and forget those that need not."""
        found: set[GVK] = set()
        for kept in list(self._records.watches.of(cluster)):
            if self._counts(kept.value):
                found.update(kept.value.kinds)
            else:
                self._forget(kept)
        return sorted(found)

    def _forget(self, kept: Kept[Watch]) -> None:
        watch = kept.value
        with suppress(StaleError):
            self._records.watches.delete(watch.cluster, watch.profile, expect=kept.token)
        if self._counts(watch):
            # It was meant again before it was forgotten, and who brought it found it there.
            place = watch.trigger, watch.source, watch.profile
            self._publisher.publish([Apply(*place, watch.cluster)])

    def _counts(self, watch: Watch) -> bool:
        head = self._records.profiles.head(watch.trigger, watch.source, watch.profile)
        return head is not None and _is_watched(head.value, watch.cluster)


def _is_watched(profile: Profile, cluster: str) -> bool:
    # Of a vague one nobody knows its clusters: it is watched as long as it is watched anywhere.
    return watches(profile) and (profile.vague or cluster in profile.destinations)
