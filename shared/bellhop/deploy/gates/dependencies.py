"""Profiles in order, by dependsOn: each waits in a cluster for those that it depends on.

    to be deployed:  are all before it deployed? ─► no: waiter is stored ─► still not? ─► it waits
    to be withdrawn: are its dependents removed? ─► no: the same
    deployed, left:  status is written ─► its waiters are published ─► and deleted

A profile reads again after its waiter is stored; the other one reads the waiters after its status
is written. So one of the two sees the other. A message whose worker died is delivered again.
A trigger's profile is waited for by the name that its profileNameFormat was rendered to. It
releases that name when its event is over.
Before a profile is deployed it is stored as a dependent of those before it: they find it when they
are withdrawn, and read its own records. Its status keeps the names under which it was stored, so
that these are deleted once it no longer depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellhop.core.identity import profile_kind
from bellhop.deploy.context import (
    PERMISSIONS,
    ReconcileContext,
    dependent,
    is_applied,
    is_deployed,
    permissions_of,
    requirements,
)
from bellhop.deploy.gates.gate import Gate
from bellhop.errors import WaitingError
from bellhop.profiles.records import place
from bellhop.state.deployment import Dependent, DeploymentStatus
from bellhop.state.messages import Apply, Publisher
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored

_NAMED = 3
"""Dependents that an error names; of the others it says the number."""


class DependencyGate(Gate):
    """Keeps profiles in their order, cluster by cluster."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def check(self, context: ReconcileContext) -> None:
        """Have a profile wait to be deployed after others, or withdrawn after its dependents.

        Raises:
            WaitingError: it waits for one that publishes it later.
        """
        if context.dry_run or context.only_hosts:
            return
        if context.is_destination:
            # Before the status names others: a worker that dies here does it again.
            self._forget_former(context.profile, context.cluster.key, context.status)
        if context.is_destination and context.profile.rollout.after and not is_applied(context):
            self._refuse_to_deploy(context)
            context.progress.ordered = True
        elif _is_removed(context) and context.profile.rollout.awaited:
            self._refuse_to_withdraw(context)

    def confirm(self, context: ReconcileContext) -> None:
        """Check again for a profile that is deployed after others."""
        if context.progress.ordered:
            self.check(context)

    def release(
        self,
        profile: Profile,
        cluster: str,
        status: Stored[DeploymentStatus] | None,
        *,
        left: bool,
    ) -> None:
        """Publish the profiles that wait for this one; forget its requirements once it has `left`.

        Before the end is recorded: until then a message whose worker dies is delivered again.
        """
        if left:
            waits = [permissions_of(profile.grants)] if profile.grants else []
            self._forget(profile, cluster, [*requirements(profile), *waits])
        self._forget_former(profile, cluster, status)
        for name in _names(profile, status.value if status else None):
            waiting = list(self._records.waiting.of(cluster, name))
            self._publisher.publish(_application(cluster, each.value) for each in waiting)
            for each in waiting:
                self._records.waiting.delete(cluster, name, each)

    def _forget_former(
        self, profile: Profile, cluster: str, status: Stored[DeploymentStatus] | None
    ) -> None:
        """Delete the requirements that a profile had when its status was written, and has not."""
        former = status.value.needs if status else ()
        self._forget(profile, cluster, set(former).difference(requirements(profile)))

    def _forget(self, profile: Profile, cluster: str, names: Iterable[str]) -> None:
        """Delete requirements of a profile in a cluster, unless it has them again."""
        noted = [
            (sort, first, kept)
            for first in names
            for sort in (self._records.waiting, self._records.needing)
            if (kept := sort.get(cluster, first, profile.name))
        ]
        # Read after the notes: a worker that deploys the profile again from now on adds them again.
        head = self._records.profiles.head(*place(profile)) if noted else None
        still = requirements(head.value) if head and cluster in head.value.destinations else ()
        for sort, first, kept in noted:
            if first not in still:
                sort.delete(cluster, first, kept)

    def _refuse_to_deploy(self, context: ReconcileContext) -> None:
        me, cluster = dependent(context.profile), context.cluster.key
        for first in context.profile.rollout.after:
            self._records.needing.put(cluster, first, me)
        missing = [each for each in context.profile.rollout.after if self._lack(each, cluster)]
        for first in missing:
            self._records.waiting.put(cluster, first, me)
        lacks = [lack for first in missing if (lack := self._lack(first, cluster))]
        if lacks:
            raise WaitingError(
                f"cannot deploy '{context.profile.shown}' to '{cluster}' yet: {'; '.join(lacks)}"
            )

    def _lack(self, first: str, cluster: str) -> str:
        """Say why a profile is not deployed in a cluster as it is now; nothing if it is."""
        kept, head = self._read(first, cluster)
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
        if kept and is_deployed(kept.value, head.value, inventory.value if inventory else None):
            return ""
        return f"waiting for {kind} '{first}' (dependsOn) to finish its current revision"

    def _read(
        self, first: str, cluster: str
    ) -> tuple[Stored[DeploymentStatus] | None, Stored[Profile] | None]:
        """Read a profile's status in a cluster, and then the profile: declared, or rendered."""
        kept = self._records.outcomes.get(cluster, first)
        head = self._records.profiles.head("", "", first)
        reserved = None if head else self._records.titles.get("ClusterProfile", first)
        if reserved is None:
            return kept, head
        made = reserved.value
        kept = self._records.outcomes.get(cluster, made.profile)
        head = self._records.profiles.head(made.trigger, made.cluster, made.profile)
        is_so = head is not None and ("ClusterProfile", first) in head.value.titles
        return (kept, head) if is_so else (None, None)

    def _refuse_to_withdraw(self, context: ReconcileContext) -> None:
        me, cluster = dependent(context.profile), context.cluster.key
        for each in self._dependents(context):
            self._records.waiting.put(cluster, each.profile, me)
        still = sorted(each.profile for each in self._dependents(context))
        if still:
            named = ", ".join(f"'{each}'" for each in still[:_NAMED])
            more = f" and {len(still) - _NAMED} more" if len(still) > _NAMED else ""
            raise WaitingError(
                f"cannot withdraw '{context.profile.shown}' from '{cluster}' yet: by dependsOn"
                f" {named}{more} depend on it there; it is removed once they are removed, or no"
                " longer depend on it"
            )

    def _dependents(self, context: ReconcileContext) -> Iterator[Dependent]:
        """Yield the dependents that a profile has in a cluster; delete those that are none now."""
        cluster, first = context.cluster.key, context.profile.name
        for kept in list(self._records.needing.of(cluster, first)):
            each = kept.value
            head = self._records.profiles.head(each.trigger, each.source, each.profile)
            inventory = self._records.inventories.get(cluster, each.profile)
            if head and first in head.value.rollout.after and inventory and inventory.value.held:
                yield each
            elif head is None or first not in head.value.rollout.after:
                self._records.needing.delete(cluster, first, kept)


def _is_removed(context: ReconcileContext) -> bool:
    """Say whether anything of a profile is to be removed from a cluster."""
    return (
        not context.is_destination
        and bool(context.progress.held)
        and not context.profile.leaves_policies
    )


def _names(profile: Profile, former: DeploymentStatus | None) -> tuple[str, ...]:
    """Return the names by which others wait for a profile: its own, and those of its permissions.

    By its former status it may have been ordered, or have had the permissions of another account.
    """
    ordered = profile.rollout.ordered or (former and former.revision)
    needed = dict.fromkeys((*requirements(profile), *(former.needs if former else ())))
    permissions = (each for each in needed if each.startswith(PERMISSIONS))
    return (*filter(None, (profile.name, profile.title) if ordered else ()), *permissions)


def _application(cluster: str, waiter: Dependent) -> Apply:
    return Apply(waiter.trigger, waiter.source, waiter.profile, cluster)
