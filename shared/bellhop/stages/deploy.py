"""Deploy, first half: from a report and its triggers to ClusterProfiles; and the dispatch.

The second half, one profile to one cluster, is `bellhop.stages.execute`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from bellhop.engine import instantiate as engine
from bellhop.engine.allowing import refuse_rendered
from bellhop.engine.catalog import Catalog
from bellhop.engine.difference import may_read, readers, rereaders
from bellhop.engine.digest import digest
from bellhop.engine.generating import Maker, draft_profile
from bellhop.engine.naming import GENERATED_NAMESPACE, profile_name
from bellhop.errors import (
    ConflictError,
    InvalidError,
    MissingError,
    PermanentError,
    StaleError,
    TemporaryError,
)
from bellhop.gotemplate import Limits
from bellhop.messages import Apply, Envelope, Instantiate, Publisher, Resolve
from bellhop.model.gvk import ObjectKey
from bellhop.model.kinds import ClusterProfile, ConfigMap, EventSource, EventTrigger, Secret
from bellhop.model.record import NO_OBJECT, PLAIN, Content, Profile, empty
from bellhop.ports.store import ABSENT
from bellhop.records import Kept, Records
from bellhop.records.catalogs import Catalogs
from bellhop.records.profiles import place
from bellhop.settings import Settings
from bellhop.stages.execute import Execute
from bellhop.stages.ledger import Note, Origin, noting
from bellhop.stages.objects import Objects
from bellhop.stages.reread import applied_again
from bellhop.stages.titles import Titles

_RETRIES = 8
_LOST = "lost"
_LONG = timedelta(seconds=0.1)
_RESTING = 3
"""A profile whose rendering takes long rests so many times as long before it is rendered again."""
_LONGEST_REST = timedelta(seconds=15)
"""A worker that was frozen while it rendered keeps what is newer no longer than this."""

Found = Kept[Profile] | None


@dataclass(frozen=True)
class _Inputs:
    """What decides a profile: the catalog's revision, and what matches in which state."""

    revision: int
    marks: tuple[tuple[str, str], ...] = ()
    for_all: bool = False
    reads: bool = False

    @cached_property
    def mark(self) -> str:
        """Digest the inputs of a profile for all objects; of one object they are soon rendered.

        One that reads what other triggers generate has more inputs than are known.
        """
        if not self.for_all or self.reads:
            return ""
        return digest([self.revision, self.marks])

    def made(self, profile: Profile) -> bool:
        """Say whether a profile is what these inputs make, and all its clusters know of it."""
        whole = profile.digest not in ("", _LOST) and not profile.error
        return whole and profile.told and bool(self.mark) and profile.made_of == self.mark


