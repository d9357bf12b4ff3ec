"""What applying profiles to clusters would do, where they are tried dry."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.errors import MissingError
from bellhop.ports.store import ANY
from bellhop.state.payloads import Payloads, Sealed
from bellhop.state.record import Preview
from bellhop.state.table import Stored, decode, encode


class Previews:
    """Previews by destination cluster and profile."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, cluster: str, profile: str) -> Stored[Preview] | None:
        """Read what applying a profile to a cluster would do; one that is lost tells nothing."""
        item = self._payloads.store.get(_partition(cluster), profile)
        if item is None:
            return None
        try:
            found = self._payloads.open(item)
        except MissingError:
            head = {**self._payloads.head(item), "changes": []}
            return Stored(decode(Preview, head, cluster=cluster, profile=profile), item.token)
        return Stored(_preview(cluster, found), found.item.token) if found else None

    def of(self, cluster: str) -> Iterator[Preview]:
        """Yield all previews of a cluster, by profile."""
        for item in self._payloads.store.query(_partition(cluster)):
            kept = self.get(cluster, item.sort)
            if kept:
                yield kept.value

    def put(self, preview: Preview, *, expect: str | None = ANY) -> str:
        """Write a preview and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        head = encode(preview, omit=("cluster", "profile", "changes"))
        payload = encode(preview, omit=("cluster", "profile", "at"))["changes"]
        partition = _partition(preview.cluster)
        return self._payloads.put(partition, preview.profile, head, payload, expect=expect)

    def delete(self, cluster: str, profile: str, *, expect: str | None = ANY) -> bool:
        """Forget a preview; say whether there was one.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.delete(_partition(cluster), profile, expect=expect)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        self._payloads.forget(_partition(cluster))


def _partition(cluster: str) -> str:
    return f"preview/{cluster}"


def _preview(cluster: str, found: Sealed) -> Preview:
    value = {**found.head, "changes": found.payload}
    return decode(Preview, value, cluster=cluster, profile=found.item.sort)
