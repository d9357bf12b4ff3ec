"""Taking a profile back to what it held before, now and wherever it goes, whatever is declared.

    rollback ─► pinned: what is declared and what happens is rendered, and changes nothing
                   └─► undone: rendered anew ─► as declared

The pin is a field of the profile, so that whoever renders it at the same time loses the write, and
finds it. It ends when somebody undoes it, or with the profile; nothing else takes it away. Before
anything is written a timer is set that has the profile rendered: a death is made good by that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.core.generated_names import profile_kind
from bellhop.errors import BusyError, MissingError, StaleError
from bellhop.installation.installation import Installation
from bellhop.profiles.records.pending_removals import Place
from bellhop.profiles.records.profiles import place
from bellhop.profiles.writer import Writer, contents_of
from bellhop.rendering.inputs import differences
from bellhop.state.event_recorder import Nobody, noting
from bellhop.state.messages import Envelope, Instantiate, Resolve
from bellhop.state.record import Profile
from bellhop.state.revision import Rendering
from bellhop.state.table import Stored

_TRIES = 8
_ABANDONED = timedelta(minutes=1)
"""After so long whoever rolls a profile back has done it, or has died."""


class Revision(NamedTuple):
    """One revision of a profile: in force until then, or still; and why it was made, if known."""

    number: int
    made_at: datetime | None
    until: datetime | None
    pinned: bool
    why: str


class Rolled(NamedTuple):
    """A profile as a rollback left it, and whether that changed anything."""

    profile: Profile
    is_new: bool


def history(here: Installation, name: str) -> Iterator[Revision]:
    """Yield the revisions of a profile that can be brought back, and last what it holds.

    They are in the order of the times at which they were replaced: one that is in force again has
    the number that it had before, and comes last all the same.

    Raises:
        MissingError: there is no such profile.
    """
    profile = _found(here, "distinguish the revisions of", name).value
    kept = here.records.renderings.of(place(profile))
    held: list[Profile | Rendering] = [
        each for each in reversed(kept) if each.number != profile.number
    ]
    before: Profile | Rendering | None = None
    for each in [*held, profile]:
        until = each.until if isinstance(each, Rendering) else None
        pinned = isinstance(each, Profile) and each.pinned
        yield Revision(each.number, each.made_at, until, pinned, _why(before, each))
        before = each


def rollback(here: Installation, name: str, number: int = 0) -> Rolled:
    """Have a profile hold a revision from now on, by default what it held last; and keep it there.

    One that was rolled back already stays where it is, unless a number is said.

    Raises:
        MissingError: there is no such profile, or no such revision is kept.
        ConflictError: another profile generates by now what that revision did.
        BusyError: the profile keeps being changed by others.
    """
    for _ in range(_TRIES):
        found = _found(here, "roll back", name)
        old = found.value
        new = _pinned(here, old, number)
        is_new = (new.pinned, new.digest) != (old.pinned, old.digest)
        with _made_good(here, old), noting(here.records, Nobody(), old.cluster, old.object) as note:
            note.context = {"profile": old.shown, "trigger": old.trigger}
            if is_new:
                note.what, note.detail = "rolled back", f"to revision {new.number}"
            if _writer(here).follow(found, new, Nobody(), note):
                return Rolled(new, is_new)
            note.what = ""
    raise BusyError(f"cannot roll back '{name}': it keeps being changed by others; try again")


def undo(here: Installation, name: str) -> Rolled:
    """Have a profile that was rolled back hold what is declared again.

    Raises:
        MissingError: there is no such profile.
        BusyError: the profile keeps being changed by others.
    """
    for _ in range(_TRIES):
        found = _found(here, "undo the rollback of", name)
        old = found.value
        if not old.pinned:
            return Rolled(old, is_new=False)
        new = replace(old, pinned=False, made_of="")
        with _made_good(here, old):
            try:
                here.records.profiles.put_head(new, expect=found.token)
            except StaleError:
                continue
            here.publisher.publish([_rendered(old)])
            return Rolled(new, is_new=True)
    raise BusyError(f"cannot undo the rollback of '{name}': others keep changing it; try again")


def _found(here: Installation, verb: str, name: str) -> Stored[Profile]:
    """Read a profile by its name, with its contents.

    Raises:
        MissingError: there is none, or it is on its way out.
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


def _pinned(here: Installation, profile: Profile, number: int) -> Profile:
    """Return a profile as it is to be: what it holds, or held, and there to stay.

    Raises:
        MissingError: what is asked for is not kept.
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
    return replace(profile, pinned=True, made_of="", **contents_of(meant[0]))


@contextmanager
def _made_good(here: Installation, profile: Profile) -> Iterator[None]:
    """Have a profile rendered, and its clusters told, should we die, or fail, meanwhile."""
    name = f"render/{'/'.join(place(profile))}"
    at = here.records.clock.now() + _ABANDONED
    here.records.timers.set(name, at, _rendered(profile).message().body)
    yield
    here.records.timers.cancel(name)


def _rendered(profile: Profile) -> Envelope:
    if profile.trigger:
        return Instantiate(profile.trigger, profile.cluster, profile.object)
    return Resolve(profile.name)


def _why(before: Profile | Rendering | None, revision: Profile | Rendering) -> str:
    """Say what was declared otherwise than for the revision before."""
    if before is None or not before.recipe or not revision.recipe:
        return ""
    return ", ".join(differences(before.recipe, revision.recipe))
