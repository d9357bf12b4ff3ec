"""What classifiers make of each cluster: one record a cluster, for people and for the grace."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.errors import MissingError
from bellhop.ports.store import ABSENT, Item
from bellhop.state.classification import Classification
from bellhop.state.payloads import Payloads
from bellhop.state.table import Stored, decode, encode

_PARTITION = "classified"


class Classifications:
    """What classifiers make of clusters, by cluster; of a cluster that none was asked of, nothing.

    Of very many classifiers it lies apart.
    """

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, cluster: str) -> Stored[Classification]:
        """Read what classifiers make of a cluster; what is lost is as if it was never made."""
        item = self._payloads.store.get(_PARTITION, cluster)
        return self._read(item) if item else Stored(Classification(), ABSENT)

    def all(self) -> Iterator[tuple[str, Classification]]:
        """Yield clusters, by name, each with what classifiers make of it."""
        for item in self._payloads.store.query(_PARTITION):
            yield item.sort, self._read(item).value

    def put(self, cluster: str, classified: Classification, *, expect: str) -> str:
        """Write what classifiers make of a cluster, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        head = encode(classified)
        return self._payloads.put(_PARTITION, cluster, head, None, expect=expect)

    def delete(self, cluster: str) -> bool:
        """Forget what classifiers make of a cluster; say whether it was known."""
        return self._payloads.delete(_PARTITION, cluster)

    def _read(self, item: Item) -> Stored[Classification]:
        try:
            found = self._payloads.open(item)
        except MissingError:
            found = None
        return Stored(decode(Classification, found.head) if found else Classification(), item.token)
