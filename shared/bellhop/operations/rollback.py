"""Rollback of a profile to a former revision, in all its clusters, whatever its manifests say.

    rollback ─► pinned: changed manifests and events are rendered, and change nothing
                   └─► undone: rendered again ─► as applied

The pin is a field of the profile, so that a concurrent render loses its write and finds the pin.
It ends when it is undone, or with the profile. A timer that renders the profile is set before
anything is written, which also covers a killed process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.core.identity import profile_kind
from bellhop.errors import BusyError, MissingError, StaleError
from bellhop.installation import Installation
from bellhop.operations.promotions import refuse_stage_profile
from bellhop.profiles.drafts import held_fields
from bellhop.profiles.records import Place, place
from bellhop.profiles.writer import Writer
from bellhop.rendering.inputs import differences
from bellhop.state.envelope import Envelope
from bellhop.state.event_recorder import Nobody, noting
from bellhop.state.messages import Instantiate, Resolve
from bellhop.state.profile import Profile, Rendering
from bellhop.state.table import Stored

_TRIES = 8
_BY_STAGE = "use `bellhop rollback promotion {promotion} --stage {stage}`"
_ABANDONED = timedelta(minutes=1)
"""A rollback has ended after this time, or its process was killed."""


class Revision(NamedTuple):
    """One revision of a profile: in force until a time, or still; and its reason, if known."""

    number: int
    made_at: datetime | None
    until: datetime | None
    pinned: bool
    why: str


class RollbackResult(NamedTuple):
    """A profile after a rollback, and whether that changed anything."""

    profile: Profile
    is_new: bool


def list_revisions(here: Installation, name: str) -> Iterator[Revision]:
    """Yield the stored revisions of a profile, and last the present one.

    They are in the order in which they were replaced: one that is in force again has its former
    number, and still comes last.

    Raises:
        MissingError: there is no such profile.
    """
    profile = _read_profile(here, "distinguish the revisions of", name).value
    kept = here.records.renderings.of(place(profile))
    held: list[Profile | Rendering] = [
        each for each in reversed(kept) if each.number != profile.number
    ]
    before: Profile | Rendering | None = None
    for each in [*held, profile]:
        until = each.until if isinstance(each, Rendering) else None
        pinned = isinstance(each, Profile) and each.pinned
        yield Revision(each.number, each.made_at, until, pinned, _explain_change(before, each))
        before = each


def rollback(here: Installation, name: str, number: int = 0) -> RollbackResult:
    """Make a profile have a revision from now on, by default the last one, and pin it.

    A profile that was rolled back already stays, unless a number is given.

    Raises:
        InvalidError: it is the profile of a promotion's stage.
        MissingError: there is no such profile or revision.
        ConflictError: another profile generates by now what that revision did.
        BusyError: other writers keep winning.
    """
    refuse_stage_profile(here, name, "roll back", _BY_STAGE)
    for _ in range(_TRIES):
        found = _read_profile(here, "roll back", name)
        old = found.value
        new = _pin(here, old, number)
        is_new = (new.pinned, new.digest) != (old.pinned, old.digest)
        with _set_timer(here, old), noting(here.records, Nobody(), old.cluster, old.object) as note:
            note.context = {"profile": old.shown, "trigger": old.trigger}
            if is_new:
                note.what, note.detail = "rolled back", f"to revision {new.number}"
            if _writer(here).follow(found, new, Nobody(), note):
                return RollbackResult(new, is_new)
            note.what = ""
    raise BusyError(f"cannot roll back '{name}': it keeps being changed by others; try again")


def undo(here: Installation, name: str) -> RollbackResult:
    """Render a profile that was rolled back from its manifests again.

    Raises:
        MissingError: there is no such profile.
        BusyError: other writers keep winning.
    """
    refuse_stage_profile(here, name, "undo the rollback of", _BY_STAGE[:-1] + " --end`")
    for _ in range(_TRIES):
        found = _read_profile(here, "undo the rollback of", name)
        old = found.value
        if not old.pinned:
            return RollbackResult(old, is_new=False)
        new = replace(old, pinned=False, made_of="")
        with _set_timer(here, old):
            try:
                here.records.profiles.put_head(new, expect=found.token)
            except StaleError:
                continue
            here.publisher.publish([_rendered(old)])
            return RollbackResult(new, is_new=True)
    raise BusyError(f"cannot undo the rollback of '{name}': others keep changing it; try again")


def _read_profile(here: Installation, verb: str, name: str) -> Stored[Profile]:
    """Read a profile by its name, with its contents.

    Raises:
        MissingError: there is none, or it is withdrawn.
    """
    which = _place(here, name)
    found = _writer(here).found(*which) if which else None
    if found is None or not found.value.number:
        raise MissingError(
            f"cannot {verb} profile '{name}': there is none of that name that holds anything;"
            f" `bellhop get {profile_kind(name).lower()}s` lists those that are"
        )
    return found


def _place(here: Installation, name: str) -> Place | None:
    if here.records.profiles.head("", "", name):
        return Place("", "", name)
    for trigger in here.catalogs.known().triggers:
        for each in here.records.profiles.heads(trigger):
            if each.name == name:
                return place(each)
    return None


def _writer(here: Installation) -> Writer:
    return Writer(here.records, here.catalogs, here.publisher, here.settings)


def _pin(here: Installation, profile: Profile, number: int) -> Profile:
    """Return a profile with a revision, pinned.

    Raises:
        MissingError: the revision is not stored.
    """
    if number == profile.number or (profile.pinned and not number):
        return replace(profile, pinned=True)
    kept = here.records.renderings.of(place(profile))
    others = [each for each in kept if each.digest != profile.digest]
    meant = [each for each in others if number in (0, each.number)]
    if not meant:
        numbers = sorted(str(each.number) for each in others)
        there = f"kept are {', '.join(numbers)}" if numbers else "there is no earlier revision"
        which = f"revision {number}" if number else "what it held before"
        raise MissingError(
            f"cannot roll back '{profile.name}' to {which}: {there};"
            f" `bellhop history {profile.name}` lists them"
        )
    return replace(profile, pinned=True, made_of="", **held_fields(meant[0]))


@contextmanager
def _set_timer(here: Installation, profile: Profile) -> Iterator[None]:
    """Set a timer that renders a profile and notifies its clusters if this process dies."""
    name = f"render/{'/'.join(place(profile))}"
    at = here.records.clock.now() + _ABANDONED
    here.records.timers.set(name, at, _rendered(profile).message().body)
    yield
    here.records.timers.cancel(name)


def _rendered(profile: Profile) -> Envelope:
    if profile.trigger:
        return Instantiate(profile.trigger, profile.cluster, profile.object)
    return Resolve(profile.name)


def _explain_change(before: Profile | Rendering | None, revision: Profile | Rendering) -> str:
    """Return the manifests that differ from those of the revision before."""
    if before is None or not before.recipe or not revision.recipe:
        return ""
    return ", ".join(differences(before.recipe, revision.recipe))
