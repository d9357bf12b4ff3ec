"""The clusters that sets with maxReplicas have chosen."""

from __future__ import annotations

from bellhop.errors import MissingError
from bellhop.ports.store import Item
from bellhop.state.payloads import Payloads
from bellhop.state.record import SetSelection
from bellhop.state.table import Stored, decode, encode


class SetSelections:
    """Choices by set; the clusters of a very long one lie apart."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def all(self) -> dict[str, Stored[SetSelection]]:
        """Read all choices by the places of their sets; one that is lost is chosen anew."""
        items = self._payloads.store.query("choice")
        return {item.sort: Stored(self._read(item), item.token) for item in items}

    def _read(self, item: Item) -> SetSelection:
        try:
            found = self._payloads.open(item)
        except MissingError:
            found = None
        return decode(SetSelection, found.head) if found else SetSelection()

    def put(self, place: str, choice: SetSelection, *, expect: str) -> str:
        """Write what a set has chosen, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.put("choice", place, encode(choice), None, expect=expect)

    def delete(self, place: str, *, expect: str) -> bool:
        """Forget what a set had chosen; say whether it had.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.delete("choice", place, expect=expect)
