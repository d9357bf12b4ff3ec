"""What aggregatedSelections made of the matches of their sources: heads, and what is selected.

One record holds the whole of a source's report in a cluster, so that two who make it at once
overwrite nothing: the one write that is on condition of what was read says all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator

from msgspec import Struct

from bellhop.ports.store import ANY, Item
from bellhop.state.payloads import Payloads, Sealed
from bellhop.state.record import Selected, Selection
from bellhop.state.table import Stored, decode, encode

_KEPT = 8
"""Selections that are kept as they were read: each of what they select asks for all of it."""

_IN_KEY = ("cluster", "source")


class _Contents(Struct, frozen=True):
    selected: tuple[Selected, ...] = ()


class Selections:
    """Selections by cluster and source."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Selection] = OrderedDict()

    def get(self, cluster: str, source: str) -> Stored[Selection] | None:
        """Read what a source selects in a cluster.

        Raises:
            MissingError: what is selected is lost; `head` reads the rest.
        """
        item = self._payloads.store.get(f"selection/{cluster}", source)
        if item is None:
            return None
        with self._lock:
            known = self._known.get(item.token)
        if known:
            return Stored(known, item.token)
        found = self._payloads.open(item)
        return self._keep(cluster, found) if found else None

    def head(self, cluster: str, source: str) -> Stored[Selection] | None:
        """Read how a source's selection went, without what is selected."""
        item = self._payloads.store.get(f"selection/{cluster}", source)
        return Stored(self._glance(cluster, item), item.token) if item else None

    def heads(self, cluster: str) -> Iterator[Selection]:
        """Yield how the selections of a cluster went, by source, without what is selected."""
        for item in self._payloads.store.query(f"selection/{cluster}"):
            yield self._glance(cluster, item)

    def put(self, selection: Selection, *, expect: str | None = ANY) -> str:
        """Write a selection and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        held = encode(_Contents(selection.selected)) if selection.selected else None
        return self._payloads.put(*_key(selection), _clear(selection), held, expect=expect)

    def put_head(self, selection: Selection, *, expect: str | None = ANY) -> str:
        """Write all of a selection but what is selected, which stays what it is.

        Raises:
            StaleError: something else than `expect` is there, or nothing.
        """
        return self._payloads.put_head(*_key(selection), _clear(selection), expect=expect)

    def delete(self, cluster: str, source: str) -> bool:
        """Delete a selection; say whether it was there."""
        return self._payloads.delete(f"selection/{cluster}", source)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        self._payloads.forget(f"selection/{cluster}")

    def _keep(self, cluster: str, found: Sealed) -> Stored[Selection]:
        held = decode(_Contents, found.payload or {})
        known = dict(zip(_IN_KEY, (cluster, found.item.sort), strict=True))
        read = decode(Selection, found.head, selected=held.selected, **known)
        with self._lock:
            self._known[found.item.token] = read
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return Stored(read, found.item.token)

    def _glance(self, cluster: str, item: Item) -> Selection:
        head = self._payloads.head(item)
        return decode(Selection, head, cluster=cluster, source=item.sort, selected=())


def _key(selection: Selection) -> tuple[str, str]:
    return f"selection/{selection.cluster}", selection.source


def _clear(selection: Selection) -> dict[str, object]:
    return encode(selection, omit=(*_IN_KEY, "selected"))
