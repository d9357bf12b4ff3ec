"""Guard: what ends in a report beyond a few objects waits until it is known how much that is.

    a match ends ─► the few that ended first ─► withdrawn
                 └► others ─► held, under a lot ─► quiet for a while ─► weighed ─┬► let go
                                  │                                             └► too much: stays
                                  ├► it matches again ─► held no more
                                  ├► resyncs agree that it is deleted ─► let go
                                  └► somebody releases the lot ─► let go

A list that lies, a definition that was deleted and takes all its objects along, a selector with a
typo: what they end comes object by object, each to another worker. Whoever is about to end a match
notes it first and counts then, so that of any number at once no more than those few slip through.
An event costs the same however much matches, and however much is held.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.api.source_names import health_check_of
from bellhop.catalog.cache import Catalogs
from bellhop.core.gvk import CLOUD_EVENT
from bellhop.errors import StaleError
from bellhop.events.deletion_confirmation import DeletionConfirmation
from bellhop.events.fan_out import follow_up
from bellhop.events.object_cache import Objects
from bellhop.events.records.held_deletions import Staying
from bellhop.logs import Log
from bellhop.ports.store import ABSENT
from bellhop.rendering.deletion_limit import DeletionLimit as Rule
from bellhop.settings import Settings
from bellhop.state.concurrency import until_settled, until_written
from bellhop.state.delays import hold_timer
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.messages import CheckDeletionGuard as Message
from bellhop.state.messages import Publisher
from bellhop.state.record import Cause, HeldDeletion, Match
from bellhop.state.records import Records
from bellhop.state.table import Stored
from bellhop.state.timers import SKEW

_LONGEST = 10
"""Windows that what is not too much waits at most, though more of it ends all the time."""


class DeletionGuard:
    """Holds what ends when too much of a report does, and lets it go."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        settings: Settings,
        log: Log,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._rule = Rule(settings.hold_from, settings.hold_share)
        self._objects = Objects(records)
        self._agreement = DeletionConfirmation(records, settings.hold_agreement)

    # One match ----------------------------------------------------------------------------------

    def keeps(self, match: Match) -> bool:
        """Say whether a match that is about to end is to be held instead.

        CloudEvents end by what they say themselves, or by their time: that was asked for. And what
        a health check asked for takes nothing away when it ends.
        """
        if not self._rule.is_on or match.key.gvk == CLOUD_EVENT or health_check_of(match.source):
            return False
        cluster, source, few = match.cluster, match.source, self._rule.few
        if match.held or self._records.holds.get(cluster, source):
            return True
        self._records.holds.end(match, self._records.clock.now() + self._settings.hold_window)
        ended = self._records.holds.ended(cluster, source, most=self._rule.least)
        if ended <= few:
            return False
        # This one matches still, as it is counted.
        there = self._records.matches.count(cluster, source, most=self._rule.least)
        return self._rule.heeds(there + ended - 1)

    def stand(self, match: Match, cause: Cause, *, anew: bool) -> None:
        """See that a match that is held is let go some day: note it, and have it weighed.

        Who takes a hold for empty and deletes it looks again, and so does this: one of the two
        sees the other.
        """
        lot, token = self._hold(match, cause).lot, ""
        if anew or not self._records.holds.token(match):
            state = self._objects.newest(match.cluster, match.source, match.key)
            with suppress(StaleError):
                token = self._records.holds.stay(match, lot, state, anew=anew)
        self._hold(match, cause)
        kept = self._records.matches.get(match.cluster, match.source, match.key)
        if token and not (kept and kept.value.held):
            # It came back meanwhile.
            with suppress(StaleError):
                self._leave(match, token)

    def retain(self, match: Match, cause: Cause) -> bool:
        """Hold a match that is about to be deleted, if it is to be; say whether it stays."""
        if match.held:
            if not self._records.holds.token(match):
                # Who held it died before that was noted.
                self.stand(match, cause, anew=False)
            return True
        if not match.matching or not self.keeps(match):
            return False
        kept = self._records.matches.get(match.cluster, match.source, match.key)
        with suppress(StaleError):
            # Whoever has written it meanwhile has judged it.
            if kept and kept.value.matching:
                held = replace(kept.value, held=True)
                self._records.matches.put(held, expect=kept.token)
                self.stand(held, cause, anew=True)
        return True

    def clear(self, match: Match) -> None:
        """Note, before it is written so, that a match is held no more; the last ends the hold."""
        token = self._records.holds.token(match)
        if token:
            with suppress(StaleError):
                self._leave(match, token)
        if not self._records.holds.count(match.cluster, match.source, most=1):
            self._publisher.publish([Message(match.cluster, match.source)])

    def _leave(self, match: Match, token: str) -> None:
        self._records.holds.leave(match.cluster, match.source, match.key, expect=token)

    @until_written("hold '{match.key}'")
    def _hold(self, match: Match, cause: Cause) -> HeldDeletion:
        """Return the hold of a match's report; begin one where there is none."""
        kept = self._records.holds.get(match.cluster, match.source)
        if kept:
            return kept.value
        now, few = self._records.clock.now(), self._rule.few
        hold = HeldDeletion(
            match.cluster,
            match.source,
            lot=uuid.uuid4().hex,
            cause=cause,
            since=now,
            until=now + self._settings.hold_window,
            gone=min(few, self._records.holds.ended(match.cluster, match.source, most=few)),
        )
        self._set_timer(hold)
        self._records.holds.put(hold, expect=ABSENT)
        return hold

    def _set_timer(self, hold: HeldDeletion, at: datetime | None = None) -> None:
        body = Message(hold.cluster, hold.source).message().body
        # A hold that a clock wrote which was ahead waits no longer than any.
        latest = self._records.clock.now() + self._settings.hold_window
        name = hold_timer(hold.cluster, hold.source)
        self._records.timers.set(name, at or min(hold.until, latest), body)

    # A report -----------------------------------------------------------------------------------

    @until_settled("check the deletion guard of '{message.source}' in '{message.cluster}'")
    def weigh(self, message: Message) -> bool:
        """Let go what is released, and decide about the rest once no more ends.

        Raises:
            StaleError: others write it all the time.
        """
        kept = self._records.holds.get(message.cluster, message.source)
        if kept is None:
            return True
        if not self._let_go(kept.value):
            self._publisher.publish([message])
            return True
        with suppress(StaleError):
            return self._settle(kept)
        return False

    def _settle(self, kept: Stored[HeldDeletion]) -> bool:
        """Bring a hold up to date; False if more is to be let go.

        Raises:
            StaleError: another writer was quicker.
        """
        hold, now = kept.value, self._records.clock.now()
        count = self._records.holds.count(hold.cluster, hold.source)
        if not count:
            self._close(kept)
            return True
        if hold.held_at and self._rule.is_on:
            return self._heed_sweeps(kept)
        ended, of = count + hold.gone, self._size(hold, count)
        if self._rule.exceeds(ended, of):
            self._keep(kept, count)
            return True
        if self._rule.is_on and now < hold.until <= now + self._settings.hold_window + SKEW:
            self._set_timer(hold)
            return True
        if self._may_grow(hold, ended, of):
            later = replace(hold, counted=ended, until=now + self._settings.hold_window)
            self._set_timer(later)
            self._records.holds.put(later, expect=kept.token)
            return True
        free = released(hold, now, self._settings.hold_window)
        self._records.holds.put(free, expect=kept.token)
        return False

    def _size(self, hold: HeldDeletion, count: int) -> int:
        """Count as much of a report as tells whether what ended is much of it."""
        if not self._rule.is_on:
            return 0
        most = self._rule.needed(count + hold.gone)
        there = self._records.matches.count(hold.cluster, hold.source, most=most)
        return there + hold.gone

    def _may_grow(self, hold: HeldDeletion, ended: int, of: int) -> bool:
        """Say whether more is about to end, as far as one waits for it.

        Where a few ring all the time it would never be quiet; a sweep, and a declaration, end all
        that they end one after the other, however slowly it is judged.
        """
        patience = _LONGEST * self._settings.hold_window
        steady = hold.cause == "rings" and self._rule.is_little(ended, of)
        waits = self._records.clock.now() - hold.since < patience and not steady
        return self._rule.is_on and ended > hold.counted and waits

    def _close(self, kept: Stored[HeldDeletion]) -> None:
        """End a hold of which nothing is left."""
        hold = kept.value
        self._records.holds.delete(hold.cluster, hold.source, expect=kept.token)
        self._records.timers.cancel(hold_timer(hold.cluster, hold.source))
        if self._records.holds.count(hold.cluster, hold.source, most=1):
            # Something ended in between, and saw the hold.
            self._set_timer(hold)
            with suppress(StaleError):
                self._records.holds.put(hold, expect=ABSENT)

    def _keep(self, kept: Stored[HeldDeletion], count: int) -> None:
        hold, now = kept.value, self._records.clock.now()
        of = self._records.matches.count(hold.cluster, hold.source) + hold.gone
        self._wait_for_sweeps(hold)
        self._records.holds.put(replace(hold, of=of, held_at=now), expect=kept.token)
        sweeps = self._settings.hold_agreement
        agree = f" {sweeps} resyncs agree that they are deleted," if sweeps else ""
        detail = (
            f"{count + hold.gone} of {of} objects that matched '{hold.source}' ended at once;"
            f" {count} are held until they match again,{agree} or `bellhop release` releases them"
        )
        self._log.warning("Held a withdrawal", cluster=hold.cluster, source=hold.source, held=count)
        note = Note("held", detail, context={"source": hold.source})
        write(self._records, Nobody(), hold.cluster, "", note)

    # What sweeps agree on -----------------------------------------------------------------------

    def _wait_for_sweeps(self, hold: HeldDeletion) -> None:
        if self._agreement.is_on:
            self._set_timer(hold, self._records.clock.now() + self._settings.sweep_interval)

    def _heed_sweeps(self, kept: Stored[HeldDeletion]) -> bool:
        """Count the last sweep; once enough agree, let go what was gone before, for a turn.

        Say whether that is all for now.

        Raises:
            StaleError: another writer was quicker.
        """
        old, catalog = kept.value, self._catalogs.current()
        if not self._agreement.is_on:
            return True
        hold = self._agreement.counted(catalog, old)
        self._wait_for_sweeps(hold)
        if not self._agreement.is_reached(hold):
            if hold != old:
                self._records.holds.put(hold, expect=kept.token)
            return True
        begun = self._records.clock.now()
        for each in self._records.holds.staying(hold.cluster, hold.source, after=hold.looked):
            if self._agreement.is_over(catalog, hold, each.key):
                self._withdraw(hold, each, "resyncs agree that it is deleted")
            if self._records.clock.now() - begun > self._settings.turn:
                self._records.holds.put(replace(hold, looked=str(each.key)), expect=kept.token)
                self._publisher.publish([Message(hold.cluster, hold.source)])
                return True
        self._records.holds.put(_uncounted(hold), expect=kept.token)
        return False

    # What goes ----------------------------------------------------------------------------------

    def _let_go(self, hold: HeldDeletion) -> bool:
        """Withdraw what is held under another lot; say whether that was all."""
        begun = self._records.clock.now()
        for each in self._records.holds.staying(hold.cluster, hold.source):
            if each.lot == hold.lot:
                continue
            self._withdraw(hold, each, "it was held, and released")
            if self._records.clock.now() - begun > self._settings.turn:
                return False
        return True

    def _withdraw(self, hold: HeldDeletion, staying: Staying, why: str) -> None:
        """End a match, tell deploy, and forget that it was held, in this order.

        Raises:
            StaleError: another judges it just now.
        """
        cluster, source, key = hold.cluster, hold.source, staying.key
        kept = self._records.matches.get(cluster, source, key)
        if kept:
            self._end(kept, why)
        with suppress(StaleError):
            # It may have come back, and ended anew.
            self._records.holds.leave(cluster, source, key, expect=staying.token)

    def _end(self, kept: Stored[Match], why: str) -> None:
        match, token = kept.value, kept.token
        if match.held:
            match = replace(match, matching=False, digest="", error="", told=False, held=False)
            token = self._records.matches.put(match, expect=token)
        if match.matching or match.error:
            return
        # Who died here before has not told.
        self._publisher.publish(follow_up(self._catalogs.current(), match, Nobody()))
        with suppress(StaleError):
            # Whoever has written it meanwhile tells of it.
            self._records.matches.delete(match.cluster, match.source, match.key, expect=token)
        note = Note("unmatched", why, context={"source": match.source})
        write(self._records, Nobody(), match.cluster, str(match.key), note)


def released(hold: HeldDeletion, now: datetime, window: timedelta) -> HeldDeletion:
    """Return a hold under which all that was held until now is let go, and what follows stays."""
    free = replace(hold, lot=uuid.uuid4().hex, since=now, until=now + window)
    return replace(_uncounted(free), gone=0, counted=0, of=0, held_at=None)


def _uncounted(hold: HeldDeletion) -> HeldDeletion:
    return replace(hold, sweeps=0, first=None, last=None, looked="")
