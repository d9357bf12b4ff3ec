"""Deploy slows what feeds itself: how many turns led to a profile, and when the next may come.

A turn that is to wait is a timer, as all that happens later: any process lets it go on, and one
that is killed has lost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from bellhop.core.gvk import ObjectKey
from bellhop.core.sveltos_annotations import OWNER
from bellhop.errors import MissingError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.profiles import loops
from bellhop.profiles.loops import LoopCounts
from bellhop.state.delays import loop_timer
from bellhop.state.event_recorder import Note
from bellhop.state.messages import Instantiate
from bellhop.state.record import Profile
from bellhop.state.records import Records

_LOOKED_AT = 16
"""Objects of ours of which a profile for all objects is followed back: it costs the same for any
number of them."""


class Loops:
    """Follows profiles back to what brought their objects, and lets loops wait."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def turns(
        self,
        cluster: str,
        matched: Sequence[tuple[ObjectKey, Mapping[str, Any]]],
        declared: str,
    ) -> LoopCounts:
        """Return how many turns led to what matches; objects that are not ours cost nothing.

        Only those count that were made by the rules of the mark `declared`.
        """
        ours = (key for key, manifest in matched if _is_ours(manifest))
        makers = self._makers(cluster, islice(ours, _LOOKED_AT))
        return loops.led_by(makers, declared, self._records.clock.now())

    def holds(
        self, message: Instantiate, profile: str, source: str, turns: LoopCounts, note: Note
    ) -> bool:
        """Say whether a profile is to wait for its turn; its message comes again when it is due."""
        now = self._records.clock.now()
        wait = turns.wait(now)
        if not wait:
            return False
        name = loop_timer(message.trigger, message.cluster, profile)
        kept = self._records.timers.get(name)
        if kept is None or kept.value.at <= now:
            with suppress(StaleError):
                expect = kept.token if kept else ABSENT
                self._records.timers.set(name, now + wait, message.message().body, expect=expect)
                note.what = "slowed"
                note.detail = loops.told(message.trigger, source, turns, now)
                note.context = {**note.context, "source": source}
        return True

    def _makers(self, cluster: str, keys: Iterator[ObjectKey]) -> Iterator[Profile]:
        for key in keys:
            owner = self._records.owners.get(cluster, key.identity)
            if owner is None or not owner.value.profile:
                continue
            place = owner.value.trigger, owner.value.source, owner.value.profile
            with suppress(MissingError):
                head = self._records.profiles.head(*place)
                if head:
                    yield head.value


def _is_ours(manifest: Mapping[str, Any]) -> bool:
    """Say whether a profile may have brought an object; of one that is not collected who knows."""
    if not manifest:
        return True
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return OWNER in annotations
