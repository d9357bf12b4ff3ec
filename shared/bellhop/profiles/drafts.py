"""Drafts of profiles: completed, merged with the stored profile, and numbered as revisions.

    declared again ► rendered otherwise ─► what was held is kept ─► written, with the next number
    an event      ─► rendered otherwise ──────────────────────────► written, with the same number

The last few contents under earlier declarations are kept. Changes by events are not: within minutes
they would displace the revisions that people need. A revision is stored before the profile is
written, so that a death in between loses nothing, and the message is delivered again.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from bellhop.core.digest import digest
from bellhop.errors import MissingError, PermanentError
from bellhop.profiles.records import place
from bellhop.state.content import Content, Reading
from bellhop.state.profile import Profile, Rendering
from bellhop.state.records import Records

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


_HELD = ("contents", "digest", "generated", "reads", "number", "made_at", "recipe")
"""The fields that are what a profile deploys."""

_BESIDE = (
    *("revision", "revised_at", "told", "made_of", "turns", "turning", "turned_by"),
    *("number", "latest", "made_at", "recipe", "failed_at"),
)
"""The fields in which two profiles that deploy the same may differ."""

_OF_FILES = frozenset({"field", "address", "plain"})


def fail_draft(draft: Profile, error: PermanentError) -> Profile:
    """Return a draft that has only its error, beside which the last good contents stay in place."""
    bare = replace(draft, contents=(), digest="", generated=(), reads=(), title="")
    return replace(bare, error=str(error), error_code=error.code)


def complete_draft(draft: Profile, contents: tuple[Content, ...]) -> Profile:
    """Return a draft with its contents, and the digest of all that it deploys."""
    described = [
        [
            content.ref,
            content.entry,
            list(content.manifests),
            content.template,
            content.dialect,
            content.namespace,
            content.missing,
            to_builtins(content.how),
            list(content.clusters),
            *(to_builtins(each) for each in _special(content) if each),
        ]
        for content in contents
    ]
    beside = [list(map(dict, draft.generated)), list(map(_described, draft.reads))]
    return replace(draft, contents=contents, digest=digest([described, *beside]))


def _described(reading: Reading) -> dict[str, Any]:
    """Return a reading as the digest has it: without files, with the fields of former versions."""
    fields: dict[str, Any] = to_builtins(reading)
    return {name: each for name, each in fields.items() if each or name not in _OF_FILES}


def _special(content: Content) -> tuple[Any, ...]:
    return content.chart, content.kustomization, content.files


def merge_draft(old: Profile | None, draft: Profile) -> Profile:
    """Return a draft that keeps the stored contents if it failed, or if the profile is pinned.

    Raises:
        MissingError: they are to be kept, and are lost.
    """
    if old is None:
        return draft
    stays = bool(draft.error) or old.pinned
    if stays and old.digest == LOST:
        raise MissingError(f"cannot keep what '{old.name}' holds: its contents are lost")
    if not stays:
        return draft
    title = old.title if draft.error else draft.title
    held = held_fields(old)
    if not old.digest:
        del held["generated"]
    return replace(draft, pinned=old.pinned, title=title, **held)


def name_leaving(old: Profile | None, new: Profile) -> Profile:
    """Return a profile with the clusters that are no longer its destinations as `leaving`."""
    if old is None:
        return new
    leaving = {*old.destinations, *old.leaving} - {*new.destinations}
    return replace(new, leaves=bool(leaving), leaving=tuple(sorted(leaving)))


def is_same(old: Profile, new: Profile) -> bool:
    """Return whether two profiles deploy the same to the same clusters."""
    kept = {name: getattr(old, name) for name in _BESIDE}
    return replace(new, **kept) == old


def held_fields(held: Profile | Rendering) -> dict[str, Any]:
    """Return the contents of a profile or revision, for a profile that is to have the same."""
    return {name: getattr(held, name) for name in _HELD}
