"""Deploy, first half: from a report and its triggers to ClusterProfiles; and the dispatch.

The second half, one profile to one cluster, is `bellhop.stages.execute`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bellhop.engine import instantiate as engine
from bellhop.engine.catalog import Catalog, cluster_object
from bellhop.engine.digest import digest
from bellhop.engine.naming import profile_name
from bellhop.engine.render import Limits
from bellhop.errors import InvalidError, MissingError, PermanentError, StaleError
from bellhop.model.gvk import ObjectKey
from bellhop.model.kinds import ClusterProfile, ConfigMap, EventTrigger, Secret
from bellhop.model.record import Content, Profile
from bellhop.ports.queue import Message, Queue
from bellhop.ports.store import ABSENT
from bellhop.records import Kept, Records, messages
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.execute import Execute
from bellhop.stages.ledger import noting

_RETRIES = 8


class Deploy:
    """Instantiates triggers, resolves users' profiles, and hands applications to Execute."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        queue: Queue,
        execute: Execute,
        settings: Settings,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._queue = queue
        self._execute = execute
        self._limits = Limits(settings.template_seconds, settings.template_output)

    def handle(self, body: Mapping[str, Any], attempt: int) -> None:
        """Do one message's work.

        Raises:
            InvalidError: the message is of a kind nobody sends.
        """
        match body.get("do"):
            case "instantiate":
                self._instantiate(body, attempt)
            case "resolve":
                self._resolve(body, attempt)
            case "apply":
                self._execute.handle(body, attempt)
            case other:
                raise InvalidError(f"cannot do '{other}': the deploy stage knows no such message")

    # Triggers -------------------------------------------------------------------------------

    def _instantiate(self, body: Mapping[str, Any], attempt: int) -> None:
        catalog = self._catalogs.current()
        trigger = catalog.triggers.get(body["trigger"])
        problem = catalog.problems_in(body["cluster"]).get(body["trigger"])
        if problem:
            self._refuse(body, problem)
        if not body["object"]:
            self._fan_out(catalog, trigger, body)
        if trigger and trigger.one_for_event and not body["object"]:
            return
        name = profile_name(body["trigger"], body["cluster"], body["object"])
        with noting(self._records, body, body["cluster"], body["object"]) as note:
            matched = self._matched(catalog, trigger, body["cluster"], body["object"])
            if trigger is None or not matched:
                gone = self._withdraw(body["trigger"], body["cluster"], name, body, attempt)
                note.what = "withdrawn" if gone else ""
                note.context = {"trigger": body["trigger"], "profile": name}
                return
            draft = self._draft(catalog, trigger, body, name)
            draft = self._fill(draft, catalog, trigger, matched)
            old = self._write(draft, body, attempt)
            if old is None or old.digest != draft.digest or old.error != draft.error:
                note.what = "failed" if draft.error else "rendered"
                note.detail = draft.error or _count(draft.contents)
                note.context = {"trigger": trigger.name, "profile": name, "digest": draft.digest}

    def _refuse(self, body: Mapping[str, Any], problem: PermanentError) -> None:
        """Leave all as it is where nobody can say which source a trigger means."""
        with noting(self._records, body, body["cluster"], body["object"]) as note:
            note.what, note.detail = "failed", str(problem)
            note.context = {"trigger": body["trigger"]}
            raise problem

    def _fan_out(
        self, catalog: Catalog, trigger: EventTrigger | None, body: Mapping[str, Any]
    ) -> None:
        """Ask for each object's profile: those that are there, and those that should be."""
        name, cluster = body["trigger"], body["cluster"]
        keys = {profile.object for profile in self._records.profiles.heads(name, cluster)}
        if trigger and trigger.one_for_event:
            source = catalog.source_of(trigger, cluster)
            matches = self._records.matches.of(cluster, source.name) if source else ()
            keys.update(str(match.key) for match in matches if match.matching)
        keys.discard("")
        self._queue.publish(
            [
                messages.instantiate(name, cluster, key, trace=body["trace"], rang=body["rang"])
                for key in sorted(keys)
            ]
        )

    def _matched(
        self, catalog: Catalog, trigger: EventTrigger | None, cluster: str, key: str
    ) -> list[tuple[ObjectKey, Mapping[str, Any]]]:
        """Return the objects that match a trigger's source now: one, or all by key."""
        source = catalog.source_of(trigger, cluster) if trigger else None
        if trigger is None or source is None or trigger.one_for_event != bool(key):
            return []
        if key:
            match = self._records.matches.get(cluster, source.name, ObjectKey.parse(key))
            observation = self._records.observations.get(cluster, ObjectKey.parse(key))
            if not match or not match.value.matching or not observation:
                return []
            seen = observation.value
            return [(seen.key, seen.manifest)] if seen.manifest is not None else []
        matches = self._records.matches.of(cluster, source.name)
        matching = sorted(match.key for match in matches if match.matching)
        observed = (self._records.observations.get(cluster, each) for each in matching)
        return [
            (each.value.key, each.value.manifest)
            for each in observed
            if each and each.value.manifest is not None
        ]

    def _draft(
        self, catalog: Catalog, trigger: EventTrigger, body: Mapping[str, Any], name: str
    ) -> Profile:
        return Profile(
            name=name,
            trigger=trigger.name,
            cluster=body["cluster"],
            object=body["object"],
            contents=(),
            destinations=catalog.destinations(trigger, body["cluster"]),
            leaving=(),
            tier=trigger.tier,
            leaves_policies=trigger.leaves_policies,
            continue_on_conflict=trigger.continue_on_conflict,
            digest="",
        )

    def _fill(
        self,
        draft: Profile,
        catalog: Catalog,
        trigger: EventTrigger,
        matched: Sequence[tuple[ObjectKey, Mapping[str, Any]]],
    ) -> Profile:
        """Render the contents; what fails for good is kept as the profile's error."""
        source = catalog.source_of(trigger, draft.cluster)
        assert source is not None
        cluster = catalog.clusters[draft.cluster]
        root = engine.variables(
            trigger, cluster_object(cluster), matched, collect=source.collect_resources
        )
        try:
            refs = engine.resolve(
                trigger.policy_refs,
                root,
                namespace=cluster.namespace,
                limits=self._limits,
                annotations=trigger.annotations,
            )
            contents = engine.contents(
                self._holders(refs),
                root,
                always=trigger.era_always_renders,
                limits=self._limits,
                annotations=trigger.annotations,
            )
        except PermanentError as error:
            return replace(draft, error=str(error), error_code=error.code)
        return _sealed(draft, contents)

    # Users' own profiles ----------------------------------------------------------------------

    def _resolve(self, body: Mapping[str, Any], attempt: int) -> None:
        catalog = self._catalogs.current()
        declared = catalog.profiles.get(body["profile"])
        with noting(self._records, body, "", "") as note:
            note.context = {"profile": body["profile"]}
            if declared is None:
                gone = self._withdraw("", "", body["profile"], body, attempt)
                note.what = "withdrawn" if gone else ""
                return
            draft = self._declared(catalog, declared)
            old = self._write(draft, body, attempt)
            if old is None or old.digest != draft.digest or old.error != draft.error:
                note.what = "failed" if draft.error else "rendered"
                note.detail = draft.error or _count(draft.contents)

    def _declared(self, catalog: Catalog, declared: ClusterProfile) -> Profile:
        draft = Profile(
            name=declared.name,
            trigger="",
            cluster="",
            object="",
            contents=(),
            destinations=catalog.profile_destinations(declared),
            leaving=(),
            tier=declared.tier,
            leaves_policies=declared.leaves_policies,
            continue_on_conflict=declared.continue_on_conflict,
            digest="",
        )
        try:
            refs = engine.resolve(declared.policy_refs, {}, namespace="", limits=self._limits)
            contents = engine.contents(self._holders(refs), None, always=False, limits=self._limits)
        except PermanentError as error:
            return replace(draft, error=str(error), error_code=error.code)
        return _sealed(draft, contents)

    # Profiles ---------------------------------------------------------------------------------

    def _holders(
        self, refs: Sequence[engine.Ref]
    ) -> list[tuple[engine.Ref, ConfigMap | Secret | None]]:
        return [(ref, self._catalogs.holder(ref.kind, ref.namespace, ref.name)) for ref in refs]

    def _write(self, draft: Profile, body: Mapping[str, Any], attempt: int) -> Profile | None:
        """Write a profile and publish what follows; return what was there before.

        Inputs that fail change nothing that is applied: the last good contents stay.
        """
        for _ in range(_RETRIES):
            found = self._old(draft)
            old, token = (found.value, found.token) if found else (None, ABSENT)
            new = _merge(old, draft)
            if old == new and attempt == 1:
                return old
            try:
                self._records.profiles.put(new, expect=token)
            except StaleError:
                continue
            self._queue.publish(_applications(new, body))
            return old
        raise StaleError(f"cannot write profile '{draft.name}': other writers keep winning")

    def _old(self, draft: Profile) -> Kept[Profile] | None:
        """Read what a draft is to replace; contents that are lost are as good as none.

        Raises:
            MissingError: they are lost, and the draft has none to put in their place.
        """
        place = draft.trigger, draft.cluster, draft.name
        try:
            return self._records.profiles.get(*place)
        except MissingError:
            head = self._records.profiles.head(*place)
            if draft.error or head is None:
                raise
            return Kept(replace(head.value, digest=""), head.token)

    def _withdraw(
        self, trigger: str, cluster: str, name: str, body: Mapping[str, Any], attempt: int
    ) -> bool:
        """Have a profile leave all clusters; say whether it was in force until now."""
        for _ in range(_RETRIES):
            found = self._records.profiles.head(trigger, cluster, name)
            if found is None:
                return False
            old, token = found.value, found.token
            new = replace(
                old,
                contents=(),
                destinations=(),
                leaving=tuple(sorted({*old.destinations, *old.leaving})),
                digest="",
                error="",
                error_code="",
            )
            if old == new and new.leaving and attempt == 1:
                return False
            try:
                if new.leaving:
                    self._records.profiles.put(new, expect=token)
                else:
                    self._records.profiles.delete(trigger, cluster, name, expect=token)
            except StaleError:
                continue
            self._queue.publish(_applications(new, body))
            return bool(old.destinations)
        raise StaleError(f"cannot withdraw profile '{name}': other writers keep winning")


def _merge(old: Profile | None, draft: Profile) -> Profile:
    if old is None:
        return draft
    leaving = {*old.destinations, *old.leaving} - {*draft.destinations}
    draft = replace(draft, leaving=tuple(sorted(leaving)))
    if draft.error:
        return replace(draft, contents=old.contents, digest=old.digest)
    return draft


def _sealed(draft: Profile, contents: tuple[Content, ...]) -> Profile:
    described = [
        [
            content.ref,
            content.entry,
            list(content.manifests),
            content.template,
            content.dialect,
        ]
        for content in contents
    ]
    return replace(draft, contents=contents, digest=digest(described))


def _applications(profile: Profile, body: Mapping[str, Any]) -> list[Message]:
    return [
        messages.apply(
            profile.trigger,
            profile.cluster,
            profile.name,
            destination,
            trace=str(body.get("trace") or ""),
            rang=str(body.get("rang") or ""),
        )
        for destination in (*profile.destinations, *profile.leaving)
    ]


def _count(contents: Sequence[Content]) -> str:
    named = [
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for content in contents
        for manifest in content.manifests
    ]
    return ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")  # noqa: PLR2004