class Deploy:
    """Instantiates triggers, resolves users' profiles, and hands applications to Execute."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        execute: Execute,
        settings: Settings,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._execute = execute
        self._titles = Titles(records, publisher)
        self._objects = Objects(records)
        self._rests: dict[tuple[str, str, str], tuple[datetime, timedelta]] = {}
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)

    def handle(self, message: Envelope) -> None:
        """Do one message's work.

        Raises:
            InvalidError: the message is another stage's.
        """
        match message:
            case Instantiate():
                self._instantiate(message)
            case Resolve():
                self._resolve(message)
            case Apply():
                self._execute.handle(message)
            case _:
                raise InvalidError(f"cannot {message.do}: it is not the deploy stage's work")

    # Triggers -------------------------------------------------------------------------------

    def _instantiate(self, message: Instantiate) -> None:
        """Make one profile what its inputs say, and ask its clusters to follow.

        Inputs are read after the profile, and looked at again after it is written: another
        worker may have read newer ones meanwhile, and have found nothing to write.
        """
        self._rest(message)
        for _ in range(_RETRIES):
            catalog = self._catalogs.current()
            trigger = catalog.triggers.get(message.trigger)
            if trigger and trigger.paused and message.cluster in catalog.clusters:
                # Whoever ends the pause declares it anew, and all of it is asked for again.
                return
            problem = catalog.problems_in(message.cluster).get(message.trigger)
            if problem:
                self._refuse(message, problem)
            if not message.object:
                self._fan_out(catalog, trigger, message)
            name = profile_name(message.trigger, message.cluster, message.object)
            found = self._found(message.trigger, message.cluster, name)
            inputs = self._inputs(catalog, trigger, message)
            if found and inputs.made(found.value):
                return
            if not self._make(found, inputs, catalog, trigger, message):
                continue
            if inputs == self._inputs(self._catalogs.current(), trigger, message):
                return
            if not message.object and self._left_to_rest(message):
                # What came meanwhile is rendered after the rest, by a message with all its tries.
                self._publisher.publish([message])
                return
        raise StaleError(
            f"cannot instantiate '{message.trigger}' in '{message.cluster}': what it reads changes"
            " all the time"
        )

    def _rest(self, message: Instantiate) -> None:
        """Let a profile that took long to render rest, so that a burst is rendered a few times.

        Raises:
            TemporaryError: it was rendered just now; its message comes again when it has rested.
        """
        if left := self._left_to_rest(message):
            raise TemporaryError(
                f"cannot instantiate '{message.trigger}' in '{message.cluster}' yet: it was just"
                " rendered, and that takes long",
                delay=left,
            )

    def _left_to_rest(self, message: Instantiate) -> timedelta | None:
        name = (message.trigger, message.cluster, message.object)
        ended, rest = self._rests.pop(name, (None, timedelta(0)))
        if ended is None:
            return None
        left = ended + rest - self._records.clock.now()
        # A clock that was ahead must not hold this for long.
        if not timedelta(0) < left <= rest:
            return None
        self._rests[name] = ended, rest
        return left

    def _inputs(
        self, catalog: Catalog, trigger: EventTrigger | None, message: Instantiate
    ) -> _Inputs:
        """Return what decides a profile: the catalog, and what matches in which state."""
        source = catalog.source_of(trigger, message.cluster) if trigger else None
        if trigger is None or source is None or trigger.one_for_event != bool(message.object):
            return _Inputs(catalog.revision)
        if not message.object:
            marks = tuple(self._records.matches.marks(message.cluster, source.name))
            return _Inputs(catalog.revision, marks, for_all=True, reads=may_read(trigger))
        key = ObjectKey.parse(message.object)
        found = self._records.matches.get(message.cluster, source.name, key)
        if found is None or not found.value.matching:
            return _Inputs(catalog.revision)
        return _Inputs(catalog.revision, ((message.object, found.value.digest),))

    def _make(
        self,
        found: Found,
        inputs: _Inputs,
        catalog: Catalog,
        trigger: EventTrigger | None,
        message: Instantiate,
    ) -> bool:
        """Write one profile and tell its clusters; False if another writer was quicker."""
        name = profile_name(message.trigger, message.cluster, message.object)
        begun = self._records.clock.now()
        with noting(self._records, message, message.cluster, message.object) as note:
            note.context = {"trigger": message.trigger, "profile": name}
            source = catalog.source_of(trigger, message.cluster) if trigger else None
            matched = self._matched(source, message.cluster, inputs)
            if trigger is None or not matched:
                return self._withdraw(found, message, note)
            draft = draft_profile(catalog, trigger, message.cluster, message.object)
            draft = replace(draft, made_of=inputs.mark)
            filled = self._fill(draft, found, catalog, trigger, matched)
            made = self._write(found, filled, message, note)
        now = self._records.clock.now()
        if now - begun > _LONG:
            place = message.trigger, message.cluster, message.object
            self._rests[place] = now, min((now - begun) * _RESTING, _LONGEST_REST)
        return made

    def _refuse(self, message: Instantiate, problem: PermanentError) -> None:
        """Leave all as it is where nobody can say which source a trigger means."""
        with noting(self._records, message, message.cluster, message.object) as note:
            note.what, note.detail = "failed", str(problem)
            note.context = {"trigger": message.trigger}
            raise problem

    def _fan_out(
        self, catalog: Catalog, trigger: EventTrigger | None, message: Instantiate
    ) -> None:
        """Ask for each object's profile: those that are there, and those that should be."""
        name, cluster = message.trigger, message.cluster
        keys = {profile.object for profile in self._records.profiles.heads(name, cluster)}
        if trigger and trigger.one_for_event:
            source = catalog.source_of(trigger, cluster)
            matches = self._records.matches.of(cluster, source.name) if source else ()
            keys.update(str(match.key) for match in matches if match.matching)
        keys.discard("")
        self._publisher.publish(replace(message, object=key) for key in sorted(keys))

    def _matched(
        self, source: EventSource | None, cluster: str, inputs: _Inputs
    ) -> list[tuple[ObjectKey, Mapping[str, Any]]]:
        """Return the objects that match, by key; nothing of them where the source collects none."""
        if source is None:
            return []
        matching = sorted((ObjectKey.parse(key), mark) for key, mark in inputs.marks)
        if not source.collect_resources:
            return [(key, {}) for key, _ in matching]
        if not inputs.for_all:
            # Nobody renders one object twice: it is not worth keeping.
            found = [(key, self._objects.newest(cluster, key)) for key, _ in matching]
        else:
            found = [(key, self._objects.get(cluster, key, mark)) for key, mark in matching]
        return [(key, manifest) for key, manifest in found if manifest]

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
        maker = Maker(trigger, source, cluster, self._holder, self._limits)
        try:
            made = maker.generate(draft, matched)
            generated = tuple(manifest for _, manifest in made.generated)
            self._refuse_declared(generated)
        except PermanentError as error:
            if trigger.destination_cluster and found:
                draft = replace(draft, destinations=found.value.destinations)
            return _failed(draft, error)
        goes = catalog.destinations(trigger, draft.cluster, made.named)
        draft = replace(draft, destinations=goes, generated=generated, reads=made.reads)
        draft = _sealed(draft, made.contents)
        if made.named and not goes:
            return _failed(draft, _unregistered(made.named))
        return draft

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

    # Users' own profiles ----------------------------------------------------------------------

    def _resolve(self, message: Resolve) -> None:
        for _ in range(_RETRIES):
            catalog = self._catalogs.current()
            declared = catalog.profiles.get(message.profile)
            found = self._found("", "", message.profile)
            with noting(self._records, message, "", "") as note:
                note.context = {"profile": message.profile}
                if declared is None:
                    made = self._withdraw(found, message, note)
                elif declared.paused:
                    made = self._pause(found, note)
                else:
                    made = self._write(found, self._declared(catalog, declared), message, note)
            if made and self._catalogs.current().revision == catalog.revision:
                return
        raise StaleError(f"cannot resolve '{message.profile}': it changes all the time")

    def _pause(self, found: Found, note: Note) -> bool:
        """Leave a profile as it is, and its clusters; False if another writer was quicker."""
        if found is None or found.value.paused:
            return True
        try:
            paused = replace(found.value, paused=True)
            self._records.profiles.put_head(paused, expect=found.token)
        except StaleError:
            return False
        note.what = "paused"
        return True

    def _declared(self, catalog: Catalog, declared: ClusterProfile) -> Profile:
        draft = Profile(
            name=declared.name,
            trigger="",
            cluster="",
            object="",
            contents=(),
            destinations=catalog.profile_destinations(declared),
            tier=declared.tier,
            leaves_policies=declared.leaves_policies,
            continue_on_conflict=declared.continue_on_conflict,
            digest="",
            allow=declared.allow,
        )
        try:
            namespaces = {key.partition("/")[0] for key in draft.destinations}
            contents = engine.own_contents(
                declared.policy_refs, namespaces, self._holder, self._limits
            )
            refuse_rendered(declared, contents)
        except PermanentError as error:
            return _failed(draft, error)
        return _sealed(replace(draft, reads=declared.readings), contents)

    # Profiles ---------------------------------------------------------------------------------

    def _holder(self, ref: engine.Ref) -> ConfigMap | Secret | None:
        """Look a ConfigMap or Secret up: as users applied it, or as a trigger generated it."""
        declared = self._catalogs.holder(ref.kind, ref.namespace, ref.name)
        if declared is None and ref.namespace == GENERATED_NAMESPACE:
            return self._titles.read(ref.kind, ref.name)
        return declared

    def _found(self, trigger: str, cluster: str, name: str) -> Found:
        """Read a profile; contents that are lost are as good as none, where there are others."""
        profiles = self._records.profiles
        try:
            found = profiles.get(trigger, cluster, name)
        except MissingError:
            head = profiles.head(trigger, cluster, name)
            found = head and Kept(replace(head.value, digest=_LOST), head.token)
        return found and Kept(profiles.with_leaving(found.value), found.token)

    def _write(self, found: Found, draft: Profile, message: Origin, note: Note) -> bool:
        """Write a profile and ask its clusters to follow; False if another writer was quicker.

        Inputs that fail change nothing that is applied: the last good contents stay.
        """
        old, token = (found.value, found.token) if found else (None, ABSENT)
        new = _merge(old, draft)
        try:
            if old and _same(old, new):
                if old.told and old.made_of == new.made_of:
                    return True
                new = replace(old, made_of=new.made_of)
                if old.told:
                    return self._note(new, token)
                # Who wrote it may have been too late for a name.
                self._titles.keep(self._take(new))
            else:
                new = replace(new, revision=_drawn(), told=False)
                token = self._put_titled(old, new, token)
        except ConflictError as error:
            return self._write(found, _failed(draft, error), message, note)
        except StaleError:
            return False
        if old is None or (old.digest, old.error) != (new.digest, new.error):
            note.what = "failed" if draft.error else "rendered"
            note.detail = draft.error or _count(draft.contents)
            note.context = {**note.context, "digest": draft.digest}
        self._publisher.publish(_applications(new, message))
        if old is None or not old.told or old.generated != new.generated:
            self._tell_readers(new, new.titles)
        return self._note(new, token)

    def _put_titled(self, old: Profile | None, new: Profile, token: str) -> str:
        """Write a profile that has the names of what it generates; return its token.

        Raises:
            ConflictError: another profile has one of the names.
            StaleError: another writer was quicker.
        """
        taken = self._take(new)
        self._give_up(old, set(old.titles).difference(new.titles) if old else ())
        token = self._put(old, new, token)
        self._titles.keep(taken)
        return token

    def _take(self, profile: Profile) -> dict[tuple[str, str], str]:
        """Have the names of what a profile generates; what it generated last, it has already.

        Raises:
            ConflictError: another profile has one.
        """
        return self._titles.take(profile, () if profile.error else profile.titles)

    def _give_up(self, old: Profile | None, names: Iterable[tuple[str, str]]) -> None:
        """Have names no longer, and tell those who want them, and who reads what they named."""
        if old and names:
            names = sorted(names)
            self._titles.give_up(old, names)
            self._tell_readers(old, names)

    def _tell_readers(self, profile: Profile, names: Iterable[tuple[str, str]]) -> None:
        """Ask again for what refers to what a profile generates, or did.

        Its own trigger's profiles read what each of them generates itself.
        """
        keys = [(kind, GENERATED_NAMESPACE, name) for kind, name in names]
        if not keys:
            return
        catalog = self._catalogs.current()
        triggers, profiles = readers(catalog, keys)
        self._publisher.publish(applied_again(self._records, *rereaders(catalog, keys)))
        self._publisher.publish(Resolve(name) for name in sorted(profiles))
        self._publisher.publish(
            Instantiate(name, cluster)
            for name in sorted(triggers - {profile.trigger})
            for cluster in sorted(catalog.clusters)
            if catalog.source_of(catalog.triggers[name], cluster)
        )

    def _note(self, profile: Profile, token: str) -> bool:
        """Note that the clusters of a profile know of it, and what it was made of."""
        with suppress(StaleError):
            # Whoever wrote it since has told the clusters of that, or will.
            self._records.profiles.put_head(replace(profile, told=True), expect=token)
        return True

    def _withdraw(self, found: Found, message: Origin, note: Note) -> bool:
        """Have a profile leave all clusters; False if another writer was quicker."""
        if found is None:
            return True
        old, token = found.value, found.token
        # What a worker noted whose head lost, or who died, is to be left with all others.
        noted = self._records.departures.of(place(old))
        leaving = tuple(sorted({*old.destinations, *noted}))
        new = replace(
            old,
            contents=(),
            destinations=(),
            leaves=bool(leaving),
            leaving=leaving,
            digest="",
            error="",
            error_code="",
            made_of="",
            paused=False,
            generated=(),
            reads=(),
        )
        try:
            self._give_up(old, old.titles)
            if not leaving:
                self._records.profiles.delete(old.trigger, old.cluster, old.name, expect=token)
                return True
            if not _same(old, new):
                new = replace(new, revision=_drawn(), told=False)
                token = self._put(old, new, token)
                note.what = "withdrawn" if old.destinations else ""
            elif old.told:
                return True
            else:
                new = old
        except StaleError:
            return False
        self._publisher.publish(_applications(new, message))
        return self._note(new, token)

    def _put(self, old: Profile | None, new: Profile, token: str) -> str:
        """Write a profile after noting the clusters that it leaves from now on; return its token.

        Raises:
            StaleError: another writer was quicker.
        """
        leaving = set(new.leaving).difference(old.leaving if old else ())
        begun = self._records.departures.begin(place(new), leaving)
        try:
            return self._records.profiles.put(new, expect=token)
        except StaleError:
            self._records.departures.take_back(place(new), begun)
            raise


