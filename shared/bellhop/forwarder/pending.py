"""What is owed to ingest about one object, and what a look at the object says about it.

    state before the write    look shows          then
    ──────────────────────    ──────────────────  ──────────────────────────────────
    absent (a create)         absent              not yet
                              the created uid     send it
                              another uid         not yet: that object was there before
    uid and version           the same            not yet
                              absent              gone
                              anything else       send it
    unknown                   anything            send it

"Not yet" may mean "never": a write that was denied, or one that changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import version_of
from bellhop.ingest.admission import Hint


class ReadBackResult(Enum):
    """What to do after a look."""

    NOT_YET = "not yet"
    SEND = "send"
    GONE = "gone"
    NOTHING = "nothing"


class Known(NamedTuple):
    """An object that was there: its uid, and its newest known version."""

    uid: str
    version: int


class PendingObject(Struct, frozen=True):
    """One object that hints concern; they are merged, so that there is one for each object.

    `serial` grows with each hint. `rang` is when the first of them came. `sure` says that all
    hints started from one state, so that finding this state again means that nothing happened.
    It is `own` if all of them are of writes of Bellhop.
    """

    key: ObjectKey
    uid: str
    before: int
    known: Known | None
    rang: str
    serial: int
    sure: bool = True
    own: bool = False

    @classmethod
    def of(cls, hint: Hint, rang: str, serial: int) -> PendingObject:
        """Begin with one hint."""
        known = Known(hint.uid, hint.before) if hint.uid and hint.before else None
        return cls(hint.key, hint.uid, hint.before, known, rang, serial, own=hint.own)

    def merge(self, later: PendingObject) -> PendingObject:
        """Return what is owed after a later hint; of one object's hints the newest version wins.

        Hints of several API servers may overtake each other.
        """
        overtaken = later.uid == self.uid and later.before < self.before
        newest = self if overtaken else later
        return replace(
            newest,
            known=newest.known or later.known or self.known,
            rang=min(self.rang, later.rang),
            serial=later.serial,
            sure=self.sure and later.sure and self._baseline == later._baseline,
            own=self.own and later.own,
        )

    def judge(self, state: Mapping[str, Any] | None) -> ReadBackResult:
        """Say what the object's present state means; None is an object that is not there."""
        if not self.uid:
            return ReadBackResult.NOT_YET if state is None else ReadBackResult.SEND
        if state is None:
            return ReadBackResult.GONE if self.before else ReadBackResult.NOT_YET
        metadata = state.get("metadata") or {}
        same = metadata.get("uid") == self.uid
        if not self.before:
            return ReadBackResult.SEND if same else ReadBackResult.NOT_YET
        unchanged = same and version_of(metadata) == self.before
        return ReadBackResult.NOT_YET if unchanged else ReadBackResult.SEND

    def is_settled_by(self, seen: Known) -> bool:
        """Say if a write that was about to happen can only have come before what was seen.

        A write is stored only onto the version that its hint tells. Where that version has passed,
        it is stored already, or is tried again and rings again.
        """
        return bool(self.uid) and self.uid == seen.uid and self.before < seen.version

    def conclude(self, state: Mapping[str, Any] | None) -> ReadBackResult:
        """Say what the state means once the last hint's write can no longer be on its way."""
        sight = self.judge(state)
        if sight is not ReadBackResult.NOT_YET:
            return sight
        if state is None:
            return ReadBackResult.GONE if self.known else ReadBackResult.NOTHING
        # One of several writes happened, perhaps, or the process began anew in between.
        return ReadBackResult.NOTHING if self.sure else ReadBackResult.SEND

    @property
    def _baseline(self) -> Known | None:
        return Known(self.uid, self.before) if self.before else None
