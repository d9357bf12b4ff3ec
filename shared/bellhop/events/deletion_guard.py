"""Deletion guard of events: hold ended matches until it is known how many of a report end.

    a match ends ─► one of the few first ─► withdrawn
                 └► others ─► held, in a batch ─► none for a while ─► checked ─┬► few: released
                                  │                                          └► too many: stay
                                  ├► it matches again ─► not held any more
                                  ├► resyncs confirm the deletion ─► released
                                  └► a person releases the batch ─► released

A wrong list, a deleted definition with all its objects, or a typo in a selector end matches object
by object, each in another worker. A worker records the end first and counts then, so of any number
at once only the few first are withdrawn. An event costs the same for any number of matches and held
matches.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.api.names import health_check_of
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.errors import StaleError
from bellhop.events.records import Staying
from bellhop.events.reports import Objects, follow_up
from bellhop.logs import Log
from bellhop.ports.store import ABSENT
from bellhop.rendering.deletion_limit import DeletionLimit as Rule
from bellhop.settings import Settings
from bellhop.state.concurrency import until_settled, until_written
from bellhop.state.delays import hold_timer
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.match import Cause, HeldDeletion, Match
from bellhop.state.messages import CheckDeletionGuard as Message
from bellhop.state.messages import Publisher
from bellhop.state.records import Records
from bellhop.state.table import Stored
from bellhop.state.timers import SKEW


class DeletionConfirmation:
    """Counts the resyncs since a deletion was held, and checks objects against them.

    too many ended ─► count complete resyncs since ─► enough: release the objects that were
                                                      deleted before the first ─► count again

    An object that exists and does not match any more waits for a person: every resync evaluates it
    by the same source, which may be what is wrong.
    """

    def __init__(self, records: Records, resyncs: int) -> None:
        self._records = records
        self._resyncs = resyncs

    @property
    def is_on(self) -> bool:
        """Return whether resyncs may release held deletions at all."""
        return self._resyncs > 0

    def count(self, catalog: Catalog, hold: HeldDeletion) -> HeldDeletion:
        """Return a hold with the last resync counted, if it is another one and was complete."""
        ended = self._records.health.get(hold.cluster).value.swept_at
        last = hold.last or hold.held_at
        if self.is_reached(hold) or ended is None or last is None or ended <= last:
            return hold
        if not self._is_complete(catalog, hold):
            return hold
        return replace(hold, sweeps=hold.sweeps + 1, first=hold.first or ended, last=ended)

    def is_reached(self, hold: HeldDeletion) -> bool:
        """Return whether enough resyncs confirm the deletion, beside the first that was counted.

        The first may have listed before an object was deleted.
        """
        return hold.sweeps > self._resyncs

    def is_deleted(self, catalog: Catalog, hold: HeldDeletion, key: ObjectKey) -> bool:
        """Return whether these resyncs listed an object's kind, and it was deleted by the first."""
        source = catalog.sources.get(hold.source)
        if source is None or key.gvk not in source.kinds:
            return False
        kept = self._records.observations.get(hold.cluster, key)
        # A tombstone expires after a week, and an existing object would have been observed.
        if kept is None or hold.first is None:
            return kept is None
        return kept.value.gone and kept.value.seen_at <= hold.first

    def _is_complete(self, catalog: Catalog, hold: HeldDeletion) -> bool:
        """Return whether the last resync listed each kind of the source, and doubted no list."""
        source = catalog.sources.get(hold.source)
        health = self._records.health.get(hold.cluster).value
        if source is None or health.state != "Healthy" or source.kinds & {*health.unseen}:
            return False
        confirmations = self._records.strikes
        return not any(confirmations.get(hold.cluster, gvk).value for gvk in source.kinds)


