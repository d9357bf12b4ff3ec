"""Held removals, by the trigger or profile whose add-ons stay.

There are as many as rules that a mistake concerns: mostly none. They are written before the
change, so that no worker sees the change without them.
"""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.model.removal import HeldRemoval
from bellhop.ports.store import ANY, Store
from bellhop.records.table import Kept, Table

_PARTITION = "removal"

Rule = tuple[str, str]
"""A trigger and no profile, or the other way round."""


class HeldRemovals:
    """Held removals by rule."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, HeldRemoval)

    def get(self, rule: Rule) -> Kept[HeldRemoval] | None:
        """Read what is held of a rule."""
        return self._table.get(_PARTITION, _sort(rule))

    def all(self) -> Iterator[Kept[HeldRemoval]]:
        """Yield all that is held, triggers after profiles."""
        for item in self._table.items(_PARTITION):
            yield Kept(self._table.read(item.value), item.token)

    def put(self, held: HeldRemoval, *, expect: str | None = ANY) -> str:
        """Write what is held of a rule and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put(_PARTITION, _sort(held.rule), held, expect=expect)

    def delete(self, rule: Rule, *, expect: str | None = ANY) -> bool:
        """Hold nothing of a rule any more; say whether something was held.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete(_PARTITION, _sort(rule), expect=expect)


def _sort(rule: Rule) -> str:
    trigger, profile = rule
    return f"trigger/{trigger}" if trigger else f"profile/{profile}"
