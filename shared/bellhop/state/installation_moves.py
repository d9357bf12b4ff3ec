"""That an installation was left for another one, or is being filled: a mark that stops the rest.

backup --leave   mark "left" ─► all that works looks at it within half a minute, and stops
restore          mark "filling" ─► … ─► mark "filled"
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from bellhop.errors import BusyError
from bellhop.ports.store import Store
from bellhop.state.table import Table

LEFT = "left"
FILLING = "filling"
FILLED = "filled"

_PLACE = ("move", "mark")


class Move(Struct, frozen=True):
    """What became of an installation, when, and by which archive."""

    what: str
    archive: str
    at: datetime


class Moves:
    """The one mark of an installation."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Move)

    def get(self) -> Move | None:
        """Read what became of the installation; None where it never moved."""
        kept = self._table.get(*_PLACE)
        return kept.value if kept else None

    def put(self, move: Move) -> None:
        """Note what becomes of the installation."""
        self._table.put(*_PLACE, move)

    def delete(self) -> None:
        """Have the installation go on."""
        self._store.delete(*_PLACE)

    def refuse(self) -> None:
        """See that the installation is one to work with.

        Raises:
            BusyError: it was left, or is being filled.
        """
        move = self.get()
        if move is None or move.what == FILLED:
            return
        if move.what == LEFT:
            raise BusyError(
                "cannot work on this installation: it was left for another one at"
                f" {move.at.isoformat(timespec='seconds')}; use that one, or restore the"
                " archive here to return"
            )
        raise BusyError(
            "cannot work on this installation: an archive is being restored; if that was"
            " interrupted, restore it again"
        )
