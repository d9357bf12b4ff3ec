"""Aggregator: computes a source's selection among all objects that match it in a cluster.

A classifier's selection is the classifier itself, if the cluster satisfies it; a health check's are
the unhealthy objects.

evaluate: a match changed ─► aggregate: matches and script ─► selection ─► deploy resync: all was
listed    ─┘

A selection has a digest of its inputs: in a burst of changes the first message computes it, and the
others have nothing to do. The cost depends on the number of matches; an event that changes no match
costs nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop import luabox
from bellhop.api.health_check import AGAIN, HealthSourceSpec
from bellhop.api.kinds import EventSource
from bellhop.api.names import classifier_of, health_check_of
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.digest import digest, exceeds_depth
from bellhop.core.gvk import ObjectKey
from bellhop.errors import MissingError, ScriptError, StaleError, TemporaryError
from bellhop.events import aggregation
from bellhop.events.reports import Objects
from bellhop.ports.store import ABSENT
from bellhop.state.concurrency import until_settled
from bellhop.state.delays import Debounce, assessment_timer
from bellhop.state.envelope import Envelope
from bellhop.state.event_recorder import Note, noting
from bellhop.state.match import Selected, Selection
from bellhop.state.messages import Aggregate, CheckHealth, Instantiate, Publisher, UpdateLabels
from bellhop.state.records import Records
from bellhop.state.table import Stored

MOST_GIVEN = 16 * 1024 * 1024
"""Of all that a script is given, as JSON: in Lua it takes about ten times as much."""

_BARE = "reference"
"""The digest of an object of which only the name counts."""

_ROUNDS = 8
_LONGEST = 1024
"""Characters of a script's message that are kept."""


class _HeldError(Exception):
    """An object that a script is to be given is held, and nothing is known of it."""


class _Inputs(Struct, frozen=True):
    """Inputs of a selection: a digest of all, and the matches with the digests of their states."""

    mark: str
    marks: tuple[tuple[str, str], ...]


