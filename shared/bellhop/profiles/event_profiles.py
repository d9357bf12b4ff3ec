"""Deploy, from a report and its triggers to the profiles that they generate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.kinds import EventTrigger
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.clusters.pause import Pauses
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import profile_name
from bellhop.declarations.diff import reads_generated
from bellhop.errors import ConflictError, MissingError, PermanentError, TemporaryError
from bellhop.events.reports import Reports, inputs_digest
from bellhop.gotemplate import Limits
from bellhop.profiles.cloud_event_deletion import CloudEventDeletion
from bellhop.profiles.drafts import LOST, complete_draft, fail_draft
from bellhop.profiles.loops import Loops
from bellhop.profiles.writer import Found, Writer
from bellhop.rendering.cloud_event_actions import CREATE, Matched
from bellhop.rendering.generator import Generator, draft_profile
from bellhop.rendering.inputs import Inputs
from bellhop.rendering.manifests import NotObjectsError
from bellhop.settings import Settings
from bellhop.state.concurrency import until_settled
from bellhop.state.delays import Debounce
from bellhop.state.event_recorder import noting
from bellhop.state.messages import Instantiate, Publisher
from bellhop.state.profile import Profile
from bellhop.state.records import Records

_LONG = timedelta(seconds=0.1)
"""A profile whose rendering takes longer rests before it is rendered again."""


class _Inputs(Struct, frozen=True, dict=True):
    """The inputs of a profile: the catalog's revision, and the matches with their states."""

    revision: int
    marks: tuple[tuple[str, str], ...] = ()
    for_all: bool = False
    reads: bool = False

    @cached_property
    def digest(self) -> str:
        """Digest the inputs of a profile for all objects, or return the digest of its one object.

        A profile that reads what other triggers generate has more inputs than are known.
        """
        if not self.for_all:
            return self.marks[0][1] if self.marks else ""
        return "" if self.reads else inputs_digest(self.revision, self.marks)

    def made(self, profile: Profile) -> bool:
        """Return whether a profile for all objects is what these inputs make, and is published.

        A profile of one object is soon rendered again, and the files that it reads may differ.
        """
        whole = profile.digest not in ("", LOST) and not profile.error
        known = self.for_all and bool(self.digest)
        return whole and profile.told and known and profile.made_of == self.digest


