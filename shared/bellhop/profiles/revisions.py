"""Revisions of profiles: what each held under an earlier declaration, numbered, the last few kept.

    declared anew ─► rendered otherwise ─► what was held is kept ─► written, with the next number
    an event      ─► rendered otherwise ──────────────────────────► written, with the same number

What events change is not kept: they would drive out within minutes what people want back. It is
kept before the profile is written, so that a death in between loses nothing, and comes again.
"""

from __future__ import annotations

from msgspec.structs import replace

from bellhop.profiles.records.profiles import place
from bellhop.state.record import Profile
from bellhop.state.records import Records
from bellhop.state.revision import Rendering

LOST = "lost"
"""The digest of a profile whose contents are lost."""

_FIRST = 1


class Revisions:
    """Numbers what profiles hold, and keeps the `most` last of what they held before."""

    def __init__(self, records: Records, most: int) -> None:
        self._records = records
        self._most = most

    def follow(self, old: Profile | None, new: Profile) -> Profile:
        """Return a profile with its number, after keeping what it replaces."""
        now = self._records.clock.now()
        if old is None or not old.number:
            return replace(new, number=_FIRST, latest=_FIRST, made_at=now)
        new = replace(new, latest=old.latest)
        if new.digest == old.digest:
            return replace(new, number=old.number, made_at=old.made_at, recipe=old.recipe)
        lost = old.digest in ("", LOST)
        if not lost and (new.pinned or new.recipe != old.recipe):
            self._keep(old)
        if new.pinned:
            return new
        if lost or new.recipe == old.recipe:
            return replace(new, number=old.number, made_at=now)
        known = self._records.renderings.numbers(place(old)).get(new.digest)
        number = known or old.latest + 1
        return replace(new, number=number, latest=max(number, old.latest), made_at=now)

    def _keep(self, old: Profile) -> None:
        """Keep what a profile holds, as it is about to hold something else."""
        if not self._most:
            return
        held = Rendering(
            number=old.number,
            digest=old.digest,
            until=self._records.clock.now(),
            made_at=old.made_at,
            recipe=old.recipe,
            contents=old.contents,
            generated=old.generated,
            reads=old.reads,
        )
        self._records.renderings.keep(place(old), held, self._most)
