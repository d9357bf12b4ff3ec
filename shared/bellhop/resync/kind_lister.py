"""Lister of one kind of one cluster: pages in the order of stored keys, restarts, and limits.

Both directions of a resync use it: objects against observations, and objects against inventories.
"""

from __future__ import annotations

from bellhop.core.gvk import GVK, Identity, ObjectKey
from bellhop.errors import StaleError, TooLargeError, UnreachableError
from bellhop.ports.kube import Kube, Manifest, Page, Unread

PAGE = 500
"""Objects of one page; a turn may end between two pages."""

END = "\U0010ffff"
"""A place after all others."""

_MOST_RESTARTS = 3
MOST_OBJECTS = 1_000_000
"""Objects of a list after which it counts as endless."""
_MOST_EMPTY = 1_000
"""Empty pages in a row after which a list counts as endless."""


class KindLister:
    """Lists the objects of a kind, with a label selector if one is given."""

    def __init__(
        self, kube: Kube, cluster: str, gvk: GVK, *, labels: str = "", most_bytes: int = 0
    ) -> None:
        self._kube = kube
        self._cluster = cluster
        self._gvk = gvk
        self._labels = labels
        self._most_bytes = most_bytes

    def read_page(self, after: str, restarts: int) -> Page | None:
        """Read the page after a continue token; None if the list has to begin again.

        Raises:
            StaleError: the list changes faster than it can be read.
        """
        try:
            return self._page(after)
        except StaleError:
            if not after or restarts >= _MOST_RESTARTS:
                raise
            return None

    def read_all(self) -> Page:
        """Read the whole list as one page.

        Raises:
            TooLargeError: the list exceeds its limit.
            UnreachableError: the list has no end.
        """
        items: list[Manifest] = []
        unread: list[Unread] = []
        after, size = "", 0
        for _ in range(MOST_OBJECTS // PAGE):
            page = self._page(after)
            size += page.size
            self.check_size(size)
            items += page.items
            unread += page.unread
            after = page.after
            if not after:
                return Page(items, "", unread)
        raise self._endless()

    def check_end(self, objects: int, empty: int) -> None:
        """Refuse a list of too many objects so far, or too many empty pages in a row.

        Raises:
            UnreachableError: the list has no end.
        """
        if objects > MOST_OBJECTS or empty > _MOST_EMPTY:
            raise self._endless()

    def check_size(self, size: int) -> None:
        """Refuse a list whose bytes so far would fill the disk of the state.

        Raises:
            TooLargeError: the list exceeds its limit.
        """
        if size > self._most_bytes:
            raise TooLargeError(
                f"cannot list {self._gvk.kind} in '{self._cluster}': the list is larger than"
                f" {self._most_bytes / 1024**2:.3g} MiB, and nothing is taken for deleted; raise"
                " the setting BELLHOP_SWEEP_BYTES if the cluster is meant to hold so much"
            )

    def _page(self, after: str) -> Page:
        return self._kube.page(self._gvk, limit=PAGE, after=after, labels=self._labels)

    def _endless(self) -> UnreachableError:
        return UnreachableError(f"cannot list {self._gvk.kind} in '{self._cluster}': it has no end")


def place_of(key: ObjectKey | Identity) -> str:
    """Return an object's place in the order of its kind's stored keys."""
    return f"{key.namespace}/{key.name}"


def is_ordered(page: Page, last: str) -> bool:
    """Return whether a page continues after a place in the order of stored keys.

    Only then a key that is stored and not on the page is missing from the list.
    """
    for manifest in page.items:
        place = place_of(ObjectKey.of(manifest))
        if place <= last:
            return False
        last = place
    return True
