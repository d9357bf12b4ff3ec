"""Loops: a trigger's add-ons change, by way of a source, the objects it is rendered from.

     an object ─► its profile, turn 1 ─► its add-ons: another client's object ─────► turn 2 ─► …

Each profile notes how many turns led to it: one more than that which deployed the object it is made
from, and one where no profile did. So a chain counts its links, what an object's owner does counts
nothing, and only what comes back to itself counts on. The number lies in the records, with the
profile, and is found by the owner of the object: any process knows it, in any cluster, and nothing
is written into clusters for it. An annotation on applied objects would itself be a change, which
a client that copies annotations would keep in the loop.

It is a bucket that leaks: sixteen turns come at once, and then one a minute. The last writer of
the object need not be known: people who edit what is theirs and ours, less than once a minute, are
never slowed, and a loop that ends is forgotten by itself. Turns that were counted before something
was declared count no more, so that a corrected trigger or source is not delayed. A change of
clusters forgets no turn: in a fleet there may be one each second.

A turn that is to wait is a timer: any process publishes it, and one that is killed loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from bellhop.core.gvk import ObjectKey
from bellhop.core.sveltos_annotations import OWNER
from bellhop.errors import MissingError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.delays import loop_timer
from bellhop.state.event_recorder import Note
from bellhop.state.messages import Instantiate
from bellhop.state.profile import Profile
from bellhop.state.records import Records

MOST = 16
"""Turns that come at once: chains that end are shorter."""

INTERVAL = timedelta(minutes=1)
"""Beyond these one turn is allowed in each such interval."""

CURE = "leave out of its template what changes each time, or what is applied out of its source"
"""The cure of a loop, for its error."""

_SHOWN = 2
"""Turns below the most at which a loop is still spoken of: it has just had its turn."""


class LoopCounts(NamedTuple):
    """The turns that led to a profile, since when, and the profile of the last one: `by`."""

    times: int
    since: datetime
    by: str = ""

    def wait(self, now: datetime) -> timedelta:
        """Return how long the next turn is to wait, at most a minute; zero where it need not."""
        left = INTERVAL * (self.times - MOST + 1) - self._passed(now)
        return min(max(left, timedelta(0)), INTERVAL)

    def level(self, now: datetime) -> float:
        """Return how many turns are not forgotten yet."""
        return self.times - self._passed(now) / INTERVAL

    def _passed(self, now: datetime) -> timedelta:
        """Return how long it is going on; a clock that was ahead must not hold this for long."""
        return max(now - self.since, timedelta(0))


def count_turns(makers: Iterable[Profile], declared: str, now: datetime) -> LoopCounts:
    """Return the turns of a profile made from objects of these, under the rules `declared`."""
    known = (
        LoopCounts(each.turns, each.turning, each.trigger)
        for each in makers
        if each.turning is not None and each.turned_by == declared
    )
    return max((each for each in known if each.level(now) > 0), default=LoopCounts(0, now))


def is_slowed(profile: Profile, declared: str, now: datetime) -> bool:
    """Say whether a profile is one turn of a loop that goes on."""
    return count_turns([profile], declared, now).level(now) > MOST - _SHOWN


def describe_loop(trigger: str, source: str, turns: LoopCounts, now: datetime) -> str:
    """Say what a loop is, and what to do about it."""
    way = f", through trigger '{turns.by}'" if turns.by not in ("", trigger) else ""
    took = round((now - turns.since).total_seconds())
    return (
        f"trigger '{trigger}' feeds itself{way}: what is applied changes what source '{source}'"
        f" matches, {turns.times} times in {took} s; it is made once a minute from now on; {CURE}"
    )


_LOOKED_AT = 16
"""Objects of ours of which a profile for all objects is followed back: it costs the same for any
number of them."""


class Loops:
    """Follows profiles back to those that deployed their objects, and delays loops."""

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
        return count_turns(makers, declared, self._records.clock.now())

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
                note.detail = describe_loop(message.trigger, source, turns, now)
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
    """Return whether a profile may have deployed an object; any may if it is not collected."""
    if not manifest:
        return True
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return OWNER in annotations
