"""What profiles held before: the few last revisions of each, sealed, and gone with their profile.

Each lies under the digest of its contents: one that comes and goes is written once, and the profile
itself has what is in force. So a profile that never changes has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter

from bellhop.errors import MissingError, StaleError
from bellhop.ports.store import ABSENT, Item
from bellhop.profiles.records.pending_removals import Place
from bellhop.state.payloads import Payloads, Sealed
from bellhop.state.revision import Rendering
from bellhop.state.table import decode, encode

_APART = ("recipe", "contents", "generated", "reads")


class RevisionRecords:
    """Renderings by profile and digest; each profile has a partition."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def of(self, place: Place) -> list[Rendering]:
        """Return what a profile held, as far as it is kept, what was in force last first."""
        found = map(self._opened, list(self._payloads.store.query(_partition(place))))
        kept = [_rendering(each) for each in found if each]
        return sorted(kept, key=attrgetter("until", "number"), reverse=True)

    def numbers(self, place: Place) -> dict[str, int]:
        """Return the number of each rendering by its digest."""
        return {each.digest: each.number for each in self._heads(place)}

    def keep(self, place: Place, rendering: Rendering, most: int) -> None:
        """Keep what a profile held until now, and of all that it held so many."""
        partition, head = _partition(place), encode(rendering, omit=_APART)
        apart = encode(rendering, omit=tuple(head))
        with suppress(StaleError):
            # Whoever keeps the same at once writes the same.
            if self._payloads.store.get(partition, rendering.digest):
                self._payloads.put_head(partition, rendering.digest, head)
            else:
                self._payloads.put(partition, rendering.digest, head, apart, expect=ABSENT)
        kept = sorted(self._heads(place), key=attrgetter("until", "number"), reverse=True)
        for each in kept[most:]:
            self._payloads.delete(partition, each.digest)

    def forget(self, place: Place) -> None:
        """Delete all that a profile held."""
        for each in list(self._heads(place)):
            self._payloads.delete(_partition(place), each.digest)

    def _heads(self, place: Place) -> Iterator[Rendering]:
        for item in self._payloads.store.query(_partition(place)):
            yield decode(Rendering, self._payloads.head(item))

    def _opened(self, item: Item) -> Sealed | None:
        """Read one; what is lost can be brought back by nobody."""
        try:
            return self._payloads.open(item)
        except MissingError:
            return None


def _rendering(found: Sealed) -> Rendering:
    return decode(Rendering, {**found.head, **found.payload})


def _partition(place: Place) -> str:
    return f"rendering/{'/'.join(place)}"
