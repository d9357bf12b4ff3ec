"""Evaluate: one object's newest observation against the sources in force in its cluster.

It talks to no cluster and touches the records of this one object only, so an event costs the
same however many objects match; what a script selects among all of them is `aggregator`'s. Of the
sources those are asked for their match that the object matches now, or has matched: its trail
names them. A script that does not end in a short slice of time is run again apart, by a message
of its own, and delays no other source and no other object.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from bellhop import celbox, luabox
from bellhop.api.kinds import EventSource
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import ObjectKey
from bellhop.errors import LostWriteError, ScriptError
from bellhop.events.access_reviews import may_see
from bellhop.events.aggregator import Aggregator
from bellhop.events.deletion_guard import DeletionGuard
from bellhop.events.expiry import Expiry
from bellhop.events.fan_out import follow_up
from bellhop.events.rules_match import Candidate, SlowScriptError, judge
from bellhop.events.slow_scripts import ScriptThrottle
from bellhop.logs import Log
from bellhop.ports.store import ABSENT
from bellhop.rendering.observation import bury
from bellhop.settings import Settings
from bellhop.state.concurrency import until_settled, until_written
from bellhop.state.event_recorder import Note, noting
from bellhop.state.messages import Aggregate as Aggregation
from bellhop.state.messages import CheckDeletionGuard, Publisher, ReviewAccess
from bellhop.state.messages import Evaluate as Message
from bellhop.state.record import Cause, Match, Observation
from bellhop.state.records import Records
from bellhop.state.table import Stored

_ROUNDS = 8
_LONGEST = 1024
"""Characters of a script's message that are kept."""


class _Judged(Struct, frozen=True):
    """What a source makes of an object, or what is wrong with its script, and in how many ms."""

    source: EventSource
    candidate: Candidate | None
    matching: bool = False
    message: str = ""
    error: str = ""
    took: float = 0
    late: bool = False
    """Whether its script needs more time than there is here."""
    unknown: bool = False
    """Whether nobody knows if its account may see the object."""

    @property
    def open(self) -> bool:
        """Say whether it is judged at another time."""
        return self.late or self.unknown

    @property
    def leaves(self) -> bool:
        """Say whether there is to be a match, if only for its error."""
        return self.matching or bool(self.error)

    @property
    def digest(self) -> str:
        """Say which state of the object matches: without collectResources templates see none.

        An aggregatedSelection sees all of it, and of a CloudEvent templates do.
        """
        assert self.candidate is not None
        told = self.candidate.is_event
        whole = self.source.collect_resources or self.source.aggregation or told
        return self.candidate.digest if whole else "reference"


