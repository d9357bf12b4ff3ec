"""Profiles in steps: so many clusters change at a time, and those that fail keep their place.

    not its turn: waiting is noted ─► whoever is next is let in ─► is it now? ─► no: it waits
    its turn:      lease taken ─► is it still? the rota is written as it is ─► it changes
    done, or gone: outcome written ─► its turn ends, whoever is next is let in ─► and is told
    paused:        the same; it waits for another turn once it is resumed

Whose turn it is stands in one record, which a conditional write changes: two who let in at once
cannot let in too many. Whoever lets in looks again for those who wait until there is nobody, or
no place; who waits looks for a place after that is noted. So one of the two sees the other. Those
who are let in stand there as untold until they were told: whoever dies in between comes again by
its message, and tells them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from msgspec.structs import replace

from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.gates.dependencies import is_done
from bellhop.errors import QueuedError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.profiles.records.profiles import place
from bellhop.state.concurrency import until_written
from bellhop.state.messages import Apply, Publisher
from bellhop.state.record import DeploymentStatus, Profile
from bellhop.state.records import Records
from bellhop.state.rollout import RolloutState
from bellhop.state.table import Stored

_RETRIES = 32
_NOBODY = RolloutState()


class RolloutGate:
    """Lets the clusters of a profile change, so many at a time."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def refuse_early(self, work: ReconcileContext) -> None:
        """Keep a cluster from being changed before it is its turn.

        Raises:
            QueuedError: it is not; it is told once it is.
            StaleError: others let in all the time.
        """
        profile, cluster = work.profile, work.cluster.key
        if work.dry or not work.wanted or not profile.rollout.paced or is_done(work):
            return
        work.paced = True
        kept = self._records.rotas.get(place(profile))
        if kept and cluster in kept.value.at_work:
            return
        self._records.rotas.wait(place(profile), cluster)
        if cluster in self._let_in(profile, asking=cluster).at_work:
            return
        number, clusters = profile.rollout.places(len(profile.matched)), profile.matched
        raise QueuedError(
            f"cannot deploy '{profile.shown}' to '{cluster}' yet: by maxUpdate {number} of its"
            f" {len(clusters)} clusters change at a time, and those that fail keep their place"
        )

    @until_written("begin the change of '{work.cluster.key}'")
    def begin(self, work: ReconcileContext) -> None:
        """See under the lease that it is its turn still, and that nobody ends that by mistake.

        Raises:
            StaleError: somebody has ended it, or others let in all the time.
        """
        if not work.paced:
            return
        which = place(work.profile)
        kept = self._records.rotas.get(which)
        if kept is None or work.cluster.key not in kept.value.at_work:
            raise StaleError(f"cannot change '{work.cluster.key}': its turn has ended")
        self._records.rotas.put(which, kept.value, expect=kept.token)

    def step_aside(self, work: ReconcileContext) -> None:
        """End the turn of a cluster that is paused, unless another worker is at it by now.

        Raises:
            StaleError: one is, or others let in all the time.
        """
        if work.profile.rollout.paced:
            self._let_in(work.profile, done=work.cluster.key, idle=work)

    def end(self, profile: Profile, cluster: str, outcome: Stored[DeploymentStatus] | None) -> None:
        """End the turn of a cluster that is done or left; let in whoever is next.

        By its former outcome there may have been turns, of which nothing is to be left.

        Raises:
            StaleError: others let in all the time.
        """
        if profile.rollout.paced:
            self._let_in(profile, done=cluster)
        elif outcome and outcome.value.revision not in ("", profile.revision):
            self._forget(profile, cluster)

    def _forget(self, profile: Profile, cluster: str) -> None:
        """Take away what is left of the turns of a profile that changes all clusters at once.

        Where it is to change in steps again by now, the cluster is worked on anew, and waits anew.
        """
        self._records.rotas.forget_wait(place(profile), cluster)
        self._let_in(profile)

    def _let_in(
        self,
        profile: Profile,
        *,
        done: str = "",
        asking: str = "",
        idle: ReconcileContext | None = None,
    ) -> RolloutState:
        """Let in as many as there are places for, and tell them; return whose turn it is.

        Once there is nobody to let in, or no place: who was let in is looked past but once. Who is
        to be `idle` is looked at after the rota: whoever begins later writes that anew.
        """
        which = place(profile)
        for _ in range(_RETRIES):
            kept = self._records.rotas.get(which)
            old, token = (kept.value, kept.token) if kept else (_NOBODY, ABSENT)
            if idle:
                self._refuse_overtaken(idle)
            stay, came = self._next(profile, old, done)
            names = [each.value for each in came]
            untold = [each for each in old.untold if each in stay]
            new = RolloutState((*stay, *names), (*untold, *names))
            with suppress(StaleError):
                if new.at_work == old.at_work:
                    return self._tell(profile, old, token, asking)
                token = self._records.rotas.put(which, new, expect=token)
                self._tell(profile, new, token, asking)
                for each in came:
                    self._records.rotas.end_wait(which, each)
        raise StaleError(f"cannot let in clusters of '{profile.shown}': other writers keep winning")

    def _refuse_overtaken(self, work: ReconcileContext) -> None:
        """Keep off where another worker has begun since the work was read.

        Raises:
            StaleError: one has.
        """
        kept = self._records.inventories.get(work.cluster.key, work.profile.name)
        if (kept.token if kept else ABSENT) != work.token:
            raise StaleError(f"cannot step aside: another worker is at '{work.cluster.key}'")

    def _next(
        self, profile: Profile, old: RolloutState, done: str
    ) -> tuple[Sequence[str], Sequence[Stored[str]]]:
        """Return whose turn it stays once whoever is done, or left, makes room; and who comes.

        The profile is read after the rota: whoever is in it by a newer one is a destination then.
        """
        head = self._records.profiles.head(*place(profile))
        if head is None or not head.value.rollout.paced:
            return (), ()
        now = head.value
        if now.revision != profile.revision:
            # It is done by what counts no more.
            done = ""
        wanted = set(now.matched)
        stay = [each for each in old.at_work if each in wanted and each != done]
        free = now.rollout.places(len(wanted)) - len(stay)
        came = self._waiting(profile, {*stay, done}) if free > 0 else iter(())
        return stay, [*islice(came, max(free, 0))]

    def _waiting(self, profile: Profile, but: Collection[str]) -> Iterator[Stored[str]]:
        """Yield who waits; strike out who is not to have the profile any more.

        Whether it is, is read after that it waits: one that is to have it anew is in a head then.
        """
        for kept in self._records.rotas.waiting(place(profile)):
            if kept.value in but:
                continue
            head = self._records.profiles.head(*place(profile))
            if head and kept.value in head.value.destinations:
                yield kept
            else:
                self._records.rotas.end_wait(place(profile), kept)

    def _tell(self, profile: Profile, rota: RolloutState, token: str, asking: str) -> RolloutState:
        """Tell those who were let in, and note that they were; who asks knows.

        Raises:
            StaleError: another one lets in, who tells them, too.
        """
        which = place(profile)
        if rota.untold:
            others = (each for each in rota.untold if each != asking)
            self._publisher.publish(Apply(*which, each) for each in others)
            rota = replace(rota, untold=())
            self._records.rotas.put(which, rota, expect=token)
        elif token != ABSENT and not rota.at_work:
            self._records.rotas.delete(which, expect=token)
        return rota
