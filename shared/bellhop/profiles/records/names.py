"""Names that templates wrote, each with the profile that has it."""

from __future__ import annotations

import hashlib

from bellhop.ports.store import ANY, Store
from bellhop.state.record import NameReservation
from bellhop.state.table import Stored, Table


class NameReservationRecords:
    """Which profile has a name, by kind and name; they are spread, for each event may write one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, NameReservation)

    def get(self, kind: str, name: str) -> Stored[NameReservation] | None:
        """Read who has a name."""
        return self._table.get(_partition(name), f"{kind}/{name}")

    def put(self, kind: str, name: str, title: NameReservation, *, expect: str | None = ANY) -> str:
        """Write who has a name, and return the token.

        Raises:
            StaleError: somebody else was quicker.
        """
        return self._table.put(_partition(name), f"{kind}/{name}", title, expect=expect)

    def delete(self, kind: str, name: str, *, expect: str | None = ANY) -> bool:
        """Give a name up; say whether anybody had it.

        Raises:
            StaleError: somebody else was quicker.
        """
        return self._store.delete(_partition(name), f"{kind}/{name}", expect=expect)


def _partition(name: str) -> str:
    return f"title/{hashlib.sha256(name.encode()).hexdigest()[0]}"
