"""Access reviews: the objects that an EventSource with a service account may get and list.

    evaluate: no recent review ─► request one ─► the cluster answers ─► review ─► evaluate again
    resync: every review is requested again ─► it changed ─► its objects are evaluated
    a RoleRequest grants rights ─► a resync, seconds later

Evaluate calls no cluster: it reads reviews, which are valid for a minute. Without one, nothing new
matches, and existing matches stay. The review is a SelfSubjectAccessReview as the account, so that
any authorizer of the cluster answers; the lists of a SelfSubjectRulesReview may be incomplete. All
namespaces are reviewed first, and single ones only if that is denied.

A review says whether its change was published; after a death the next worker publishes it.
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
from bellhop.ports.kube import Access, Kube
from bellhop.ports.store import ABSENT
from bellhop.state.concurrency import until_written
from bellhop.state.match import AccessReview
from bellhop.state.messages import Evaluate, Publisher, ReviewAccess
from bellhop.state.records import Records

FRESH = timedelta(minutes=1)
"""Time for which a review is valid."""

_LATE = timedelta(minutes=10)
"""Time for which a review is valid for the message that requested it, if queues are long."""

_VERBS = ("get", "list")
_PAGE = 500


def may_see(
    records: Records, cluster: str, account: str, key: ObjectKey, *, asked: bool
) -> bool | None:
    """Return whether an account may see an object; None if there is no valid review.

    A message that was `asked` for after a review accepts an older one.
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
    """Reviews the access of service accounts, and publishes the objects that a change concerns."""

    def __init__(
        self, records: Records, catalogs: Catalogs, access: Access, publisher: Publisher
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._publisher = publisher

    def ask_again(self, catalog: Catalog, cluster: str) -> None:
        """Request all reviews of a cluster again, and delete those that no source needs.

        A valid denial is requested again, too: the right may have been granted since.
        """
        needed = catalog.accounts_in(cluster)
        asks = [ReviewAccess(cluster, account, str(gvk)) for account, gvk in sorted(needed)]
        for review in self._records.permits.of(cluster):
            if (review.account, review.gvk) not in needed:
                self._records.permits.delete(review)
                continue
            if not review.allowed and review.at:
                self._doubt(review)
            if review.namespace:
                asks.append(
                    ReviewAccess(cluster, review.account, str(review.gvk), review.namespace)
                )
        self._publisher.publish(asks)

    def _doubt(self, review: AccessReview) -> None:
        """Make a denial invalid, unless another worker has written the review meanwhile."""
        kept = self._records.permits.get(
            review.cluster, review.account, review.gvk, review.namespace
        )
        if kept and kept.value == review:
            with suppress(StaleError):
                self._records.permits.put(replace(review, at=None), expect=kept.token)

    def handle(self, message: ReviewAccess) -> None:
        """Review an account's access, and publish the evaluations that wait for it.

        If the cluster gives no answer, the review stays pending, and resyncs request it again.

        Raises:
            TemporaryError: the cluster gives no answer now.
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
                # A kind that is not served in this version is matched by no source.
                return
            self._settle(kube, resource, message)
        except TemporaryError:
            self.owe(message)
            raise
        except BellhopError as error:
            self.owe(message, str(error))
            return
        if message.object:
            again = Evaluate(cluster, message.object, message.trace, message.event_at, asked=True)
            self._publisher.publish([again])

    @until_written("note what '{message.account}' may see")
    def owe(self, message: ReviewAccess, error: str = "") -> None:
        """Record that a requested review has no answer yet; the worker that gets it publishes.

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
        """Return a valid review, made now if there is none, after its change was published."""
        reviews, gvk = self._records.permits, resource.gvk
        kept = reviews.get(message.cluster, message.account, gvk, namespace)
        old, now = kept.value if kept else None, self._records.clock.now()
        fresh = old is not None and _counts(old, now, FRESH) and not old.error
        if old and fresh and old.told:
            return old
        allowed = old.allowed if old and fresh else _allows(kube, resource, namespace)
        published = old is None or (old.told and old.allowed == allowed)
        at = old.at if old and fresh else now
        new = AccessReview(message.cluster, message.account, gvk, namespace, allowed, at, published)
        token = reviews.put(new, expect=kept.token if kept else ABSENT)
        if not published:
            self._publish_evaluations(message, namespace)
            reviews.mark_published(new, expect=token)
        return new

    def _publish_evaluations(self, message: ReviewAccess, namespace: str) -> None:
        """Publish the evaluation of all objects that a review concerns."""
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


def _counts(review: AccessReview, now: datetime, longest: timedelta) -> bool:
    # The clocks of two processes may differ, either way.
    return review.at is not None and abs(now - review.at) <= longest


def _kind(text: str) -> GVK:
    api_version, _, kind = text.rpartition("/")
    return GVK.parse(api_version, kind)
