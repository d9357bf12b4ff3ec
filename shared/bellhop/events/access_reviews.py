"""Which objects an EventSource with a service account may match: those that it may get and list.

    evaluate: not known of late ─► ask ─► the cluster answers ─► permit ─► evaluate again
    sweep: every permit is asked for again ─► it changed ─► all that it is about is evaluated
    rights are given by a RoleRequest ─► a sweep, seconds later

Evaluate talks to no cluster: it reads permits, which count for a minute. Until one is there nothing
new matches, and what matched stays. The account itself is asked, by SelfSubjectAccessReviews that
are made as it: whatever authorises in the cluster answers, RBAC or a cloud's own, where the lists
of a SelfSubjectRulesReview may be incomplete. First for all namespaces together: where it may list
these, no more is asked.

A permit says whether those were told whom its change concerns: who comes after a death tells them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice, takewhile

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.errors import BellhopError, StaleError, TemporaryError
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.state.concurrency import until_written
from bellhop.state.messages import Evaluate, Publisher, ReviewAccess
from bellhop.state.record import AccessReview
from bellhop.state.records import Records

FRESH = timedelta(minutes=1)
"""How long a permit counts."""

_LATE = timedelta(minutes=10)
"""How long it counts for who had it asked for, where queues are long: else it would never count."""

_VERBS = ("get", "list")
_PAGE = 500


def may_see(
    records: Records, cluster: str, account: str, key: ObjectKey, *, asked: bool
) -> bool | None:
    """Say whether an account may see an object; None where nobody knows, or knew too long ago.

    Who `asked` for it is content with an answer that is somewhat older.
    """
    now, longest = records.clock.now(), _LATE if asked else FRESH
    known = True
    for namespace in dict.fromkeys(("", key.namespace)):
        kept = records.permits.get(cluster, account, key.gvk, namespace)
        if kept is None or not _counts(kept.value, now, longest):
            known = False
        elif kept.value.allowed:
            return True
    return False if known else None


class AccessReviewer:
    """Asks clusters what service accounts may see, and tells evaluate what changed."""

    def __init__(
        self, records: Records, catalogs: Catalogs, access: Access, publisher: Publisher
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._publisher = publisher

    def ask_again(self, catalog: Catalog, cluster: str) -> None:
        """Have all that is known of a cluster asked for again, and forget what nobody needs.

        What was denied is asked for though it counts: the right may have been given since.
        """
        needed = catalog.accounts_in(cluster)
        asks = [ReviewAccess(cluster, account, str(gvk)) for account, gvk in sorted(needed)]
        for permit in self._records.permits.of(cluster):
            if (permit.account, permit.gvk) not in needed:
                self._records.permits.delete(permit)
                continue
            if not permit.allowed and permit.at:
                self._doubt(permit)
            if permit.namespace:
                asks.append(
                    ReviewAccess(cluster, permit.account, str(permit.gvk), permit.namespace)
                )
        self._publisher.publish(asks)

    def _doubt(self, permit: AccessReview) -> None:
        """Have a denial count no more; who has written anything else meanwhile knows better."""
        kept = self._records.permits.get(
            permit.cluster, permit.account, permit.gvk, permit.namespace
        )
        if kept and kept.value == permit:
            with suppress(StaleError):
                self._records.permits.put(replace(permit, at=None), expect=kept.token)

    def handle(self, message: ReviewAccess) -> None:
        """Ask what an account may see, and have evaluated what waits for it.

        Where the cluster gives no answer, that one is owed is noted: sweeps ask again.

        Raises:
            TemporaryError: it gives none now.
        """
        cluster, gvk = message.cluster, _kind(message.kind)
        record = self._records.clusters.get(cluster)
        needed = self._catalogs.current().accounts_in(cluster)
        if record is None or (message.account, gvk) not in needed:
            return
        try:
            kube = self._access.open(
                cluster, version=record.value.credentials, account=message.account
            )
            resource = kube.resource(gvk)
            if resource is None:
                # What is not served in this version is matched by nobody.
                return
            self._settle(kube, resource, message)
        except TemporaryError:
            self.owe(message)
            raise
        except BellhopError as error:
            self.owe(message, str(error))
            return
        if message.object:
            again = Evaluate(cluster, message.object, message.trace, message.rang, asked=True)
            self._publisher.publish([again])

    @until_written("note what '{message.account}' may see")
    def owe(self, message: ReviewAccess, error: str = "") -> None:
        """Note that who waits for an answer has got none; who gets it tells them.

        Raises:
            StaleError: other writers keep winning.
        """
        gvk, namespace = _kind(message.kind), message.namespace
        kept = self._records.permits.get(message.cluster, message.account, gvk, namespace)
        old = kept.value if kept else AccessReview(message.cluster, message.account, gvk, namespace)
        owed = replace(old, told=False, error=error)
        self._records.permits.put(owed, expect=kept.token if kept else ABSENT)

    def _settle(self, kube: Kube, resource: Resource, message: ReviewAccess) -> None:
        """Know of all namespaces together, and, where that is not allowed, of the one."""
        wide = self._known(kube, resource, message, "")
        if wide.allowed or not message.namespace or not resource.namespaced:
            return
        if message.object or next(self._keys(message, message.namespace), None):
            self._known(kube, resource, message, message.namespace)
            return
        kept = self._records.permits.get(
            message.cluster, message.account, resource.gvk, message.namespace
        )
        if kept:
            self._records.permits.delete(kept.value)

    @until_written("note what '{message.account}' may see")
    def _known(
        self, kube: Kube, resource: Resource, message: ReviewAccess, namespace: str
    ) -> AccessReview:
        """Return a permit that counts, asked for where there is none, and told to whom it concerns.

        Raises:
            StaleError: other writers keep winning.
        """
        permits, gvk = self._records.permits, resource.gvk
        kept = permits.get(message.cluster, message.account, gvk, namespace)
        old, now = kept.value if kept else None, self._records.clock.now()
        fresh = old is not None and _counts(old, now, FRESH) and not old.error
        if old and fresh and old.told:
            return old
        allowed = old.allowed if old and fresh else _allows(kube, resource, namespace)
        told = old is None or (old.told and old.allowed == allowed)
        at = old.at if old and fresh else now
        new = AccessReview(message.cluster, message.account, gvk, namespace, allowed, at, told)
        token = permits.put(new, expect=kept.token if kept else ABSENT)
        if not told:
            self._tell(message, namespace)
            permits.put(replace(new, told=True), expect=token)
        return new

    def _tell(self, message: ReviewAccess, namespace: str) -> None:
        """Have all objects evaluated that a permit is about."""
        keys = self._keys(message, namespace)
        while some := list(islice(keys, _PAGE)):
            self._publisher.publish(Evaluate(message.cluster, str(key), asked=True) for key in some)

    def _keys(self, message: ReviewAccess, namespace: str) -> Iterator[ObjectKey]:
        """Yield the objects of a kind in a namespace, or by an empty one in all."""
        gvk = _kind(message.kind)
        after = "/".join((*gvk, namespace, "")) if namespace else ""
        heads = self._records.observations.heads(message.cluster, gvk, after=after)
        there = takewhile(lambda each: namespace in ("", each.key.namespace), heads)
        return (each.key for each in there if not each.gone)


def _allows(kube: Kube, resource: Resource, namespace: str) -> bool:
    checks = [(verb, resource.gvk.group, resource.plural, "", namespace) for verb in _VERBS]
    return not kube.rights(checks)


def _counts(permit: AccessReview, now: datetime, longest: timedelta) -> bool:
    # The clocks of two processes may differ, either way.
    return permit.at is not None and abs(now - permit.at) <= longest


def _kind(text: str) -> GVK:
    api_version, _, kind = text.rpartition("/")
    return GVK.parse(api_version, kind)
