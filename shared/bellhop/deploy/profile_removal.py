"""The end of a withdrawn profile: its head is deleted once it has left all clusters."""

from __future__ import annotations

from msgspec.structs import replace

from bellhop.errors import LostWriteError
from bellhop.profiles.records import Place
from bellhop.state.concurrency import until_written
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored


class ProfileRemoval:
    """Closes profiles that have left their clusters."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def close(self, which: Place, found: Stored[Profile] | None) -> None:
        """Close a profile that has left all clusters; one that stays leaves none any more.

        Of workers that leave at once, the last to delete its pending removal finds no other.
        """
        try:
            self._close_from(which, found)
        except LostWriteError:
            self._close_stored(which)

    @until_written("close profile '{which.name}'")
    def _close_stored(self, which: Place) -> None:
        self._close_from(which, self._records.profiles.head(*which))

    def _close_from(self, which: Place, found: Stored[Profile] | None) -> None:
        # The head was read first: its writer stores the pending removals before it.
        if found is None or not found.value.leaves:
            return
        stays = found.value
        pending = self._records.departures.of(which)
        if any(each not in stays.destinations for each in pending):
            return
        if stays.destinations or stays.digest or stays.error:
            stays = replace(stays, leaves=False)
            self._records.profiles.put_head(stays, expect=found.token)
        else:
            self._records.profiles.delete(*which, expect=found.token)
