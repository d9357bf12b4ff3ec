"""Held removals, by the trigger or profile whose add-ons stay.

There are as many as rules that a mistake concerns: mostly none. They are written before the
change, so that no worker sees the change without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from bellhop.ports.store import ANY, Item, Store
from bellhop.state.held_removal import HeldRemoval
from bellhop.state.table import Stored, Table

_PARTITION = "removal"

Rule = tuple[str, str]
"""A trigger and no profile, or the other way round."""


class HeldRemovals:
    """Held removals by rule."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, HeldRemoval)

    def get(self, rule: Rule) -> Stored[HeldRemoval] | None:
        """Read what is held of a rule."""
        return self._table.get(_PARTITION, _sort(rule))

    def all(self, *, most: int | None = None) -> Iterator[Stored[HeldRemoval]]:
        """Yield all that is held, triggers after profiles, as far as `most`."""
        for item in self._table.items(_PARTITION, limit=most):
            yield Stored(self._table.read(item.value), item.token)

    def put(self, held: HeldRemoval, *, expect: str | None = ANY) -> str:
        """Write what is held of a rule and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put(_PARTITION, _sort(held.rule), held, expect=expect)

    # What left a moment ago ---------------------------------------------------------------------

    def leave(self, rule: Rule, cluster: str, addons: int, until: datetime) -> None:
        """Note until when add-ons that a change of one cluster removes count as removed at once."""
        item = Item(f"removed/{_sort(rule)}", cluster, {"addons": addons}, expires_at=until)
        self._store.put(item)

    def left(self, rule: Rule) -> Iterator[int]:
        """Yield how many add-ons of a rule changes of single clusters removed a moment ago."""
        return (item.value["addons"] for item in self._store.query(f"removed/{_sort(rule)}"))

    # What is held -------------------------------------------------------------------------------

    def delete(self, rule: Rule, *, expect: str | None = ANY) -> bool:
        """Hold nothing of a rule any more; say whether something was held.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete(_PARTITION, _sort(rule), expect=expect)


def _sort(rule: Rule) -> str:
    trigger, profile = rule
    return f"trigger/{trigger}" if trigger else f"profile/{profile}"
