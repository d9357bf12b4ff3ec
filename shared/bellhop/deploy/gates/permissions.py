"""Permissions leave a cluster after the objects that were applied with them are removed.

    tenant's profile:     stored under its account ─► lease ─► does it leave by now? ─► no: deployed
                          left: deleted ─► its waiters are published
    RoleRequest withdrawn: does a profile of its account leave, too? ─► waiter is stored ─► still?
                          ─► it waits

A profile that stays keeps no permissions: the cluster denies its writes from then on. The manifests
say whether a profile leaves, and not only its record: of two that are deleted at once the
RoleRequest may be processed first. A profile that is deployed for the first time is stored before,
and checks again under its lease. So it sees that it leaves, or is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from bellhop.catalog.cache import Catalogs
from bellhop.deploy.context import ReconcileContext, dependent, permissions_of
from bellhop.deploy.gates.gate import Gate
from bellhop.errors import StaleError, WaitingError
from bellhop.profiles.records import place
from bellhop.rendering.leave_policy import is_leaving
from bellhop.state.delays import spread
from bellhop.state.profile import Profile

_NAMED = 3
_LATEST = timedelta(minutes=5)
"""The waiting RoleRequest tries again after so long: a manifest may change without a message."""


class PermissionsGate(Gate):
    """Keeps permissions in a cluster until the profiles that leave with them have left."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._records = catalogs.records
        self._catalogs = catalogs

    def check(self, context: ReconcileContext) -> None:
        """Store whose permissions a profile uses, or keep these while others leave with them.

        Raises:
            WaitingError: others do; the last of them publishes this work again.
        """
        if context.dry_run:
            return
        if context.is_destination and context.profile.account:
            self._require(context)
        elif not context.is_destination and context.profile.grants and context.progress.held:
            self._refuse_to_withdraw(context)

    def confirm(self, context: ReconcileContext) -> None:
        """Check that a profile that the cluster did not have yet is not withdrawn by now."""
        if not (context.is_destination and context.profile.account) or context.lease.before:
            return
        head = self._records.profiles.head(*place(context.profile))
        if head is None or is_leaving(self._catalogs.current(), head.value, context.cluster.key):
            raise StaleError(f"cannot deploy '{context.profile.shown}': it is to leave by now")

    def _require(self, context: ReconcileContext) -> None:
        """Store that a profile requires its account's permissions; again if it holds nothing."""
        first = permissions_of(context.profile.account)
        noted = context.progress.held and context.status and first in context.status.value.needs
        if not noted:
            self._records.needing.put(context.cluster.key, first, dependent(context.profile))

    def _refuse_to_withdraw(self, context: ReconcileContext) -> None:
        profile, cluster = context.profile, context.cluster.key
        if next(self._leaving(profile.grants, cluster), None) is None:
            return
        self._records.waiting.put(cluster, permissions_of(profile.grants), dependent(profile))
        # Of very many no more are read: any of them that leaves publishes this work again.
        still = list(islice(self._leaving(profile.grants, cluster), _NAMED + 1))
        if not still:
            return
        named = ", ".join(f"'{each.shown}'" for each in still[:_NAMED])
        named += " and others" * (len(still) > _NAMED)
        raise WaitingError(
            f"cannot withdraw '{profile.shown}' from '{cluster}' yet: what {named} deployed there"
            f" is removed with the permissions of '{profile.grants}'; it goes once that is done",
            until=self._records.clock.now() + spread(context.message.group, _LATEST),
        )

    def _leaving(self, account: str, cluster: str) -> Iterator[Profile]:
        """Yield the profiles of an account that leave a cluster; delete those that are no more."""
        catalog = self._catalogs.current()
        for kept in list(self._records.needing.of(cluster, permissions_of(account))):
            each = kept.value
            head = self._records.profiles.head(each.trigger, each.source, each.profile)
            if head is None:
                self._records.needing.delete(cluster, permissions_of(account), kept)
            elif head.value.account == account and is_leaving(catalog, head.value, cluster):
                yield head.value
