"""Profiles in order: which comes when in a cluster, and who is told that its turn has come.

    to be brought:  is all before it done? ─► no: waiting is noted ─► is it still not? ─► it waits
    to be withdrawn: is what needs it gone? ─► no: the same
    done, or gone:  outcome written ─► who waits for it is told ─► no longer noted as waiting

Who waits looks again after that is noted; who is done looks for those who wait after that is
written. So one of the two sees the other. Whoever dies in between comes again by its message.
What a trigger makes is waited for by the name that its profileNameFormat was rendered to. It gives
that up when its event is over, so that nobody keeps it.
Before a profile is brought it is noted as needing those before it: they find it when they are to
go, and ask its own records whether that is still so. Its outcome keeps whom it was noted for: that
is struck out once it depends on them no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellhop.core.generated_names import profile_kind
from bellhop.deploy.context import ReconcileContext
from bellhop.errors import WaitingError
from bellhop.profiles.records.profiles import place
from bellhop.state.messages import Apply, Publisher
from bellhop.state.record import DeploymentStatus, Inventory, Profile
from bellhop.state.records import Records
from bellhop.state.rollout import Dependent
from bellhop.state.table import Stored


class DependencyGate:
    """Keeps profiles in their order, cluster by cluster."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def refuse_early(self, work: ReconcileContext) -> None:
        """Keep a profile from being brought before others, or withdrawn before them.

        Raises:
            WaitingError: it is not its turn; it is told once it is.
        """
        if work.dry:
            return
        if work.wanted:
            # Before its outcome names others: who dies here does it again.
            self._forget_former(work.profile, work.cluster.key, work.outcome)
        if work.wanted and work.profile.rollout.after and not is_done(work):
            self._refuse_to_bring(work)
            work.in_turn = True
        elif self._is_to_go(work) and work.profile.rollout.awaited:
            self._refuse_to_go(work)

    def tell(
        self, profile: Profile, cluster: str, outcome: Stored[DeploymentStatus] | None
    ) -> None:
        """Tell those who wait for a profile that it is done in a cluster, or gone."""
        self._forget_former(profile, cluster, outcome)
        for name in _names(profile, outcome.value if outcome else None):
            waiting = list(self._records.waiting.of(cluster, name))
            self._publisher.publish(_asking(cluster, each.value) for each in waiting)
            for each in waiting:
                self._records.waiting.delete(cluster, name, each)

    def leave(
        self, profile: Profile, cluster: str, outcome: Stored[DeploymentStatus] | None
    ) -> None:
        """Forget what a profile needed in a cluster that it is gone from; tell who waits for that.

        Before its end is noted: who dies comes again as long as that is not.
        """
        waits = [rights_of(profile.grants)] if profile.grants else []
        self._forget(profile, cluster, [*needs(profile), *waits])
        self.tell(profile, cluster, outcome)

    def _forget_former(
        self, profile: Profile, cluster: str, outcome: Stored[DeploymentStatus] | None
    ) -> None:
        """Strike out that a profile needs those which it depended on when its outcome was noted."""
        former = outcome.value.needs if outcome else ()
        self._forget(profile, cluster, set(former).difference(needs(profile)))

    def _forget(self, profile: Profile, cluster: str, names: Iterable[str]) -> None:
        """Strike out that a profile needs others in a cluster, unless it needs them again."""
        noted = [
            (sort, first, kept)
            for first in names
            for sort in (self._records.waiting, self._records.needing)
            if (kept := sort.get(cluster, first, profile.name))
        ]
        # Read after what was noted: who has it brought anew from now on notes it anew.
        head = self._records.profiles.head(*place(profile)) if noted else None
        still = needs(head.value) if head and cluster in head.value.destinations else ()
        for sort, first, kept in noted:
            if first not in still:
                sort.delete(cluster, first, kept)

    def _is_to_go(self, work: ReconcileContext) -> bool:
        """Say whether anything of a profile is to be removed from a cluster."""
        return not work.wanted and bool(work.held) and not work.profile.leaves_policies

    def _refuse_to_bring(self, work: ReconcileContext) -> None:
        """Keep a profile from being brought while one before it is not done.

        Raises:
            WaitingError: one is not.
        """
        me, cluster = follower(work.profile), work.cluster.key
        for first in work.profile.rollout.after:
            self._records.needing.put(cluster, first, me)
        missing = [each for each in work.profile.rollout.after if self._lack(each, cluster)]
        for first in missing:
            self._records.waiting.put(cluster, first, me)
        lacks = [lack for first in missing if (lack := self._lack(first, cluster))]
        if lacks:
            raise WaitingError(
                f"cannot deploy '{work.profile.shown}' to '{cluster}' yet: {'; '.join(lacks)}"
            )

    def _lack(self, first: str, cluster: str) -> str:
        """Say why a profile is not done in a cluster as it is now; nothing if it is."""
        kept, head = self._found(first, cluster)
        kind = profile_kind(first)
        if head is None:
            return (
                f"it comes after {kind} '{first}', which is not there: apply it, or correct the"
                " name"
            )
        if cluster not in head.value.matched:
            return (
                f"it comes after {kind} '{first}', which does not go to this cluster: have it"
                " select the cluster, too"
            )
        inventory = self._records.inventories.get(cluster, head.value.name)
        if kept and stands(kept.value, head.value, inventory.value if inventory else None):
            return ""
        return f"waiting for {kind} '{first}' (dependsOn) to finish its current revision"

    def _found(
        self, first: str, cluster: str
    ) -> tuple[Stored[DeploymentStatus] | None, Stored[Profile] | None]:
        """Read how a profile ended in a cluster, and then the profile: users' own, or one made."""
        kept = self._records.outcomes.get(cluster, first)
        head = self._records.profiles.head("", "", first)
        title = None if head else self._records.titles.get("ClusterProfile", first)
        if title is None:
            return kept, head
        made = title.value
        kept = self._records.outcomes.get(cluster, made.profile)
        head = self._records.profiles.head(made.trigger, made.cluster, made.profile)
        is_so = head is not None and ("ClusterProfile", first) in head.value.titles
        return (kept, head) if is_so else (None, None)

    def _refuse_to_go(self, work: ReconcileContext) -> None:
        """Keep a profile from being withdrawn while one is there that needs it.

        Raises:
            WaitingError: one is.
        """
        me, cluster = follower(work.profile), work.cluster.key
        for needing in self._needing(work):
            self._records.waiting.put(cluster, needing.profile, me)
        still = sorted(each.profile for each in self._needing(work))
        if still:
            named = ", ".join(f"'{each}'" for each in still[:_NAMED])
            more = f" and {len(still) - _NAMED} more" if len(still) > _NAMED else ""
            raise WaitingError(
                f"cannot withdraw '{work.profile.shown}' from '{cluster}' yet: by dependsOn"
                f" {named}{more} depend on it there; it is removed once they are removed, or no"
                " longer depend on it"
            )

    def _needing(self, work: ReconcileContext) -> Iterator[Dependent]:
        """Yield who needs a profile in a cluster and is there; strike out who does not any more."""
        cluster, first = work.cluster.key, work.profile.name
        for kept in list(self._records.needing.of(cluster, first)):
            follower = kept.value
            head = self._records.profiles.head(follower.trigger, follower.source, follower.profile)
            inventory = self._records.inventories.get(cluster, follower.profile)
            if head and first in head.value.rollout.after and inventory and inventory.value.held:
                yield follower
            elif head is None or first not in head.value.rollout.after:
                self._records.needing.delete(cluster, first, kept)