class Evaluator:
    """Keeps the matches of one object right, and tells deploy what changed."""

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
        self._limits = luabox.Limits(seconds=settings.script_seconds, memory=settings.script_memory)
        first = min(settings.script_first_seconds, settings.script_seconds)
        self._first = self._limits._replace(seconds=first)
        self._pacing = ScriptThrottle(records, log)
        self._expiry = Expiry(records)
        self._aggregate = Aggregator(records, catalogs, publisher, self._limits)
        self._guard = DeletionGuard(records, catalogs, publisher, settings, log)

    def handle(self, message: Message | Aggregation | CheckDeletionGuard) -> None:
        """Bring the matches of one object up to date, or a report, and tell deploy.

        Raises:
            StaleError: what is judged changes faster than its sources can be run over it.
        """
        if isinstance(message, Aggregation):
            self._aggregate.handle(message)
        elif isinstance(message, CheckDeletionGuard):
            self._guard.weigh(message)
        else:
            self._bring_up_to_date(message, set())

    @until_settled("evaluate '{message.object}' in '{message.cluster}'", _ROUNDS)
    def _bring_up_to_date(self, message: Message, written: set[str]) -> bool:
        cluster, key = message.cluster, ObjectKey.parse(message.object)
        catalog = self._catalogs.current()
        self._take_back(catalog, message, written)
        seen = self._records.observations.get(cluster, key) or self._nothing(cluster, key)
        seen = self._expiry.heed(catalog, seen)
        wrote = self._bring_all(catalog, seen.value, message)
        written |= wrote
        # A message for one source concerns no matches of others.
        whole = seen.value.gone and not message.source
        ended = whole and self._records.trails.end(cluster, key)
        return not (wrote or ended) or self._stands(catalog, seen)

    def _nothing(self, cluster: str, key: ObjectKey) -> Stored[Observation]:
        """Return the observation of an object of which nothing is known.

        Its tombstone may have ended before anybody came to withdraw what it had brought.
        """
        return Stored(bury(cluster, key, "", 0, self._records.clock.now()), ABSENT)

    def _take_back(self, catalog: Catalog, message: Message, written: set[str]) -> None:
        """Delete what was written for sources that turned out to be in force no more."""
        key = ObjectKey.parse(message.object)
        there = {each.name for each in catalog.sources_of(message.cluster, key)}
        gone = written - there
        if gone:
            self._doubt(message.cluster, gone)
        for source in gone:
            self._records.matches.delete(message.cluster, source, key)
        written &= there

    @until_written("note a deleted source in '{cluster}'")
    def _doubt(self, cluster: str, sources: set[str]) -> None:
        """Have the next resync evaluate sources again, should they come back as they were.

        Raises:
            StaleError: other writers keep winning; a resync takes the matches back.
        """
        self._records.health.doubt(cluster, sources)

    def _stands(self, catalog: Catalog, seen: Stored[Observation]) -> bool:
        """Say whether what was judged is still what is there.

        Another worker may have seen something newer, and have found nothing to write; what this
        one wrote after it must not stay.
        """
        token = self._records.observations.token(seen.value.cluster, seen.value.key)
        return token == seen.token and self._catalogs.current().revision == catalog.revision

    def _bring_all(self, catalog: Catalog, observation: Observation, message: Message) -> set[str]:
        """Bring all matches of an object up to date; return the sources of which one was written.

        What it has neither matched nor matches now has no match, and is not asked for.
        """
        cluster, key = observation.cluster, observation.key
        candidate = None if observation.manifest is None else Candidate(observation.manifest)
        sources = [
            each for each in catalog.sources_of(cluster, key) if message.source in ("", each.name)
        ]
        kept = self._records.trails.get(cluster, key)
        trail = kept.value
        # What is there is read before the scripts run: it may be of somebody who had more time.
        there = {
            each.name: self._records.matches.get(cluster, each.name, key)
            for each in sources
            if trail.may_name(each.name)
        }
        judged = [self._judge(catalog, each, candidate, message) for each in sources]
        self._put_off([each for each in judged if each.open], message)
        leaves = [each.source.name for each in judged if each.leaves]
        if leaves and (trail.ended or not all(map(trail.may_name, leaves))):
            self._records.trails.name(kept, leaves)
        return {
            each.source.name
            for each in judged
            if (each.leaves or (each.source.name in there and not each.open))
            and self._bring(catalog, each, there.get(each.source.name), observation, message)
        }

    def _put_off(self, judged: Iterable[_Judged], message: Message) -> None:
        """Have sources judge the object apart, where their scripts get all their time.

        Or once their accounts' rights are known.
        """
        key = ObjectKey.parse(message.object)
        place = message.cluster, str(key.gvk), key.namespace
        late = [replace(message, source=each.source.name) for each in judged if each.late]
        asks = {
            ReviewAccess(place[0], each.source.account, *place[1:], message.object, *_of(message))
            for each in judged
            if each.unknown
        }
        self._publisher.publish([*late, *sorted(asks, key=lambda each: each.account)])

    def _judge(
        self, catalog: Catalog, source: EventSource, candidate: Candidate | None, message: Message
    ) -> _Judged:
        sees = self._sees(source, candidate, message)
        if not sees:
            return _Judged(source, candidate, unknown=sees is None)
        # The kernel is asked for that of the thread alone, which takes as long as a label filter.
        begun, used = time.perf_counter(), celbox.thread_time() if source.scripted else 0.0
        digest = catalog.digest(source.name)
        limits: luabox.Limits | None = self._limits
        if not message.source:
            limits = None if self._pacing.is_slow(source.name, digest) else self._first
        matching, said, error, run, late = False, "", "", False, False
        try:
            ruling = judge(source, candidate, limits)
            matching, said, run = ruling.matching, ruling.message[:_LONGEST], ruling.run
        except SlowScriptError as failure:
            late = limits != self._limits
            error = "" if late else str(failure)
        except ScriptError as failure:
            error = str(failure)
        if used and limits and celbox.thread_time() - used > self._first.seconds:
            self._pacing.exceeded(source.name, digest)
        elif run:
            self._pacing.ended(source.name, digest)
        took = (time.perf_counter() - begun) * 1000
        return _Judged(source, candidate, matching, said, error, took, late)

    def _sees(
        self, source: EventSource, candidate: Candidate | None, message: Message
    ) -> bool | None:
        """Say whether a source may see an object that is there; None where nobody knows."""
        if not source.account or candidate is None:
            return True
        key = ObjectKey.parse(message.object)
        return may_see(self._records, message.cluster, source.account, key, asked=message.asked)

    def _bring(
        self,
        catalog: Catalog,
        judged: _Judged,
        kept: Stored[Match] | None,
        observation: Observation,
        message: Message,
    ) -> bool:
        """Bring one source's match up to date and tell of it; say whether anything was written.

        A match is written as untold, told of, and then marked so: whoever finds it untold, be it
        in a week, tells of it again.
        """
        with noting(self._records, message, message.cluster, message.object) as note:
            note.before = judged.took
            try:
                return self._bring_read(catalog, judged, kept, observation, message, note)
            except LostWriteError:
                return self._bring_again(catalog, judged, observation, message, note)

    @until_written("write the match of '{observation.key}'")
    def _bring_again(
        self,
        catalog: Catalog,
        judged: _Judged,
        observation: Observation,
        message: Message,
        note: Note,
    ) -> bool:
        source = judged.source
        kept = self._records.matches.get(observation.cluster, source.name, observation.key)
        judged = self._judge(catalog, source, judged.candidate, message)
        if judged.open:
            self._put_off([judged], message)
            return True
        return self._bring_read(catalog, judged, kept, observation, message, note)

    def _bring_read(
        self,
        catalog: Catalog,
        judged: _Judged,
        kept: Stored[Match] | None,
        observation: Observation,
        message: Message,
        note: Note,
    ) -> bool:
        source = judged.source
        match = self._match(judged, observation, kept.value if kept else None)
        if kept and match and not (observation.gone and observation.unconfirmed):
            match = self._guarded(kept.value, match)
        if match is None:
            return False
        changed = kept is None or match is not kept.value
        if not changed and match.told and not match.held:
            return False
        self._write(catalog, match, kept, _cause(judged, kept, message), message)
        if changed and (match.error or not kept or _tells(match, kept.value)):
            triggers = catalog.triggers_on(observation.cluster, source.name)
            note.context = {"source": source.name, "triggers": list(triggers)}
            note.what, note.detail = _WHAT[match.matching], match.message
            if match.error:
                note.fail("evaluate", match.error)
        return changed

    def _guarded(self, old: Match, match: Match) -> Match:
        """Return a match as it must be, or as it was, held, where too much ends at once."""
        if match.matching or not old.matching or not self._guard.keeps(old):
            return match
        return old if old.held else replace(old, held=True)

    def _write(
        self,
        catalog: Catalog,
        match: Match,
        kept: Stored[Match] | None,
        cause: Cause,
        message: Message,
    ) -> None:
        """Write a match that changed, and tell of it; of one that is held there is nothing new.

        Raises:
            StaleError: another writer was quicker.
        """
        token, old = (kept.token, kept.value) if kept else (ABSENT, None)
        if old and old.held and not match.held:
            self._guard.clear(old)
        if match is not old:
            token = self._put(match, token)
        if match.held and not match.error:
            self._guard.stand(match, cause, anew=match is not old)
        if not match.told:
            self._publisher.publish(follow_up(catalog, match, message))
            self._mark(match, token)

    def _put(self, match: Match, token: str) -> str:
        told = match.told and match.held
        return self._records.matches.put(replace(match, told=told), expect=token)

    def _mark(self, match: Match, token: str) -> None:
        """Note that deploy knows; what does not match is forgotten with it."""
        if match.matching or match.error:
            self._records.matches.put(replace(match, told=True), expect=token)
        else:
            self._records.matches.delete(match.cluster, match.source, match.key, expect=token)

    def _match(self, judged: _Judged, observation: Observation, old: Match | None) -> Match | None:
        """Return the match as it must be; None where there is none and was none."""
        was = old is not None and old.matching
        # An error is never an empty answer: what matched before is kept.
        matching = was if judged.error else judged.matching
        if old is None and not judged.leaves:
            return None
        mark = ""
        if matching:
            mark = old.digest if judged.error and old else judged.digest
        # What matches again is held no more; of what cannot be judged nobody can say that.
        held = bool(old and old.held and judged.error)
        if old and _said(old) == (matching, mark, judged.error, held):
            return old
        now = self._records.clock.now()
        failed_at = old.failed_at if old and old.error else now
        return Match(
            cluster=observation.cluster,
            source=judged.source.name,
            key=observation.key,
            matching=matching,
            digest=mark,
            since=old.since if old and was and matching else now,
            message=judged.message,
            error=judged.error,
            held=held,
            failed_at=failed_at if judged.error else None,
        )


def _said(match: Match) -> tuple[bool, str, str, bool]:
    return match.matching, match.digest, match.error, match.held


def _cause(judged: _Judged, kept: Stored[Match] | None, message: Message) -> Cause:
    """Say what ends a match: an object that is as it was has a source that is not."""
    if message.rang:
        return "rings"
    same = kept and judged.candidate and judged.digest == kept.value.digest
    return "declaration" if same else "sweep"


def _of(message: Message) -> tuple[str, str]:
    return message.trace, message.rang


def _tells(match: Match, old: Match) -> bool:
    """Say whether the report changed, and not only why it is as it was."""
    return (match.matching, match.digest) != (old.matching, old.digest)


_WHAT = {True: "matched", False: "unmatched"}
