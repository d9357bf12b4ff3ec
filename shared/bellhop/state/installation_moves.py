"""Mark of an installation that was left for another one, or is being filled: it stops all work.

backup --leave   mark "left" ─► every process reads it within half a minute, and stops
restore          mark "filling" ─► … ─► mark "filled"
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from bellhop.errors import BusyError
from bellhop.state.table import Table

LEFT = "left"
FILLING = "filling"
FILLED = "filled"


class Move(Struct, frozen=True):
    """The move of an installation: `what` it is, by which archive, and when."""

    what: str
    archive: str
    at: datetime


class Moves(Table[Move]):
    """The one mark of an installation."""

    kind = Move
    partition, sort = "move", "mark"

    def get(self) -> Move | None:  # type: ignore[override]
        """Read the mark; None where the installation never moved."""
        kept = super().get()
        return kept.value if kept else None

    def refuse(self) -> None:
        """Raise an error if the installation is not to be worked with.

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
