"""The progress of a resync of one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from bellhop.core.gvk import GVK


class ResyncProgress(Struct, frozen=True):
    """A resync that is running: its position, and what it found so far."""

    id: str
    judged: str
    """A digest of the sources that it evaluates."""
    credentials: str
    """The version of the kubeconfig that it lists with."""
    full: bool = False
    again: Literal["", "look", "full"] = ""
    """The resync that was requested meanwhile."""
    step: Literal["next", "read", "judge", "bury", "forget"] = "next"
    """The next step in `kind`."""
    kind: GVK | None = None
    absent: bool = False
    """The cluster serves no version of the kind."""
    after: str = ""
    """The continue token of the list."""
    last: str = ""
    """The last object that was read; within that page if it was `cut`."""
    cut: bool = False
    read: int = 0
    """Objects on the pages so far."""
    size: int = 0
    """Their bytes."""
    trial: bool = False
    """Read the list to its end first, and store nothing."""
    known: int = 0
    """Observations that were stored before."""
    missing: int = 0
    """Those of them that are on no page."""
    claims: int = 0
    """Unconfirmed observations that are on no page."""
    doubted: bool = False
    """The list is implausibly short: it deletes only objects that just the sender has shown."""
    barren: int = 0
    restarts: int = 0
    found: int = 0
    missed: int = 0
    uid: str = ""
    untold: Mapping[str, str] = {}
    """By kind, the last object that was written and may not have been published."""
    unseen: tuple[GVK, ...] = ()
    """The kinds that it could not list."""
    problems: tuple[str, ...] = ()
    hand: str = ""
    """The worker that wrote it last."""
    mute: bool = False
    """The API server could not be set up to send events."""
    held: bool = False
    """Profiles have objects here whose drift is to be corrected."""
    followed: tuple[GVK, ...] = ()
    """As in the cluster's health."""
    unserved: tuple[GVK, ...] = ()
    """As in the cluster's health."""
    began_at: datetime | None = None
