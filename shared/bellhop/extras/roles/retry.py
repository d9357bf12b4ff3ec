"""Retry of denied profiles as soon as a RoleRequest has given their account rights.

    tenant's profile: denied ─► recorded ─► retries, with twice the pause each, up to minutes
    RoleRequest: deployed ─► profiles denied as its account in the cluster are retried at once
                    └─► a source of the account does not see all? ─► a resync, seconds later

A profile that is denied just then may be missed: its first pauses are short. An API server may take
a moment to apply new rights: such a profile has its first pause again, and one whose retries had
ended is retried, too. Sources are reviewed later for that reason: a denial is not reviewed again
before the next resync. However many rights are given at once, there is one more resync.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from bellhop.deploy.context import ReconcileContext
from bellhop.errors import DeniedError
from bellhop.state.delays import granted_timer
from bellhop.state.messages import Apply, Publisher, Resync
from bellhop.state.records import Records

_SEEN = timedelta(seconds=2)
"""After so long an API server goes by rights that it was given."""


class PermissionRetry:
    """Retries what was denied before rights were given."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def retry_denied(self, context: ReconcileContext) -> None:
        """Publish what was denied to the account that a profile has just given rights to, if any.

        This is done before the status is written: after a death the message does it again.
        """
        old = context.status.value if context.status else None
        # A death after the last right was given leaves nothing to retry.
        if not context.progress.changed and old and old.phase == "Provisioned":
            return
        if account := context.profile.grants:
            self._show(context.cluster.key, account)
            self._publisher.publish(self._denied(context.cluster.key, account))

    def _show(self, cluster: str, account: str) -> None:
        """Have a cluster resynced soon if the sources of an account do not see everything there."""
        reviews = self._records.permits.of(cluster, account)
        if not all(each.allowed for each in reviews):
            at = self._records.clock.now() + _SEEN
            self._records.timers.set(granted_timer(cluster), at, Resync(cluster).message().body)

    def _denied(self, cluster: str, account: str) -> Iterator[Apply]:
        for each in self._records.outcomes.of(cluster):
            if each.reason != DeniedError.code:
                continue
            head = self._records.profiles.head(each.trigger, each.source, each.profile)
            if head and head.value.account == account:
                self._records.outcomes.recount(cluster, each.profile)
                yield Apply(each.trigger, each.source, each.profile, cluster)
