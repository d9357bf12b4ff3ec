"""Evaluator: one object's newest observation against the sources in force in its cluster.

It calls no cluster and touches only the records of this object, so an event costs the same for any
number of matches; selections among all of them are computed by `aggregator`. Only those matches are
read that the object has or had by its source index. A script that exceeds a short slice of time
runs again from a message of its own, and delays no other source or object.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.errors import LostWriteError
from bellhop.events.aggregator import Aggregator
from bellhop.events.deletion_guard import DeletionGuard
from bellhop.events.expiry import Expiry
from bellhop.events.reports import follow_up
from bellhop.events.rules_match import Candidate
from bellhop.events.source_evaluator import Result, SourceEvaluator
from bellhop.logs import Log
from bellhop.ports.store import ABSENT
from bellhop.rendering.observation import bury
from bellhop.settings import Settings
from bellhop.state.concurrency import until_settled, until_written
from bellhop.state.event_recorder import Note, noting
from bellhop.state.match import Cause, Match, Observation
from bellhop.state.messages import Aggregate as Aggregation
from bellhop.state.messages import CheckDeletionGuard, Publisher, ReviewAccess
from bellhop.state.messages import Evaluate as Message
from bellhop.state.records import Records
from bellhop.state.table import Stored

_ROUNDS = 8


class Evaluator:
    """Updates the matches of one object, and publishes changes."""

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
        self._sources = SourceEvaluator(records, settings, log)
        self._expiry = Expiry(records)
        self._aggregate = Aggregator(records, catalogs, publisher, self._sources.limits)
        self._guard = DeletionGuard(records, catalogs, publisher, settings, log)

    def handle(self, message: Message | Aggregation | CheckDeletionGuard) -> None:
        """Handle a message of the stage `evaluate`.

        Raises:
            StaleError: the object changes faster than its sources are evaluated.
        """
        if isinstance(message, Aggregation):
            self._aggregate.handle(message)
        elif isinstance(message, CheckDeletionGuard):
            self._guard.check(message)
        else:
            self._evaluate(message, set())

    @until_settled("evaluate '{message.object}' in '{message.cluster}'", _ROUNDS)
    def _evaluate(self, message: Message, written: set[str]) -> bool:
        cluster, key = message.cluster, ObjectKey.parse(message.object)
        catalog = self._catalogs.current()
        self._delete_written(catalog, message, written)
        seen = self._records.observations.get(cluster, key) or self._make_tombstone(cluster, key)
        if key.gvk == CLOUD_EVENT:
            seen = self._expiry.heed(catalog, seen)
        wrote = self._update_matches(catalog, seen.value, message)
        written |= wrote
        # A message for one source concerns no matches of others.
        whole = seen.value.gone and not message.source
        ended = whole and self._records.trails.end(cluster, key)
        return not (wrote or ended) or self._is_current(catalog, seen)

    def _make_tombstone(self, cluster: str, key: ObjectKey) -> Stored[Observation]:
        """Return a tombstone for an object without observation.

        Its own may have expired before a worker withdrew its matches.
        """
        return Stored(bury(cluster, key, "", 0, self._records.clock.now()), ABSENT)

    def _delete_written(self, catalog: Catalog, message: Message, written: set[str]) -> None:
        """Delete what was written for sources that turned out to be in force no more."""
        key = ObjectKey.parse(message.object)
        there = {each.name for each in catalog.sources_of(message.cluster, key)}
        deleted = written - there
        if deleted:
            self._doubt(message.cluster, deleted)
        for source in deleted:
            self._records.matches.delete(message.cluster, source, key)
        written &= there

    @until_written("note a deleted source in '{cluster}'")
    def _doubt(self, cluster: str, sources: set[str]) -> None:
        """Have the next resync evaluate sources again, should they come back as they were.

        Raises:
            StaleError: other writers keep winning; a resync takes the matches back.
        """
        self._records.health.doubt(cluster, sources)

    def _is_current(self, catalog: Catalog, seen: Stored[Observation]) -> bool:
        """Return whether observation and catalog are still those that were evaluated.

        Another worker may have read newer ones, and found nothing to write; a match that this
        worker wrote after that would be stale.
        """
        token = self._records.observations.token(seen.value.cluster, seen.value.key)
        return token == seen.token and self._catalogs.current().revision == catalog.revision

    def _update_matches(
        self, catalog: Catalog, observation: Observation, message: Message
    ) -> set[str]:
        """Update all matches of an object; return the sources of which one was written.

        A source that never matched it and does not now has no match, and none is read.
        """
        cluster, key = observation.cluster, observation.key
        candidate = None if observation.manifest is None else Candidate(observation.manifest)
        sources = [
            each for each in catalog.sources_of(cluster, key) if message.source in ("", each.name)
        ]
        kept = self._records.trails.get(cluster, key)
        index = kept.value
        # Matches are read before the scripts run: a worker with more time may write one meanwhile.
        there = {
            each.name: self._records.matches.get(cluster, each.name, key)
            for each in sources
            if index.may_name(each.name)
        }
        result = [self._sources.evaluate(catalog, each, candidate, message) for each in sources]
        self._defer([each for each in result if each.open], message)
        leaves = [each.source.name for each in result if each.leaves]
        if leaves and (index.ended or not all(map(index.may_name, leaves))):
            self._records.trails.name(kept, leaves)
        return {
            each.source.name
            for each in result
            if (each.leaves or (each.source.name in there and not each.open))
            and self._update_match(catalog, each, there.get(each.source.name), observation, message)
        }

    def _defer(self, result: Iterable[Result], message: Message) -> None:
        """Publish messages for scripts that need more time, and for missing access reviews."""
        key = ObjectKey.parse(message.object)
        place = message.cluster, str(key.gvk), key.namespace
        late = [replace(message, source=each.source.name) for each in result if each.late]
        asks = {
            ReviewAccess(
                place[0], each.source.account, *place[1:], message.object, *_origin_of(message)
            )
            for each in result
            if each.unknown
        }
        self._publisher.publish([*late, *sorted(asks, key=lambda each: each.account)])

    def _update_match(
        self,
        catalog: Catalog,
        result: Result,
        kept: Stored[Match] | None,
        observation: Observation,
        message: Message,
    ) -> bool:
        """Update one source's match and publish it; return whether anything was written.

        A match is written as unpublished, published, and then marked so: a worker that reads an
        unpublished one, even a week later, publishes it again.
        """
        with noting(self._records, message, message.cluster, message.object) as note:
            note.before = result.took
            try:
                return self._apply_result(catalog, result, kept, observation, message, note)
            except LostWriteError:
                return self._retry_match(catalog, result, observation, message, note)

    @until_written("write the match of '{observation.key}'")
    def _retry_match(
        self,
        catalog: Catalog,
        result: Result,
        observation: Observation,
        message: Message,
        note: Note,
    ) -> bool:
        source = result.source
        kept = self._records.matches.get(observation.cluster, source.name, observation.key)
        result = self._sources.evaluate(catalog, source, result.candidate, message)
        if result.open:
            self._defer([result], message)
            return True
        return self._apply_result(catalog, result, kept, observation, message, note)

    def _apply_result(
        self,
        catalog: Catalog,
        result: Result,
        kept: Stored[Match] | None,
        observation: Observation,
        message: Message,
        note: Note,
    ) -> bool:
        source = result.source
        match = self._make_match(result, observation, kept.value if kept else None)
        if kept and match and not (observation.gone and observation.unconfirmed):
            match = self._hold_excess(kept.value, match)
        if match is None:
            return False
        changed = kept is None or match is not kept.value
        if not changed and match.told and not match.held:
            return False
        self._write(catalog, match, kept, _cause(result, kept, message), message)
        if changed and (match.error or not kept or _is_reported(match, kept.value)):
            triggers = catalog.triggers_on(observation.cluster, source.name)
            note.context = {"source": source.name, "triggers": list(triggers)}
            note.what, note.detail = _WHAT[match.matching], match.message
            if match.error:
                note.fail("evaluate", match.error)
        return changed

    def _hold_excess(self, old: Match, match: Match) -> Match:
        """Return a match as it must be, or as it was, held, where too much ends at once."""
        if match.matching or not old.matching or not self._guard.must_hold(old):
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
        """Write a match that changed, and publish it; a held match has nothing to publish."""
        token, old = (kept.token, kept.value) if kept else (ABSENT, None)
        if old and old.held and not match.held:
            self._guard.clear(old)
        if match is not old:
            token = self._put(match, token)
        if match.held and not match.error:
            self._guard.record_hold(match, cause, again=match is not old)
        if not match.told:
            self._publisher.publish(follow_up(catalog, match, message))
            self._mark_published(match, token)

    def _put(self, match: Match, token: str) -> str:
        published = match.told and match.held
        return self._records.matches.put(replace(match, told=published), expect=token)

    def _mark_published(self, match: Match, token: str) -> None:
        """Note that deploy knows; what does not match is forgotten with it."""
        if match.matching or match.error:
            self._records.matches.mark_published(match, expect=token)
        else:
            self._records.matches.delete(match.cluster, match.source, match.key, expect=token)

    def _make_match(
        self, result: Result, observation: Observation, old: Match | None
    ) -> Match | None:
        """Return the match as it must be; None where there is none and was none."""
        was = old is not None and old.matching
        # An error is never an empty answer: what matched before is kept.
        matching = was if result.error else result.matching
        if old is None and not result.leaves:
            return None
        mark = ""
        if matching:
            mark = old.digest if result.error and old else result.digest
        # A match that matches again is not held; one that cannot be evaluated stays held.
        held = bool(old and old.held and result.error)
        if old and _content_of(old) == (matching, mark, result.error, held):
            return old
        now = self._records.clock.now()
        failed_at = old.failed_at if old and old.error else now
        return Match(
            cluster=observation.cluster,
            source=result.source.name,
            key=observation.key,
            matching=matching,
            digest=mark,
            since=old.since if old and was and matching else now,
            message=result.message,
            error=result.error,
            held=held,
            failed_at=failed_at if result.error else None,
        )


def _content_of(match: Match) -> tuple[bool, str, str, bool]:
    return match.matching, match.digest, match.error, match.held


def _cause(result: Result, kept: Stored[Match] | None, message: Message) -> Cause:
    """Say what ends a match: an object that is as it was has a source that is not."""
    if message.event_at:
        return "rings"
    same = kept and result.candidate and result.digest == kept.value.digest
    return "declaration" if same else "sweep"


def _origin_of(message: Message) -> tuple[str, str]:
    return message.trace, message.event_at


def _is_reported(match: Match, old: Match) -> bool:
    """Return whether the report changed, and not only why it is as it was."""
    return (match.matching, match.digest) != (old.matching, old.digest)


_WHAT = {True: "matched", False: "unmatched"}