class Instantiation:
    """Makes the profiles of triggers what their inputs say."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        writer: Writer,
        settings: Settings,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._writer = writer
        self._reports = Reports(records)
        self._rests = Debounce(records.clock, _LONG)
        self._loops = Loops(records)
        self._pauses = Pauses(records)
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        self._concluding = CloudEventDeletion(records, publisher, self._limits)

    def instantiate(self, message: Instantiate) -> None:
        """Make one profile what its inputs say, and ask its clusters to follow.

        Inputs are read after the profile, and looked at again after it is written: another
        worker may have read newer ones meanwhile, and have found nothing to write.
        """
        self._rest(message)
        self._instantiate(message, profile_name(message.trigger, message.cluster, message.object))

    @until_settled("instantiate '{message.trigger}' in '{message.cluster}'")
    def _instantiate(self, message: Instantiate, name: str) -> bool:
        # Before the catalog: see `note_endings`.
        found = self._writer.found(message.trigger, message.cluster, name)
        catalog = self._catalogs.current()
        trigger = catalog.triggers.get(message.trigger)
        if trigger and self._is_paused(catalog, trigger, message.cluster):
            return True
        problem = catalog.problems_in(message.cluster).get(message.trigger)
        if problem:
            self._refuse(message, problem)
        source = catalog.source_of(trigger, message.cluster) if trigger else None
        if source and self._reports.awaited(message.cluster, source):
            # The worker that makes the report requests this again: until then nothing matches.
            return True
        if not message.object:
            self._fan_out(catalog, trigger, message)
        inputs = self._inputs(catalog, trigger, message)
        if found and inputs.made(found.value):
            return True
        if not self._make(found, inputs, catalog, trigger, message):
            return False
        if inputs == self._inputs(self._catalogs.current(), trigger, message):
            return True
        if not message.object and self._rests.left(_place(message)):
            # What came meanwhile is rendered after the rest, by a message with all its tries.
            self._publisher.publish([message])
            return True
        return False

    def _is_paused(self, catalog: Catalog, trigger: EventTrigger, cluster: str) -> bool:
        """Say whether events of a cluster make nothing now, for a trigger or for all.

        The end of the pause is a new declaration, and requests all of it again.
        """
        source = catalog.clusters.get(cluster)
        if source is None:
            return False
        pauses = source.spec.get("paused") or source.spec.get("activeWindow")
        return trigger.paused or bool(pauses and self._pauses.keeps_from(trigger.name, source))

    def _rest(self, message: Instantiate) -> None:
        """Let a profile that took long to render rest, so that a burst is rendered a few times.

        Raises:
            TemporaryError: it was rendered just now; its message comes again when it has rested.
        """
        if left := self._rests.left(_place(message)):
            raise TemporaryError(
                f"cannot instantiate '{message.trigger}' in '{message.cluster}' yet: it was just"
                " rendered, and that takes long",
                delay=left,
            )

    def _inputs(
        self, catalog: Catalog, trigger: EventTrigger | None, message: Instantiate
    ) -> _Inputs:
        """Return what decides a profile: the catalog, and what matches in which state."""
        source = catalog.source_of(trigger, message.cluster) if trigger else None
        if trigger is None or source is None or trigger.one_for_event != bool(message.object):
            return _Inputs(catalog.revision)
        if not message.object:
            marks = self._reports.marks(message.cluster, source)
            return _Inputs(catalog.revision, marks, for_all=True, reads=reads_generated(trigger))
        mark = self._reports.mark(message.cluster, source, message.object)
        return _Inputs(catalog.revision, ((message.object, mark),) if mark else ())

    def _make(
        self,
        found: Found,
        inputs: _Inputs,
        catalog: Catalog,
        trigger: EventTrigger | None,
        message: Instantiate,
    ) -> bool:
        """Write and publish one profile; False if another writer was quicker."""
        name = profile_name(message.trigger, message.cluster, message.object)
        begun = self._records.clock.now()
        with noting(self._records, message, message.cluster, message.object) as note:
            note.context = {"trigger": message.trigger, "profile": name}
            source = catalog.source_of(trigger, message.cluster) if trigger else None
            matched: Matched = []
            if source:
                given = message.cluster, source, inputs.marks
                matched = found_now = self._reports.objects(*given, many=inputs.for_all)
                if self._reports.lacks(*given, found_now):
                    # It stays as it is until that comes back, or is released.
                    return True
            wrong: PermanentError | None = None
            try:
                if trigger and source and trigger.cloud_event_action != CREATE:
                    stands = self._concluding.select_matches(catalog, trigger, message, matched)
                    if stands is None:
                        return True
                    matched = stands
            except PermanentError as error:
                wrong = error
            if trigger is None or not matched:
                return self._writer.withdraw(
                    found,
                    message,
                    note,
                    trigger,
                    catalog,
                    undeclared=source is None,
                )
            assert source is not None
            turns = self._loops.turns(message.cluster, matched, catalog.declared)
            if self._loops.holds(message, name, source.name, turns, note):
                return True
            draft = draft_profile(catalog, trigger, message.cluster, message.object)
            draft = replace(
                draft,
                made_of=inputs.digest,
                turns=turns.times + 1,
                turning=turns.since,
                turned_by=catalog.declared,
            )
            filled = (
                fail_draft(draft, wrong)
                if wrong
                else self._fill(draft, found, catalog, trigger, matched)
            )
            note.context = {**note.context, "profile": filled.shown}
            made = self._writer.write(found, filled, message, note)
        self._rests.begin(_place(message), begun)
        return made

    def _refuse(self, message: Instantiate, problem: PermanentError) -> None:
        """Leave all as it is where nobody can say which source a trigger means."""
        with noting(self._records, message, message.cluster, message.object) as note:
            note.context = {"trigger": message.trigger}
            note.fail("render", problem)
            raise problem

    def _fan_out(
        self, catalog: Catalog, trigger: EventTrigger | None, message: Instantiate
    ) -> None:
        """Ask for each object's profile: those that are there, and those that should be."""
        name, cluster = message.trigger, message.cluster
        keys = {profile.object for profile in self._records.profiles.heads(name, cluster)}
        if trigger and trigger.one_for_event:
            source = catalog.source_of(trigger, cluster)
            marks = self._reports.marks(cluster, source) if source else ()
            keys.update(key for key, _ in marks)
        keys.discard("")
        self._publisher.publish(replace(message, object=key) for key in sorted(keys))

    def _fill(
        self,
        draft: Profile,
        found: Found,
        catalog: Catalog,
        trigger: EventTrigger,
        matched: Sequence[tuple[ObjectKey, Mapping[str, Any]]],
    ) -> Profile:
        """Render the contents; what fails for good is kept as the profile's error.

        Where nobody can say which cluster is named, those that have it keep it.
        """
        source = catalog.source_of(trigger, draft.cluster)
        assert source is not None
        cluster = catalog.clusters[draft.cluster]
        inputs = Inputs(self._writer.holder, trigger, source)
        maker = Generator(trigger, source, cluster, inputs.find, self._limits)
        try:
            made = maker.generate(draft, matched)
            generated = tuple(manifest for _, manifest in made.generated)
            self._refuse_declared(generated)
            self._refuse_own(catalog, made.title)
        except PermanentError as error:
            if trigger.destination_cluster and found:
                draft = replace(draft, destinations=found.value.matched)
            failed = fail_draft(draft, error)
            if isinstance(error, NotObjectsError):
                return replace(failed, generated=maker.render_instances(draft, matched))
            return failed
        goes = catalog.destinations(trigger, draft.cluster, made.named)
        draft = replace(draft, destinations=goes, generated=generated, reads=made.reads)
        draft = replace(draft, recipe=inputs.noted, title=made.title, jobs=made.jobs)
        if made.title:
            # Who comes after it names it by that, and may be declared at any time.
            draft = replace(draft, rollout=replace(draft.rollout, awaited=True))
        draft = complete_draft(draft, made.contents)
        if made.named and not goes:
            return fail_draft(draft, _unregistered(made.named))
        return draft

    def _refuse_own(self, catalog: Catalog, title: str) -> None:
        """Refuse to give a profile the name of a ClusterProfile that users declared.

        Raises:
            ConflictError: one is there by that name.
        """
        if title in catalog.profiles:
            raise ConflictError(
                f"cannot name the ClusterProfile '{title}': one of that name was applied; delete"
                " it, or write another profileNameFormat"
            )

    def _refuse_declared(self, generated: Sequence[Mapping[str, Any]]) -> None:
        """Refuse to generate what users declared.

        Raises:
            ConflictError: something is there by that name.
        """
        for each in generated:
            kind, metadata = each["kind"], each["metadata"]
            if self._catalogs.holder(kind, metadata["namespace"], metadata["name"]):
                raise ConflictError(
                    f"cannot generate {kind} '{metadata['namespace']}/{metadata['name']}': one of"
                    " that name was applied; delete it, or give the generator another nameFormat"
                )


def _unregistered(cluster: str) -> MissingError:
    return MissingError(
        f"cannot deploy anything to cluster '{cluster}', which destinationCluster names: it is"
        " not registered; register it, or correct the name"
    )


def _place(message: Instantiate) -> tuple[str, str, str]:
    return message.trigger, message.cluster, message.object
