"""What classifiers make of each cluster: one record a cluster, for people and for the grace."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.errors import MissingError
from bellhop.ports.store import ABSENT, Item
from bellhop.state.classification import Classified
from bellhop.state.payloads import Payloads
from bellhop.state.table import Kept, decode, encode

_PARTITION = "classified"


class Classifieds:
    """What classifiers make of clusters, by cluster; of a cluster that none was asked of, nothing.

    Of very many classifiers it lies apart.
    """

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, cluster: str) -> Kept[Classified]:
        """Read what classifiers make of a cluster; what is lost is as if it was never made."""
        item = self._payloads.store.get(_PARTITION, cluster)
        return self._read(item) if item else Kept(Classified(), ABSENT)

    def all(self) -> Iterator[tuple[str, Classified]]:
        """Yield clusters, by name, each with what classifiers make of it."""
        for item in self._payloads.store.query(_PARTITION):
            yield item.sort, self._read(item).value

    def put(self, cluster: str, classified: Classified, *, expect: str) -> str:
        """Write what classifiers make of a cluster, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        head = encode(classified)
        return self._payloads.put(_PARTITION, cluster, head, None, expect=expect)

    def delete(self, cluster: str) -> bool:
        """Forget what classifiers make of a cluster; say whether it was known."""
        return self._payloads.delete(_PARTITION, cluster)

    def _read(self, item: Item) -> Kept[Classified]:
        try:
            found = self._payloads.open(item)
        except MissingError:
            found = None
        return Kept(decode(Classified, found.head) if found else Classified(), item.token)
