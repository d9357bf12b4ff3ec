"""When the process that does all the work wrote last: who cannot write has no pulse."""

from __future__ import annotations

from bellhop.model.record import Pulse
from bellhop.ports.store import Store
from bellhop.records.table import Table


class Pulses:
    """The pulse of an installation of one process; where functions do the work there is none."""

    def __init__(self, store: Store) -> None:
        self._table = Table(store, Pulse)

    def get(self) -> Pulse | None:
        """Read the pulse; None if there never was one."""
        kept = self._table.get("pulse", "serve")
        return kept.value if kept else None

    def put(self, pulse: Pulse) -> None:
        """Write the pulse."""
        self._table.put("pulse", "serve", pulse)
