"""A profile that others replace stays in a cluster until they are deployed there.

    cluster gets a label  ─► the former profile waits ─► its successors take its objects over
                                                      ─► all are deployed: it removes the rest

The catalog decides which successors select the cluster: the former profile may be processed before
any of them is written. `transitionFrom` also decides ownership of common objects: see `ownership`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from bellhop.catalog.cache import Catalogs
from bellhop.core.identity import profile_kind
from bellhop.deploy.context import ReconcileContext, dependent, is_deployed
from bellhop.deploy.gates.gate import Gate
from bellhop.errors import ConflictError, WaitingError
from bellhop.state.delays import spread
from bellhop.state.messages import Apply, Publisher

_NAMED = 3
_LATEST = timedelta(minutes=5)
"""The former profile tries again after so long: a successor may drop its transitionFrom unseen."""


class TransitionGate(Gate):
    """Keeps a profile in a cluster until its successors are deployed there."""

    def __init__(self, catalogs: Catalogs, publisher: Publisher) -> None:
        self._records = catalogs.records
        self._catalogs = catalogs
        self._publisher = publisher

    def check(self, context: ReconcileContext) -> None:
        """Keep a profile from being withdrawn while a successor is not deployed.

        Raises:
            WaitingError: one is not; its deployment publishes this work again.
        """
        profile = context.profile
        if (
            context.dry_run
            or context.is_destination
            or not context.progress.held
            or profile.trigger
            or profile.leaves_policies
        ):
            return
        missing = self._missing(context)
        if not missing:
            return
        for each in missing:
            self._records.waiting.put(context.cluster.key, each, dependent(profile))
        # Read again: a successor that was deployed in between has not seen the waiter.
        missing = self._missing(context)
        if not missing:
            return
        self._publish_refused(context, missing)
        named = ", ".join(f"{profile_kind(each)} '{each}'" for each in missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise WaitingError(
            f"cannot withdraw '{profile.shown}' from '{context.cluster.key}' yet: by transitionFrom"
            f" {named}{more} replaces it, and is not deployed there; it is removed once that is",
            until=self._records.clock.now() + spread(context.message.group, _LATEST),
        )

    def _publish_refused(self, context: ReconcileContext, successors: Iterable[str]) -> None:
        """Publish the work of successors that may take objects now that this profile leaves.

        Of two profiles that replace each other one takes nothing until the other one leaves.
        """
        cluster = context.cluster.key
        outcomes = [(each, self._records.outcomes.get(cluster, each)) for each in successors]
        self._publisher.publish(
            Apply("", "", each, cluster)
            for each, kept in outcomes
            if kept and kept.value.reason == ConflictError.code
        )

    def _missing(self, context: ReconcileContext) -> list[str]:
        """Return the successors of a profile in its cluster that are not deployed as they are."""
        found = self._catalogs.current().successors(context.profile.name, context.cluster.key)
        return [each for each in found if not self._is_deployed(each, context.cluster.key)]

    def _is_deployed(self, place: str, cluster: str) -> bool:
        status = self._records.outcomes.get(cluster, place)
        head = self._records.profiles.head("", "", place)
        inventory = self._records.inventories.get(cluster, place)
        if status is None or head is None or cluster not in head.value.matched:
            return False
        return is_deployed(status.value, head.value, inventory.value if inventory else None)