_LONGEST = 10
"""Windows for which a number below the limit waits at most, while more matches end."""


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
        self._confirmation = DeletionConfirmation(records, settings.hold_agreement)

    # One match ----------------------------------------------------------------------------------

    def must_hold(self, match: Match) -> bool:
        """Return whether a match that is about to end is to be held instead.

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

    def record_hold(self, match: Match, cause: Cause, *, again: bool) -> None:
        """Record a held match in its batch, and have the batch checked.

        A worker that deletes an empty hold reads again afterwards, and so does this one: at least
        one of them sees the other.
        """
        lot, token = self._hold(match, cause).lot, ""
        if again or not self._records.holds.token(match):
            state = self._objects.newest(match.cluster, match.source, match.key)
            with suppress(StaleError):
                token = self._records.holds.stay(match, lot, state, again=again)
        self._hold(match, cause)
        kept = self._records.matches.get(match.cluster, match.source, match.key)
        if token and not (kept and kept.value.held):
            # It came back meanwhile.
            with suppress(StaleError):
                self._delete_held(match, token)

    def retain(self, match: Match, cause: Cause) -> bool:
        """Hold a match that is about to be deleted, if it is to be; return whether it stays."""
        if match.held:
            if not self._records.holds.token(match):
                # The worker that held it died before it recorded that.
                self.record_hold(match, cause, again=False)
            return True
        if not match.matching or not self.must_hold(match):
            return False
        kept = self._records.matches.get(match.cluster, match.source, match.key)
        with suppress(StaleError):
            # A worker that has written it meanwhile has evaluated it.
            if kept and kept.value.matching:
                held = replace(kept.value, held=True)
                self._records.matches.put(held, expect=kept.token)
                self.record_hold(held, cause, again=True)
        return True

    def clear(self, match: Match) -> None:
        """Note, before it is written so, that a match is held no more; the last ends the hold."""
        token = self._records.holds.token(match)
        if token:
            with suppress(StaleError):
                self._delete_held(match, token)
        if not self._records.holds.count(match.cluster, match.source, most=1):
            self._publisher.publish([Message(match.cluster, match.source)])

    def _delete_held(self, match: Match, token: str) -> None:
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
    def check(self, message: Message) -> bool:
        """Withdraw released matches, and decide about the others once no more end.

        Raises:
            StaleError: other writers change the hold all the time.
        """
        kept = self._records.holds.get(message.cluster, message.source)
        if kept is None:
            return True
        if not self._withdraw_released(kept.value):
            self._publisher.publish([message])
            return True
        with suppress(StaleError):
            return self._settle(kept)
        return False

    def _settle(self, kept: Stored[HeldDeletion]) -> bool:
        """Update a hold; False if more matches are to be released."""
        hold, now = kept.value, self._records.clock.now()
        count = self._records.holds.count(hold.cluster, hold.source)
        if not count:
            self._close(kept)
            return True
        if hold.held_at and self._rule.is_on:
            return self._count_resyncs(kept)
        ended, of = count + hold.gone, self._size(hold, count)
        if self._rule.exceeds(ended, of):
            self._hold_until_confirmed(kept, count)
            return True
        if self._rule.is_on and now < hold.until <= now + self._settings.hold_window + SKEW:
            self._set_timer(hold)
            return True
        if self._may_grow(hold, ended, of):
            later = replace(hold, counted=ended, until=now + self._settings.hold_window)
            self._set_timer(later)
            self._records.holds.put(later, expect=kept.token)
            return True
        free = release_batch(hold, now, self._settings.hold_window)
        self._records.holds.put(free, expect=kept.token)
        return False

    def _size(self, hold: HeldDeletion, count: int) -> int:
        """Count as many matches of a report as the limit needs."""
        if not self._rule.is_on:
            return 0
        most = self._rule.needed(count + hold.gone)
        there = self._records.matches.count(hold.cluster, hold.source, most=most)
        return there + hold.gone

    def _may_grow(self, hold: HeldDeletion, ended: int, of: int) -> bool:
        """Return whether to wait for more ends.

        Single deletions by events may never pause; a resync, or a changed source, ends all matches
        that it ends one after the other, however slowly they are evaluated.
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

    def _hold_until_confirmed(self, kept: Stored[HeldDeletion], count: int) -> None:
        hold, now = kept.value, self._records.clock.now()
        of = self._records.matches.count(hold.cluster, hold.source) + hold.gone
        self._set_resync_timer(hold)
        self._records.holds.put(replace(hold, of=of, held_at=now), expect=kept.token)
        resyncs = self._settings.hold_agreement
        agree = f" {resyncs} resyncs agree that they are deleted," if resyncs else ""
        detail = (
            f"{count + hold.gone} of {of} objects that matched '{hold.source}' ended at once;"
            f" {count} are held until they match again,{agree} or `bellhop release` releases them"
        )
        self._log.warning("Held a withdrawal", cluster=hold.cluster, source=hold.source, held=count)
        note = Note("held", detail, context={"source": hold.source})
        write(self._records, Nobody(), hold.cluster, "", note)

    # Confirmation by resyncs ---------------------------------------------------------------------

    def _set_resync_timer(self, hold: HeldDeletion) -> None:
        if self._confirmation.is_on:
            self._set_timer(hold, self._records.clock.now() + self._settings.sweep_interval)

    def _count_resyncs(self, kept: Stored[HeldDeletion]) -> bool:
        """Count the last resync; once enough confirm, withdraw matches for as long as a turn lasts.

        Return whether that is all for now.
        """
        old, catalog = kept.value, self._catalogs.current()
        if not self._confirmation.is_on:
            return True
        hold = self._confirmation.count(catalog, old)
        self._set_resync_timer(hold)
        if not self._confirmation.is_reached(hold):
            if hold != old:
                self._records.holds.put(hold, expect=kept.token)
            return True
        begun = self._records.clock.now()
        for each in self._records.holds.staying(hold.cluster, hold.source, after=hold.looked):
            if self._confirmation.is_deleted(catalog, hold, each.key):
                self._withdraw(hold, each, "resyncs agree that it is deleted")
            if self._records.clock.now() - begun > self._settings.turn:
                self._records.holds.put(replace(hold, looked=str(each.key)), expect=kept.token)
                self._publisher.publish([Message(hold.cluster, hold.source)])
                return True
        self._records.holds.put(_reset_count(hold), expect=kept.token)
        return False

    # Withdrawals --------------------------------------------------------------------------------

    def _withdraw_released(self, hold: HeldDeletion) -> bool:
        """Withdraw the held matches of former batches; return whether that was all."""
        begun = self._records.clock.now()
        for each in self._records.holds.staying(hold.cluster, hold.source):
            if each.lot == hold.lot:
                continue
            self._withdraw(hold, each, "it was held, and released")
            if self._records.clock.now() - begun > self._settings.turn:
                return False
        return True

    def _withdraw(self, hold: HeldDeletion, staying: Staying, why: str) -> None:
        """End a match, publish that, and delete the record that it was held, in this order.

        Raises:
            StaleError: another worker evaluates it just now.
        """
        cluster, source, key = hold.cluster, hold.source, staying.key
        kept = self._records.matches.get(cluster, source, key)
        if kept:
            self._end(kept, why)
        with suppress(StaleError):
            # It may match again, and have ended again.
            self._records.holds.leave(cluster, source, key, expect=staying.token)

    def _end(self, kept: Stored[Match], why: str) -> None:
        match, token = kept.value, kept.token
        if match.held:
            match = replace(match, matching=False, digest="", error="", told=False, held=False)
            token = self._records.matches.put(match, expect=token)
        if match.matching or match.error:
            return
        # A worker that died here before has not published it.
        self._publisher.publish(follow_up(self._catalogs.current(), match, Nobody()))
        with suppress(StaleError):
            # A worker that has written it meanwhile publishes it.
            self._records.matches.delete(match.cluster, match.source, match.key, expect=token)
        note = Note("unmatched", why, context={"source": match.source})
        write(self._records, Nobody(), match.cluster, str(match.key), note)


def release_batch(hold: HeldDeletion, now: datetime, window: timedelta) -> HeldDeletion:
    """Return a hold that releases all matches held until now; later ones are held."""
    free = replace(hold, lot=uuid.uuid4().hex, since=now, until=now + window)
    return replace(_reset_count(free), gone=0, counted=0, of=0, held_at=None)


def _reset_count(hold: HeldDeletion) -> HeldDeletion:
    return replace(hold, sweeps=0, first=None, last=None, looked="")
