"""Who sends CloudEvents for a cluster from outside, and which of their requests were taken.

What a sender proves itself by is sealed: the key of one that signs has to be kept as it is. It lies
here and not with the secrets, which ingest has no right to read and which cost a call for each
request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.payloads import Payloads
from bellhop.state.record import Sender
from bellhop.state.table import Stored, decode, encode

_IN_KEY = ("cluster", "name")
_SEALED = ("proof", "former")


class Senders:
    """The outside senders, by cluster and name."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, cluster: str, name: str) -> Stored[Sender] | None:
        """Read a sender with what it proves itself by."""
        found = self._payloads.get(f"sender/{cluster}", name)
        if found is None:
            return None
        return Stored(_read(cluster, name, {**found.head, **found.payload}), found.item.token)

    def of(self, cluster: str) -> Iterator[Sender]:
        """Yield a cluster's senders by name, without what they prove themselves by."""
        for item in self._payloads.store.query(f"sender/{cluster}"):
            yield _read(cluster, item.sort, self._payloads.head(item))

    def put(self, sender: Sender, *, expect: str | None = ANY) -> str:
        """Write a sender and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        head = encode(sender, omit=(*_IN_KEY, *_SEALED))
        proofs = {"proof": sender.proof, "former": sender.former}
        place = f"sender/{sender.cluster}", sender.name
        return self._payloads.put(*place, head, proofs, expect=expect)

    def delete(self, cluster: str, name: str) -> bool:
        """Forget a sender; say whether there was one."""
        return self._payloads.delete(f"sender/{cluster}", name)

    def forget(self, cluster: str) -> None:
        """Forget all senders of a cluster."""
        self._payloads.forget(f"sender/{cluster}")


class Receipts:
    """Signed requests that were taken, each until its signature counts no more."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, cluster: str, sender: str, digest: str, until: datetime) -> bool:
        """Note that a request comes; say whether it is the first time.

        Of those who ask at once it is for one.
        """
        note = Item(f"receipt/{cluster}", f"{sender}/{digest}", {}, expires_at=until)
        try:
            self._store.put(note, expect=ABSENT)
        except StaleError:
            return False
        return True

    def release(self, cluster: str, sender: str, digest: str) -> None:
        """Let a request come again, of which nothing was taken."""
        self._store.delete(f"receipt/{cluster}", f"{sender}/{digest}")

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"receipt/{cluster}"):
            self._store.delete(item.partition, item.sort)


def _read(cluster: str, name: str, value: Mapping[str, Any]) -> Sender:
    return decode(Sender, value, cluster=cluster, name=name)
