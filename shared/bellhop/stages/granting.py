"""What was denied for want of a right is tried again as soon as a RoleRequest has given some.

    tenant's profile: denied ─► noted ─► a pause, twice as long each time, up to minutes
    RoleRequest: brought ─► who was denied as its account in the cluster is asked at once

Who is denied while the rights are being given may be overlooked: his first pauses are short. An
API server may take a moment to see new rights: whoever is too early has his first pause again, and
who had been given up is tried, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.engine.granting import account_of
from bellhop.errors import DeniedError
from bellhop.messages import Apply, Publisher
from bellhop.records import Records
from bellhop.stages.work import Work


class Granting:
    """Tells tenants of rights."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def tell(self, work: Work) -> None:
        """Ask for what was denied to the account that a profile has just given rights to, if any.

        Before its outcome is noted: who dies here comes again.
        """
        old = work.outcome.value if work.outcome else None
        # Who died after the last right was given has changed nothing that is left to be changed.
        if not work.changed and old and old.phase == "Provisioned":
            return
        account = account_of(work.profile.contents)
        if account:
            self._publisher.publish(self._denied(work.cluster.key, account))

    def _denied(self, cluster: str, account: str) -> Iterator[Apply]:
        for each in self._records.outcomes.of(cluster):
            if each.reason != DeniedError.code:
                continue
            head = self._records.profiles.head(each.trigger, each.source, each.profile)
            if head and head.value.account == account:
                self._records.outcomes.recount(cluster, each.profile)
                yield Apply(each.trigger, each.source, each.profile, cluster)
