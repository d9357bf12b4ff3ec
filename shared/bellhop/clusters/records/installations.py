"""Which installation this is: an id that is drawn once, and moves with the records.

A copy of the records, as a restored backup or an archive is, is the same installation.
"""

from __future__ import annotations

import os

from msgspec import Struct

from bellhop.ports.store import ABSENT, Store
from bellhop.state.concurrency import until_written
from bellhop.state.table import Table

_PLACE = ("installation", "id")


class InstallationId(Struct, frozen=True):
    """The id, and the address to which clusters send events, for people to tell it by."""

    id: str
    address: str = ""


class Installations:
    """The one id of an installation."""

    def __init__(self, store: Store) -> None:
        self._table = Table(store, InstallationId)

    @until_written("write the installation's id")
    def get(self, address: str = "") -> InstallationId:
        """Return the id, drawn where there is none; an `address` is stored with it from then on.

        Raises:
            StaleError: other writers keep winning.
        """
        kept = self._table.get(*_PLACE)
        if kept and address in ("", kept.value.address):
            return kept.value
        drawn = kept.value.id if kept else os.urandom(16).hex()
        found = InstallationId(drawn, address)
        self._table.put(*_PLACE, found, expect=kept.token if kept else ABSENT)
        return found
