"""Observed objects, and the sources that they match."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Literal

from msgspec import Struct, field

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.structs import Redacted


class Observation(Struct, frozen=True):
    """The newest known state of one object."""

    cluster: str
    key: ObjectKey
    uid: str
    resource_version: int
    """It grows with every write in one cluster (KEP-5504 made comparing it official); 0 is older
    than anything."""
    manifest: Mapping[str, Any] | None
    """None for a tombstone."""
    seen_at: datetime
    unconfirmed: bool = False
    """Only the cluster's sender has shown this object, or this deletion: no list or read of Bellhop
    has."""

    @property
    def gone(self) -> bool:
        """Return whether the object was deleted."""
        return self.manifest is None


class Match(Struct, frozen=True):
    """One object that matches one source, or whose last evaluation failed."""

    cluster: str
    source: str
    key: ObjectKey
    matching: bool
    """With an `error` it is what it was before: an error is never an empty answer."""
    digest: str
    since: datetime
    message: str = ""
    error: str = ""
    told: bool = False
    """Published: deploy was asked about it as it is. One that no longer matches stays until
    then."""
    held: bool = False
    """It has ended, and counts as matching while too many of its report ended at once."""
    failed_at: datetime | None = None
    """The time since when its evaluation fails."""


Cause = Literal["rings", "sweep", "declaration"]
"""The cause of ended matches: an event, a resync, or a changed source."""


class HeldDeletion(Struct, frozen=True):
    """The matches of one report that have ended, and are not withdrawn yet."""

    cluster: str
    source: str
    lot: str
    """The batch: what is held under another one is released."""
    cause: Cause
    since: datetime
    until: datetime
    """Until then they are only counted."""
    gone: int = 0
    """Matches that were withdrawn before the guard knew that more would follow."""
    counted: int = 0
    """Matches that had ended at the last count."""
    of: int = 0
    """The matches of the report, of which too many ended."""
    held_at: datetime | None = None
    """The time when the limit was exceeded."""
    sweeps: int = 0
    """Resyncs that have seen all of it since then."""
    first: datetime | None = None
    """The end of the first of these."""
    last: datetime | None = None
    """The end of the last one."""
    looked: str = ""
    """The last object of those that a resync has confirmed as deleted and released."""


class Selected(Redacted, frozen=True):
    """One resource of a selection; its manifest only where resources are collected."""

    secret_fields: ClassVar[Collection[str]] = ("manifest",)
    key: ObjectKey
    digest: str
    """Of the state that is meant."""
    since: datetime
    manifest: Mapping[str, Any] = field(default_factory=dict)


class Selection(Struct, frozen=True, dict=True):
    """The report of a source's aggregatedSelection in one cluster."""

    cluster: str
    source: str
    since: datetime
    selected: tuple[Selected, ...] = ()
    """With an `error` it is what it was before."""
    made: bool = False
    """It was computed at least once."""
    made_of: str = ""
    """A digest of the script and of the matches; empty where it is to be computed again."""
    message: str = ""
    error: str = ""
    told: bool = False
    """Published: deploy was asked about it as it is."""
    left_out: str = ""
    """Names the objects that the script was not given."""
    failed_at: datetime | None = None
    """The time since when the script fails."""

    @cached_property
    def by_key(self) -> Mapping[str, Selected]:
        """Return the selected resources by their key's text."""
        return {str(each.key): each for each in self.selected}

    @property
    def marks(self) -> tuple[tuple[str, str], ...]:
        """Return keys and digests of what is selected, in the script's order."""
        return tuple((key, each.digest) for key, each in self.by_key.items())


class SourceIndex(Struct, frozen=True):
    """The sources that an object has matched since it was there."""

    cluster: str
    key: ObjectKey
    sources: tuple[str, ...] = ()
    endless: bool = False
    """There are very many: any source may be among them."""
    ended: bool = False
    """The object was deleted."""

    def may_name(self, source: str) -> bool:
        """Return whether a source is, or may be, among them."""
        return self.endless or source in self.sources


class AccessReview(Struct, frozen=True):
    """The answer whether a service account may get and list a kind in a namespace."""

    cluster: str
    account: str
    gvk: GVK
    namespace: str
    """Empty for all of them."""
    allowed: bool = False
    at: datetime | None = None
    """The time of the answer; None if there was none."""
    told: bool = True
    """Published: all objects that a change of it concerns are evaluated again."""
    error: str = ""


class SlowScript(Struct, frozen=True):
    """A source whose script repeatedly exceeds its first slice of time."""

    source: str
    digest: str
    """Of the source as it was written then."""
    times: int
    """The times in a row, noted since `since`."""
    since: datetime
