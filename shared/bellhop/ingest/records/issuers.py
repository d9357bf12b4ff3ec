"""By which keys the tokens of each cluster's service accounts are judged."""

from __future__ import annotations

from bellhop.ports.store import ANY, Store
from bellhop.state.record import Issuer
from bellhop.state.table import Stored, Table


class Issuers:
    """Who makes the tokens of each cluster's accounts, as its API server said when it was asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Issuer)

    def get(self, cluster: str) -> Stored[Issuer] | None:
        """Read who makes a cluster's tokens; None where nobody has asked."""
        return self._table.get("issuer", cluster)

    def put(self, cluster: str, issuer: Issuer, *, expect: str | None = ANY) -> str:
        """Write who makes a cluster's tokens, and return the token of the record.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put("issuer", cluster, issuer, expect=expect)

    def delete(self, cluster: str) -> bool:
        """Have no account's token of a cluster count; say whether any did."""
        return self._store.delete("issuer", cluster)