def _failed(draft: Profile, error: PermanentError) -> Profile:
    """Return a draft that holds nothing but why; what was last good stays in its place."""
    bare = replace(draft, contents=(), digest="", generated=(), reads=())
    return replace(bare, error=str(error), error_code=error.code)


def _unregistered(cluster: str) -> MissingError:
    return MissingError(
        f"cannot bring anything to cluster '{cluster}', which destinationCluster names: it is not"
        " registered; register it, or mend the name"
    )


def _same(old: Profile, new: Profile) -> bool:
    return replace(new, revision=old.revision, told=old.told, made_of=old.made_of) == old


def _drawn() -> str:
    return uuid.uuid4().hex[:16]


def _merge(old: Profile | None, draft: Profile) -> Profile:
    if old is None:
        return draft
    leaving = {*old.destinations, *old.leaving} - {*draft.destinations}
    draft = replace(draft, leaves=bool(leaving), leaving=tuple(sorted(leaving)))
    if draft.error and old.digest == _LOST:
        # Without the last good contents nobody can tell what is to stay.
        raise MissingError(f"cannot keep what '{old.name}' holds: its contents are lost")
    if draft.error:
        return replace(
            draft,
            contents=old.contents,
            digest=old.digest,
            generated=old.generated,
            reads=old.reads,
        )
    return draft


def _sealed(draft: Profile, contents: tuple[Content, ...]) -> Profile:
    described = [
        [
            content.ref,
            content.entry,
            list(content.manifests),
            content.template,
            content.dialect,
            content.namespace,
            content.missing,
            # What is brought as usual has the digest that it always had.
            *([asdict(content.how)] if content.how != PLAIN else []),
        ]
        for content in contents
    ]
    beside = [list(map(dict, draft.generated)), list(map(asdict, draft.reads))]
    told = [described, *beside] if any(beside) else described
    return replace(draft, contents=contents, digest=digest(told))


def _applications(profile: Profile, message: Origin) -> Iterator[Apply]:
    return (
        Apply(
            profile.trigger,
            profile.cluster,
            profile.name,
            destination,
            trace=message.trace,
            rang=message.rang,
        )
        for destination in (*profile.destinations, *profile.leaving)
    )


def _count(contents: Sequence[Content]) -> str:
    if empty(contents):
        return NO_OBJECT
    named = [
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for content in contents
        for manifest in content.manifests
    ]
    return ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")  # noqa: PLR2004
