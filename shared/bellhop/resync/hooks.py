"""Steps that other features have in a resync. The composition root passes them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.resync.cleanup import Retain
from bellhop.resync.progress import ResyncSession
from bellhop.state.envelope import Envelope


class Subscribed(NamedTuple):
    """Result of a subscription: problems, and whether the cluster is `mute` because of them.

    `owned`: the API server reports kinds because of drift. `followed`: kinds that it reports
    because templates read them, all of which were rendered again since.
    """

    problems: tuple[str, ...]
    mute: bool
    owned: bool
    followed: tuple[GVK, ...]


Subscribe = Callable[[ResyncSession, tuple[GVK, ...]], Subscribed]
"""Has the API server report the kinds in use; gets the kinds followed so far."""

FindLost = Callable[[ObjectKey, Mapping[str, Any] | None], Iterable[Envelope]]
"""Returns the messages whose work on an object is missing; gets None for a deleted object."""


class Hooks(Struct, frozen=True):
    """Steps of other features: `begin` and `subscribe` run before the first kind is listed.

    `retain` decides on each match that is about to end. `find_lost` checks the objects that changed
    since the last resync. `end` gets the cluster's key after each
    message, whether or not it failed.
    """

    begin: Callable[[ResyncSession], None]
    subscribe: Subscribe
    retain: Retain
    find_lost: Callable[[ResyncSession], FindLost]
    end: Callable[[str], None]
