"""The limit of matches of a report that may end at once."""

from __future__ import annotations

from typing import NamedTuple

_FOURTH = 4


class DeletionLimit(NamedTuple):
    """Reports of at least `least` objects, of which no more than a `share` may end at once."""

    least: int
    share: float

    @property
    def is_on(self) -> bool:
        """Say whether anything is ever too much: no share, or all of it, switches that off."""
        return 0 < self.share < 1

    @property
    def few(self) -> int:
        """Return how many may end at once in any report that counts, however small it is."""
        return int(self.least * self.share)

    def heeds(self, of: int) -> bool:
        """Say whether a report is large enough for anything of it to be held."""
        return self.is_on and of >= self.least

    def is_little(self, ended: int, of: int) -> bool:
        """Say whether so many end all the time somewhere: less than a fourth of too much."""
        return not self.exceeds(_FOURTH * ended, of)

    def needed(self, ended: int) -> int:
        """Return how large a report must be for so many to be little."""
        return int(_FOURTH * ended / self.share) + 1

    def exceeds(self, ended: int, of: int) -> bool:
        """Say whether so many are too much of a report."""
        return self.is_on and ended > self.share * of
