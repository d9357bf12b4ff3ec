"""What was denied for want of a right is tried again as soon as a RoleRequest has given some.

    tenant's profile: denied ─► noted ─► a pause, twice as long each time, up to minutes
    RoleRequest: brought ─► who was denied as its account in the cluster is asked at once
                    └─► does a source of the account not see all? ─► a sweep, seconds later

Who is denied while the rights are being given may be overlooked: his first pauses are short. An
API server may take a moment to see new rights: whoever is too early has his first pause again, and
who had been given up is tried, too. What a source may see is asked later for that reason: who said
no is not asked again before the next sweep. However many rights come at once, there is one more.
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
    """Tells tenants of rights."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def tell(self, work: ReconcileContext) -> None:
        """Ask for what was denied to the account that a profile has just given rights to, if any.

        Before its outcome is noted: who dies here comes again.
        """
        old = work.outcome.value if work.outcome else None
        # Who died after the last right was given has changed nothing that is left to be changed.
        if not work.changed and old and old.phase == "Provisioned":
            return
        if account := work.profile.grants:
            self._show(work.cluster.key, account)
            self._publisher.publish(self._denied(work.cluster.key, account))

    def _show(self, cluster: str, account: str) -> None:
        """Have a cluster swept soon where the sources of an account do not see all there."""
        permits = self._records.permits.of(cluster, account)
        if not all(each.allowed for each in permits):
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