_NAMED = 3
_RIGHTS = "ServiceAccount "


def is_done(work: ReconcileContext) -> bool:
    """Say whether a profile was brought as it is now: putting it back asks for nobody's leave."""
    if work.outcome is None or work.outcome.value.revision != work.profile.revision:
        return False
    held = work.held.values()
    return work.outcome.value.phase == "Provisioned" and all(each.digest for each in held)


def stands(outcome: DeploymentStatus, profile: Profile, inventory: Inventory | None) -> bool:
    """Say whether a profile was brought as it is now, and nothing of that is in doubt.

    What is brought once is done by that, whatever changes later.
    """
    if outcome.phase != "Provisioned":
        return False
    certain = inventory is None or all(each.digest for each in inventory.held.values())
    return certain and (profile.sync == "OneTime" or outcome.revision == profile.revision)


def needs(profile: Profile) -> tuple[str, ...]:
    """Return the names of what is to be in a cluster as long as a profile is: rights, too."""
    after = profile.rollout.after
    return (rights_of(profile.account), *after) if profile.account else after


def rights_of(account: str) -> str:
    """Name the rights of a service account among profiles, of which none is named so."""
    return f"{_RIGHTS}{account}"


def follower(profile: Profile) -> Dependent:
    """Return a profile as others know it that it waits for, or needs."""
    return Dependent(profile.trigger, profile.cluster, profile.name)


def _names(profile: Profile, outcome: DeploymentStatus | None) -> tuple[str, ...]:
    """Return the names by which others wait for a profile: its own, and those of its rights.

    By its former outcome it may have been ordered, or have had the rights of another account.
    """
    ordered = profile.rollout.ordered or (outcome and outcome.revision)
    needed = dict.fromkeys((*needs(profile), *(outcome.needs if outcome else ())))
    rights = (each for each in needed if each.startswith(_RIGHTS))
    return (*filter(None, (profile.name, profile.title) if ordered else ()), *rights)


def _asking(cluster: str, follower: Dependent) -> Apply:
    return Apply(follower.trigger, follower.source, follower.profile, cluster)
