"""A profile changes so many clusters at a time, by maxUpdate; those that fail keep their place.

    no place:  waiter is stored ─► free places are filled ─► has it one now? ─► no: it waits
    a place:   lease is acquired ─► still a place? the state is written as it is ─► it changes
    deployed, left: status is written ─► place is freed, the next one gets it ─► and is published
    paused:    the same; it waits for another place once it is resumed

One record has the clusters that have a place, and a conditional write changes it: two workers
cannot fill too many places. A worker that fills places reads the waiters again until there is
none, or no place; one that waits looks for a place after its waiter is stored. So one of the two
sees the other. Clusters that got a place are stored as unpublished until their messages are: if a
worker dies in between, its message is delivered again, and publishes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from bellhop.deploy.context import ReconcileContext, is_applied
from bellhop.deploy.gates.gate import Gate
from bellhop.errors import QueuedError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.profiles.records import place
from bellhop.state.concurrency import until_written
from bellhop.state.deployment import DeploymentStatus, RolloutState
from bellhop.state.messages import Apply, Publisher
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored

_RETRIES = 32
_EMPTY = RolloutState()


class RolloutGate(Gate):
    """Has the clusters of a profile change, so many at a time."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def check(self, context: ReconcileContext) -> None:
        """Have a cluster wait until it has a place.

        Raises:
            QueuedError: it has none; its message is published once it has.
            StaleError: other workers keep filling places.
        """
        profile, cluster = context.profile, context.cluster.key
        if (
            context.dry_run
            or context.only_hosts
            or not context.is_destination
            or not profile.rollout.is_gradual
        ):
            return
        if is_applied(context):
            return
        context.progress.placed = True
        kept = self._records.rotas.get(place(profile))
        if kept and cluster in kept.value.at_work:
            return
        self._records.queued.begin(place(profile), [cluster])
        if cluster in self._fill(profile, asking=cluster):
            return
        number, clusters = profile.rollout.places(len(profile.matched)), profile.matched
        raise QueuedError(
            f"cannot deploy '{profile.shown}' to '{cluster}' yet: by maxUpdate {number} of its"
            f" {len(clusters)} clusters change at a time, and those that fail keep their place"
        )

    @until_written("begin the change of '{context.cluster.key}'")
    def confirm(self, context: ReconcileContext) -> None:
        """Check that the cluster still has its place, and write that, so that nobody frees it.

        Raises:
            StaleError: it has none, or other workers keep filling places.
        """
        if not context.progress.placed:
            return
        which = place(context.profile)
        kept = self._records.rotas.get(which)
        if kept is None or context.cluster.key not in kept.value.at_work:
            raise StaleError(f"cannot change '{context.cluster.key}': its turn has ended")
        self._records.rotas.put(which, kept.value, expect=kept.token)

    def step_aside(self, context: ReconcileContext) -> None:
        """Free the place of a cluster that is paused, unless another worker has begun by now.

        Raises:
            StaleError: one has, or other workers keep filling places.
        """
        self._fill(context.profile, done=context.cluster.key, idle=context)

    def release(
        self,
        profile: Profile,
        cluster: str,
        status: Stored[DeploymentStatus] | None,
        *,
        left: bool,
    ) -> None:
        """Free the place of a cluster that is deployed or left, and give it to the next one.

        By its former status there may have been places, of which nothing is to be left.

        Raises:
            StaleError: other workers keep filling places.
        """
        if profile.error and not left:
            return
        if profile.rollout.is_gradual:
            self._fill(profile, done=cluster)
        elif status and status.value.revision not in ("", profile.revision):
            self._forget(profile, cluster)

    def _forget(self, profile: Profile, cluster: str) -> None:
        """Delete the rollout state of a profile that changes all clusters at once by now.

        If it changes so many at a time again, its message comes again, and waits again.
        """
        self._records.queued.end(place(profile), cluster)
        self._fill(profile)

    def _fill(
        self,
        profile: Profile,
        *,
        done: str = "",
        asking: str = "",
        idle: ReconcileContext | None = None,
    ) -> Collection[str]:
        """Fill the free places, publish who got one, and return the clusters that have one.

        It repeats until there is no waiter, or no place. The inventory of an `idle` cluster is read
        after the state: a worker that begins later writes the state again.
        """
        which = place(profile)
        for _ in range(_RETRIES):
            kept = self._records.rotas.get(which)
            old, token = (kept.value, kept.token) if kept else (_EMPTY, ABSENT)
            if idle:
                self._refuse_begun(idle)
            stay, added = self._next(profile, old, done)
            names = [each.value for each in added]
            unpublished = [each for each in old.untold if each in stay]
            new = RolloutState((*stay, *names), (*unpublished, *names))
            with suppress(StaleError):
                if new.at_work == old.at_work:
                    return self._publish(profile, old, token, asking)
                token = self._records.rotas.put(which, new, expect=token)
                self._publish(profile, new, token, asking)
                self._records.queued.take_back(which, {each.value: each.token for each in added})
        raise StaleError(f"cannot let in clusters of '{profile.shown}': other writers keep winning")

    def _refuse_begun(self, context: ReconcileContext) -> None:
        """Refuse a cluster where another worker has begun since its inventory was read."""
        kept = self._records.inventories.get(context.cluster.key, context.profile.name)
        if (kept.token if kept else ABSENT) != context.lease.token:
            raise StaleError(f"cannot step aside: another worker is at '{context.cluster.key}'")

    def _next(
        self, profile: Profile, old: RolloutState, done: str
    ) -> tuple[Sequence[str], Sequence[Stored[str]]]:
        """Return the clusters that keep their places, and those that get the free ones.

        The profile is read after the state: a cluster that has a place by a newer profile is a
        destination then.
        """
        head = self._records.profiles.head(*place(profile))
        if head is None or not head.value.rollout.is_gradual:
            return (), ()
        now = head.value
        if now.revision != profile.revision:
            # It was deployed by a former revision.
            done = ""
        matched_now = set(now.matched)
        stay = [each for each in old.at_work if each in matched_now and each != done]
        free = now.rollout.places(len(matched_now)) - len(stay)
        waiting = self._waiting(profile, {*stay, done}) if free > 0 else iter(())
        return stay, [*islice(waiting, max(free, 0))]

    def _waiting(self, profile: Profile, but: Collection[str]) -> Iterator[Stored[str]]:
        """Yield the clusters that wait; delete those that are not to have the profile any more.

        The profile is read after the waiter: a cluster that has it again is a destination then.
        """
        for kept in self._records.queued.stored(place(profile)):
            if kept.value in but:
                continue
            head = self._records.profiles.head(*place(profile))
            if head and kept.value in head.value.destinations:
                yield kept
            else:
                self._records.queued.take_back(place(profile), {kept.value: kept.token})

    def _publish(
        self, profile: Profile, state: RolloutState, token: str, asking: str
    ) -> Collection[str]:
        """Publish the clusters that got a place, but for the one `asking`; return all with one.

        Raises:
            StaleError: another worker fills places, and publishes them, too.
        """
        which = place(profile)
        if state.untold:
            others = (each for each in state.untold if each != asking)
            self._publisher.publish(Apply(*which, each) for each in others)
            self._records.rotas.mark_published(which, state, expect=token)
        elif token != ABSENT and not state.at_work:
            self._records.rotas.delete(which, expect=token)
        return state.at_work
