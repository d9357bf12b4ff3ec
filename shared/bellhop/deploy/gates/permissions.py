"""Rights leave a cluster after what was written by them: without them nobody could withdraw it.

    tenant's profile: noted under its account ─► lease ─► is it to leave by now? ─► no: brought
                      gone: struck out ─► who waits for that is told
    RoleRequest to go: does a profile of its account leave, too? ─► waiting is noted ─► still? ─► it
                       waits

What stays holds nothing back: it is denied from then on, as it is to be. Whether a profile leaves
is asked of what is declared, and not of its record alone: of two that are deleted at once the
RoleRequest may be the first to be worked on. Who is about to be brought for the first time is noted
before, and looks again under its lease: so it sees that it is to leave, or is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from bellhop.catalog.cache import Catalogs
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.gates.dependencies import follower, rights_of
from bellhop.errors import StaleError, WaitingError
from bellhop.profiles.records.profiles import place
from bellhop.rendering.leave_policy import is_leaving
from bellhop.state.delays import spread
from bellhop.state.record import Profile

_NAMED = 3
_LATEST = timedelta(minutes=5)
"""After so long whoever waits looks by himself: what is declared may change its mind untold."""


class PermissionsGate:
    """Keeps rights in a cluster until what leaves it by them has left."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._records = catalogs.records
        self._catalogs = catalogs

    def refuse_early(self, work: ReconcileContext) -> None:
        """Note by whose rights a profile is brought, or keep these while others leave by them.

        Raises:
            WaitingError: others do; it is told once they are gone.
        """
        if work.dry:
            return
        if work.wanted and work.profile.account:
            self._note(work)
        elif not work.wanted and work.profile.grants and work.held:
            self._refuse_to_go(work)

    def look_ahead(self, work: ReconcileContext) -> None:
        """See under the lease that what was not there yet is not to leave by now.

        Raises:
            StaleError: it is; nothing was begun.
        """
        if not (work.wanted and work.profile.account) or work.before:
            return
        head = self._records.profiles.head(*place(work.profile))
        if head is None or is_leaving(self._catalogs.current(), head.value, work.cluster.key):
            raise StaleError(f"cannot deploy '{work.profile.shown}': it is to leave by now")

    def _note(self, work: ReconcileContext) -> None:
        """Note that a profile needs the rights of its account; where it holds nothing, anew."""
        first = rights_of(work.profile.account)
        noted = work.held and work.outcome and first in work.outcome.value.needs
        if not noted:
            self._records.needing.put(work.cluster.key, first, follower(work.profile))

    def _refuse_to_go(self, work: ReconcileContext) -> None:
        """Keep rights where they are while profiles leave by them.

        Raises:
            WaitingError: one does.
        """
        profile, cluster = work.profile, work.cluster.key
        if next(self._leaving(profile.grants, cluster), None) is None:
            return
        self._records.waiting.put(cluster, rights_of(profile.grants), follower(profile))
        # Of very many no more are read: whoever of them has gone has us look again.
        still = list(islice(self._leaving(profile.grants, cluster), _NAMED + 1))
        if not still:
            return
        named = ", ".join(f"'{each.shown}'" for each in still[:_NAMED])
        named += " and others" * (len(still) > _NAMED)
        raise WaitingError(
            f"cannot withdraw '{profile.shown}' from '{cluster}' yet: what {named} deployed there"
            f" is removed with the permissions of '{profile.grants}'; it goes once that is done",
            until=self._records.clock.now() + spread(work.message.group, _LATEST),
        )

    def _leaving(self, account: str, cluster: str) -> Iterator[Profile]:
        """Yield the profiles of an account that leave a cluster; strike out who is no more."""
        catalog = self._catalogs.current()
        for kept in list(self._records.needing.of(cluster, rights_of(account))):
            each = kept.value
            head = self._records.profiles.head(each.trigger, each.source, each.profile)
            if head is None:
                self._records.needing.delete(cluster, rights_of(account), kept)
            elif head.value.account == account and is_leaving(catalog, head.value, cluster):
                yield head.value
