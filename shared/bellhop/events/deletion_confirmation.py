"""Agreement: what is held and gone is let go once sweeps in a row have not found it either.

    too much ended ─► sweeps since that looked at all are counted ─► enough: let go what was gone
                                                                     before the first ─► none

What is there still, and matches no more, waits for a person: however often it is looked at, a sweep
judges it by the same source, and that may be what somebody wrote wrong.
"""

from __future__ import annotations

from msgspec.structs import replace

from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import ObjectKey
from bellhop.state.record import HeldDeletion
from bellhop.state.records import Records


class DeletionConfirmation:
    """Knows what sweeps have said since a report was held."""

    def __init__(self, records: Records, sweeps: int) -> None:
        self._records = records
        self._sweeps = sweeps

    @property
    def is_on(self) -> bool:
        """Say whether sweeps may ever let anything go."""
        return self._sweeps > 0

    def counted(self, catalog: Catalog, hold: HeldDeletion) -> HeldDeletion:
        """Return a hold with the last sweep counted, if that is another one and saw all."""
        ended = self._records.health.get(hold.cluster).value.swept_at
        last = hold.last or hold.held_at
        if self.is_reached(hold) or ended is None or last is None or ended <= last:
            return hold
        if not self._saw_all(catalog, hold):
            return hold
        return replace(hold, sweeps=hold.sweeps + 1, first=hold.first or ended, last=ended)

    def is_reached(self, hold: HeldDeletion) -> bool:
        """Say whether so many sweeps agree as are to, beside the first that was counted.

        That one may have looked before something went.
        """
        return hold.sweeps > self._sweeps

    def is_over(self, catalog: Catalog, hold: HeldDeletion, key: ObjectKey) -> bool:
        """Say whether all these sweeps looked for an object, and it was gone by the first."""
        source = catalog.sources.get(hold.source)
        if source is None or key.gvk not in source.kinds:
            return False
        kept = self._records.observations.get(hold.cluster, key)
        # A tombstone goes after a week, and what is there would have been found.
        if kept is None or hold.first is None:
            return kept is None
        return kept.value.gone and kept.value.seen_at <= hold.first

    def _saw_all(self, catalog: Catalog, hold: HeldDeletion) -> bool:
        """Say whether the last sweep looked at each kind of the source, and doubted no list."""
        source = catalog.sources.get(hold.source)
        health = self._records.health.get(hold.cluster).value
        if source is None or health.state != "Healthy" or source.kinds & {*health.unseen}:
            return False
        strikes = self._records.strikes
        return not any(strikes.get(hold.cluster, gvk).value for gvk in source.kinds)