class Aggregator:
    """Computes selections, and publishes their changes."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        limits: luabox.Limits,
        *,
        most_given: int = MOST_GIVEN,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._limits = limits
        self._most = most_given
        # The list of all objects is a level of its own.
        self._deepest = limits.depth - 1
        self._objects = Objects(records)
        # At least the time that reading all matches takes counts.
        self._rests = Debounce(records.clock, timedelta(0))

    @until_settled("aggregate '{message.source}' in '{message.cluster}'", _ROUNDS)
    def handle(self, message: Aggregate) -> bool:
        """Compute a source's selection from its matches, and publish its change.

        Matches are read after the selection, and again after it is written: another worker may have
        read newer matches meanwhile, and found nothing to write.

        Raises:
            StaleError: matches change faster than the script runs.
            TemporaryError: it ran just now; the message is retried after the pause.
        """
        cluster = message.cluster
        catalog = self._catalogs.current()
        source = self._source(catalog, message)
        if source is None or not self._is_evaluated(catalog, source, cluster):
            return True
        kept = self._found(cluster, source)
        inputs = self._inputs(catalog, source, cluster)
        if kept is None or kept.value.made_of != inputs.mark:
            self._rest(message)
            done = self._make(source, kept, inputs, catalog, message)
        else:
            done = kept.value.told or self._publish(kept, None, catalog, message)
        if not done:
            return False
        if inputs == self._inputs(self._catalogs.current(), source, cluster):
            return True
        if self._rests.left((cluster, source.name)):
            # Requests during the pause are done after it, by a message with all its tries.
            self._publisher.publish([message])
            return True
        return False

    def _source(self, catalog: Catalog, message: Aggregate) -> EventSource | None:
        """Return the source if it is in force in the cluster and aggregates."""
        if message.source not in catalog.sources_in(message.cluster):
            return None
        source = catalog.sources[message.source]
        return source if source.aggregation else None

    def _is_evaluated(self, catalog: Catalog, source: EventSource, cluster: str) -> bool:
        """Return whether all objects were evaluated by the source's present specification.

        A selection of only some of them may be wrong, and the resync that ends requests it again.
        """
        health = self._records.health.get(cluster).value
        return health.judgement.get(source.name) == catalog.digest(source.name)

    def _found(self, cluster: str, source: EventSource) -> Stored[Selection] | None:
        """Read the selection; one whose contents are lost is as one that was never made."""
        selections = self._records.selections
        try:
            return selections.get(cluster, source.name)
        except MissingError:
            if (head := selections.head(cluster, source.name)) is None:
                return None
            lost = replace(head.value, made=False, made_of="", told=False)
            return Stored(lost, head.token)

    def _inputs(self, catalog: Catalog, source: EventSource, cluster: str) -> _Inputs:
        marks = tuple(self._records.matches.marks(cluster, source.name))
        written = catalog.digest(source.name) if source.name in catalog.sources else ""
        return _Inputs(digest([written, marks]), marks)

    def _rest(self, message: Aggregate) -> None:
        """Let a source rest that was aggregated just now, so that a burst is one piece of work.

        Raises:
            TemporaryError: it is to rest still.
        """
        if left := self._rests.left((message.cluster, message.source)):
            raise TemporaryError(
                f"cannot aggregate '{message.source}' in '{message.cluster}' yet: it was done just"
                " now",
                delay=left,
            )

    # Making -----------------------------------------------------------------------------------

    def _make(
        self,
        source: EventSource,
        kept: Stored[Selection] | None,
        inputs: _Inputs,
        catalog: Catalog,
        message: Aggregate,
    ) -> bool:
        """Compute, write and publish a selection; False if another writer was quicker."""
        begun = self._records.clock.now()
        old = kept.value if kept else Selection(message.cluster, source.name, begun, told=True)
        with noting(self._records, message, message.cluster, "") as note:
            triggers = list(catalog.triggers_on(message.cluster, source.name))
            note.context = {"source": source.name, "triggers": triggers}
            try:
                new = self._run(source, old, inputs, note)
            except _HeldError:
                # The selected objects stay until the match is restored or released.
                return True
            self._rests.begin((message.cluster, source.name), begun)
            news = _shown(new) != _shown(old)
            note.what = note.what if news else ""
            if kept and new == old:
                return True
            try:
                token = self._put(new, old, kept.token if kept else ABSENT)
            except StaleError:
                note.what = ""
                return False
        return new.told or self._publish(Stored(new, token), old, catalog, message)

    def _run(self, source: EventSource, old: Selection, inputs: _Inputs, note: Note) -> Selection:
        """Return the selection as the script makes it; as it was, where the script fails."""
        if health_check_of(source.name):
            return self._assess(source, old, inputs, note)
        deep: list[ObjectKey] = []
        try:
            (given,) = self._given(source, old.cluster, inputs, deep)
            made = aggregation.aggregate(source, given, self._limits)
        except ScriptError as error:
            note.fail("aggregate", error)
            return self._failed(old, error)
        new = replace(
            old,
            selected=self._all_selected(source, made.resources, old, deep),
            made=True,
            made_of=inputs.mark,
            message=made.message[:_LONGEST],
            error="",
            left_out=self._left_out(deep),
            failed_at=None,
        )
        count = f"{len(new.selected)} of {len(given)}"
        texts = filter(None, (made.message, new.left_out))
        note.what, note.detail = "selected", ": ".join((count, *texts))
        if old.made and new.marks == old.marks:
            return new
        return replace(new, since=self._records.clock.now(), told=False)

    def _assess(
        self, source: EventSource, old: Selection, inputs: _Inputs, note: Note
    ) -> Selection:
        """Return the unhealthy objects that the script reports; an error of it is one, too."""
        # Not at the top: few clusters are asked by health checks.
        from bellhop.extras.health import assessment  # noqa: PLC0415

        deep: list[ObjectKey] = []
        try:
            given = self._given(source, old.cluster, inputs, deep)
            made = assessment.assess(source, given, self._limits, known=old.by_key)
        except ScriptError as error:
            note.fail("check_health", error)
            published = old.told and old.error == str(error)
            return replace(self._failed(old, error), told=published)
        if made.again:
            self._look_again(source, old.cluster)
        new = replace(
            old,
            selected=self._all_selected(source, made.resources, old, deep),
            made=True,
            made_of="" if made.again else inputs.mark,
            message=made.message,
            error="",
            left_out=self._left_out(deep),
            failed_at=None,
        )
        note.what, note.detail = "selected", made.message
        same = old.made and not old.error and new.marks == old.marks
        return new if same else replace(new, since=self._records.clock.now(), told=False)

    def _failed(self, old: Selection, error: ScriptError) -> Selection:
        """Return a selection as it was, with the error and since when there has been one."""
        at = old.failed_at if old.error else self._records.clock.now()
        return replace(old, made_of="", error=str(error), failed_at=at)

    def _look_again(self, source: EventSource, cluster: str) -> None:
        body = Aggregate(cluster, source.name).message().body
        at = self._records.clock.now() + AGAIN
        self._records.timers.set(assessment_timer(cluster, source.name), at, body)

    def _given(
        self, source: EventSource, cluster: str, inputs: _Inputs, deep: list[ObjectKey]
    ) -> Iterator[list[Mapping[str, Any]]]:
        """Yield what matches: one list, or, where a health check takes parts, as many as it needs.

        Objects nested deeper than a script may see are added to `deep` instead.

        Raises:
            ScriptError: together that is more than a script is given.
        """
        found: list[Mapping[str, Any]] = []
        size = 0
        for key, mark in inputs.marks:
            manifest = self._objects.get(cluster, source.name, ObjectKey.parse(key), mark)
            if manifest is None:
                self._refuse_held(cluster, source, key)
                continue
            if exceeds_depth(manifest, self._deepest):
                deep.append(ObjectKey.parse(key))
                continue
            size += len(json.dumps(manifest))
            if size > self._most:
                if not _in_parts(source):
                    raise self._too_much(source, len(inputs.marks))
                yield found
                found, size = [], 0
            found.append(manifest)
        yield found

    def _too_much(self, source: EventSource, count: int) -> ScriptError:
        field, cure = aggregation.SELECTION, "narrow the selectors"
        if health_check_of(source.name):
            field, cure = aggregation.HEALTH, f"{cure}, or leave out evaluateIndependently: false"
        return ScriptError(
            f"{source.name}, {field}: the {count} objects that match are together larger than"
            f" {self._most // 1024**2} MiB; {cure}"
        )

    def _refuse_held(self, cluster: str, source: EventSource, key: str) -> None:
        """See that nothing is selected among objects of which one is held and unknown.

        Raises:
            _HeldError: this one is.
        """
        kept = self._records.matches.get(cluster, source.name, ObjectKey.parse(key))
        if kept and kept.value.held:
            raise _HeldError

    def _left_out(self, deep: Sequence[ObjectKey]) -> str:
        """Return a sentence that names objects a script was not given; empty if there are none."""
        if not deep:
            return ""
        first = f"{deep[0].gvk.kind} '{'/'.join(filter(None, deep[0][1:]))}'"
        which = f"{first} and {len(deep) - 1} more objects" if deep[1:] else first
        return f"the script is not given {which}: nested deeper than {self._deepest} levels"

    def _all_selected(
        self,
        source: EventSource,
        made: Iterable[aggregation.Resource],
        old: Selection,
        deep: Iterable[ObjectKey],
    ) -> tuple[Selected, ...]:
        """Return what a script made; an object that it was not given stays what it was before."""
        found = {str(each.key): self._selected(source, each, old) for each in made}
        for key in map(str, deep):
            if key in old.by_key:
                found.setdefault(key, old.by_key[key])
        return tuple(found.values())

    def _selected(
        self, source: EventSource, made: aggregation.Resource, old: Selection
    ) -> Selected:
        """Return a resource as it is kept: without collectResources templates see none of it."""
        known = old.by_key.get(str(made.key))
        mark, manifest = (made.digest, made.manifest) if source.collect_resources else (_BARE, {})
        if known and known.digest == mark:
            return known
        since = known.since if known else self._records.clock.now()
        return Selected(made.key, mark, since, manifest)

    def _put(self, new: Selection, old: Selection, token: str) -> str:
        """Write a selection, with its objects only if these changed; return its token."""
        if old.told and token != ABSENT and new.marks == old.marks:
            return self._records.selections.put_head(new, expect=token)
        return self._records.selections.put(new, expect=token)

    # Publishing -------------------------------------------------------------------------------

    def _publish(
        self, kept: Stored[Selection], old: Selection | None, catalog: Catalog, message: Aggregate
    ) -> bool:
        """Publish a selection and record that; False if another writer was quicker.

        Without an `old` published selection everything is published, since its state is unknown.
        """
        changed = _changed(old, kept.value) if old and old.told and old.made else None
        self._publisher.publish(self._follow_up(catalog, changed, message))
        try:
            self._records.selections.mark_published(kept.value, expect=kept.token)
        except StaleError:
            return False
        return True

    def _follow_up(
        self, catalog: Catalog, changed: list[str] | None, message: Aggregate
    ) -> Iterator[Envelope]:
        if classifier_of(message.source):
            yield UpdateLabels(message.cluster)
        if health_check_of(message.source):
            yield CheckHealth(message.cluster)
        for name in catalog.triggers_on(message.cluster, message.source):
            one = catalog.triggers[name].one_for_event and changed is not None
            for key in (changed or ()) if one else ("",):
                yield Instantiate(
                    name, message.cluster, key, trace=message.trace, event_at=message.event_at
                )


def _in_parts(source: EventSource) -> bool:
    """Return whether a source's script may be given what matches in parts."""
    return isinstance(source.spec, HealthSourceSpec) and source.spec.in_parts


def _shown(selection: Selection) -> tuple[object, ...]:
    return selection.marks, selection.made, selection.error, selection.left_out


def _changed(old: Selection, new: Selection) -> list[str]:
    before, after = dict(old.marks), dict(new.marks)
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]
