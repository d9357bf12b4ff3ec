"""What service accounts may see in clusters, as these said lately."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.core.gvk import GVK
from bellhop.ports.store import ANY, Store
from bellhop.state.record import AccessReview
from bellhop.state.table import Stored, Table


class AccessReviews:
    """Permits by cluster, account, kind and namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, AccessReview, in_key=("cluster",))

    def get(
        self, cluster: str, account: str, gvk: GVK, namespace: str
    ) -> Stored[AccessReview] | None:
        """Read what is known of one kind in one namespace, or by an empty one in all together."""
        sort = _sort(account, gvk, namespace)
        return self._table.get(f"permit/{cluster}", sort, cluster=cluster)

    def of(self, cluster: str, account: str = "") -> Iterator[AccessReview]:
        """Yield all that is known in a cluster, or of one account, by account, kind, namespace."""
        for item in self._table.items(f"permit/{cluster}", f"{account}/" if account else ""):
            yield self._table.read(item.value, cluster=cluster)

    def put(self, permit: AccessReview, *, expect: str | None = ANY) -> str:
        """Write a permit and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        sort = _sort(permit.account, permit.gvk, permit.namespace)
        return self._table.put(f"permit/{permit.cluster}", sort, permit, expect=expect)

    def delete(self, permit: AccessReview) -> None:
        """Forget a permit: nobody asks for it any more."""
        sort = _sort(permit.account, permit.gvk, permit.namespace)
        self._store.delete(f"permit/{permit.cluster}", sort)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"permit/{cluster}"):
            self._store.delete(item.partition, item.sort)


def _sort(account: str, gvk: GVK, namespace: str) -> str:
    return f"{account}/{'/'.join(gvk)}/{namespace}"
