"""Explanation of one object: sources that name its kind, triggers, profiles, destinations.

object ─► sources that name its kind ─► triggers that name these ─► profiles ─► destinations
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from bellhop.api.kinds import EventSource, EventTrigger
from bellhop.api.names import asker
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.core.identity import profile_name
from bellhop.diagnosis import cluster_status, names
from bellhop.diagnosis.condition import Condition, Status
from bellhop.diagnosis.explain.evaluation import ObjectEvaluator
from bellhop.diagnosis.explain.result import Chain, Explanation, Results, Serves
from bellhop.diagnosis.names import find_nearest
from bellhop.diagnosis.object_view import ObjectView, find_similar, read_object_view
from bellhop.diagnosis.releases import find_deployer
from bellhop.diagnosis.selection_gaps import (
    KnownRefs,
    describe_missing_ref,
    find_cluster_gap,
    find_name_gap,
    find_source_gap,
    list_missing_refs,
)
from bellhop.errors import InvalidError
from bellhop.installation import Installation

STEPS = ("cluster", "object", "source", "trigger", "profile", "destination")
_DONE = "nothing to do: everything is deployed"


def explain_object(
    here: Installation, cluster: str, kind: str, namespace: str, name: str, serves: Serves
) -> Explanation:
    """Explain an object, from its last observation to what was applied.

    Raises:
        InvalidError: the kind is in several groups, or in no namespace.
        MissingError: there is no such cluster, or the kind is unknown.
    """
    key = names.resolve_cluster(here, cluster)
    gvk, *others = names.resolve_kinds(here, key, kind)
    namespaced = names.is_namespaced(gvk)
    if namespaced is False and namespace:
        raise InvalidError(f"{gvk.kind} objects are in no namespace; write only '{name}'")
    place = namespace or ("default" if namespaced else "")
    about = ObjectKey(gvk, place, name)
    if namespaced is None and not namespace and not here.records.observations.head(key, about):
        # An unknown kind may be in namespaces or not.
        about = about._replace(namespace="default")
    versions = [about._replace(gvk=each) for each in others]
    return _ObjectExplanation(here, key, about, versions, serves).explain()


class _ObjectExplanation:
    """The explanation of one object."""

    def __init__(
        self,
        here: Installation,
        cluster: str,
        key: ObjectKey,
        versions: list[ObjectKey],
        serves: Serves,
    ) -> None:
        self._here = here
        self._cluster = cluster
        self._key = key
        self._versions = versions
        self._catalog = here.catalogs.known()
        self._holders = KnownRefs(here)
        self._chain = Chain(f"{names.object_name(key)} in {cluster}", STEPS)
        self._results = Results(here, self._catalog, self._chain, serves)
        self._evaluator: ObjectEvaluator

    def explain(self) -> Explanation:
        self._add_cluster()
        view = read_object_view(self._here, self._cluster, self._key)
        self._evaluator = ObjectEvaluator(
            self._here, self._cluster, self._key, self._versions, self._results, view.manifest
        )
        identity = self._key.identity
        naming_it = [
            source
            for name, source in sorted(self._catalog.sources.items())
            if not asker(name)
            and any((each.group, each.kind) == identity[:2] for each in source.kinds)
            and (self._key.gvk != CLOUD_EVENT or source.name == self._key.namespace)
        ]
        in_force = {*self._catalog.sources_in(self._cluster)}
        watched = [source for source in naming_it if source.name in in_force]
        self._add_object(view, watched=bool(watched))
        taken = self._add_sources(view, naming_it, in_force)
        profile, how = find_deployer(self._here, self._cluster, identity)
        if not profile:
            return self._chain.end(_DONE)
        return self._end_deployed(view, profile, how, taken=taken)

    def _end_deployed(
        self, view: ObjectView, profile: str, how: str, *, taken: bool
    ) -> Explanation:
        """End the chain of an object that Bellhop deployed, which need not be an event."""
        if not taken:
            self._chain.drop_cures("cluster")
        missing = view.there is None and not view.blind
        cure = f"`bellhop redeploy {profile} --cluster {self._cluster}`" if missing else ""
        state: Status = "failed" if missing else "yes"
        self._chain.add("object", names.object_name(self._key), state, how, cure)
        return self._chain.end(_DONE if taken else f"nothing; {how}")

    # The cluster and the object -----------------------------------------------------------------

    def _add_cluster(self) -> None:
        self._chain.links += cluster_status.list_obstacles(self._here, self._cluster)
        if refused := cluster_status.describe_refusals(self._here, self._cluster):
            cure = f"`bellhop register cluster` for '{self._cluster}' again"
            self._chain.add("cluster", self._cluster, "failed", refused, cure)

    def _add_object(self, view: ObjectView, *, watched: bool) -> None:
        name, kept = names.object_name(self._key), view.kept
        if view.lost:
            self._chain.add("object", name, "waits", view.lost, self._evaluator.advise_resync())
        elif kept is None:
            self._add_unseen(view, watched=watched)
        elif view.behind:
            was = "gone" if kept.gone else f"version {kept.resource_version}"
            now = "gone" if view.there is None else f"version {_version_of(view.there)}"
            said = f"last seen {self._age(view)} ago as {was}, and it is {now} in the cluster"
            self._chain.add("object", name, "waits", said, self._evaluator.advise_resync())
        elif kept.gone:
            said = f"it was deleted, noticed {self._age(view)} ago{_describe_blindness(view)}"
            self._chain.add("object", name, "no", said, "create it again, if it is to match")
        else:
            seen = f"version {kept.resource_version}, seen {self._age(view)} ago"
            same = _describe_blindness(view) or ", and so it is in the cluster now"
            self._chain.add("object", name, "yes", seen + same)

    def _add_unseen(self, view: ObjectView, *, watched: bool) -> None:
        name = names.object_name(self._key)
        if view.there is not None:
            if watched:
                said = "it is in the cluster, and Bellhop has received no event of it"
                self._chain.add("object", name, "waits", said, self._evaluator.advise_resync())
            else:
                said = "it is in the cluster; no source in force there names its kind"
                self._chain.add("object", name, "no", said)
            return
        near = find_similar(self._here, self._cluster, self._key)
        hint = f"; did you mean '{near}'?" if near else ""
        if view.blind:
            said = f"Bellhop has received no event of it{_describe_blindness(view)}{hint}"
        else:
            said = f"there is none in the cluster{hint}"
        cure = f"look for it under its name '{near}'" if near else "create it, or correct its name"
        self._chain.add("object", name, "failed" if not view.blind else "no", said, cure)

    def _age(self, view: ObjectView) -> str:
        assert view.kept
        seconds = (self._here.records.clock.now() - view.kept.seen_at).total_seconds()
        for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
            if seconds >= 2 * size:
                return f"{seconds // size:.0f} {unit}"
        return f"{max(seconds, 0):.0f} s"

    # Sources ------------------------------------------------------------------------------------

    def _add_sources(
        self, view: ObjectView, naming_it: list[EventSource], in_force: set[str]
    ) -> bool:
        """Add each source that names the kind; return whether one takes the object."""
        by_source: dict[str, list[EventTrigger]] = {}
        for trigger in self._catalog.triggers.values():
            by_source.setdefault(trigger.event_source_name, []).append(trigger)
        links, taken = [], []
        for source in naming_it:
            triggers = by_source.get(source.name, [])
            if source.name not in in_force:
                links.append(self._describe_inactive(source, triggers))
                continue
            link = self._evaluator.describe(source, view)
            links.append(link)
            if link.status in {"yes", "waits"}:
                taken.append((source, triggers))
        links.sort(key=lambda link: link.about not in in_force)
        self._chain.add_all(links, f"sources name {self._key.gvk.kind}, and do not take it")
        declared = [name for name in self._catalog.sources if not asker(name)]
        others = len(declared) - len(naming_it)
        if others:
            self._chain.note("source", f"{others} name other kinds")
        if not naming_it:
            said = f"no EventSource names {self._key.gvk.kind}"
            cure = f"apply an EventSource that names {self._key.gvk}, and a trigger that names it"
            self._chain.add("source", "-", "no", said, cure)
        self._add_nameless(naming_it, by_source)
        for source, triggers in taken:
            self._add_triggers(source, triggers)
        return bool(taken)

    def _describe_inactive(self, source: EventSource, triggers: list[EventTrigger]) -> Condition:
        if not triggers:
            said = "it is not in force here: no trigger names it"
            cure = f"apply an EventTrigger with eventSourceName: {source.name}"
            return Condition("source", source.name, "no", said, cure)
        cluster = self._catalog.clusters[self._cluster]
        lacks = [
            (each, lack)
            for each in triggers
            if (lack := find_cluster_gap(each, cluster, self._catalog))
        ]
        if not lacks:
            said = "it is not in force here: the trigger that names it fails"
            return Condition("source", source.name, "no", said)
        trigger, lack = min(lacks, key=lambda each: each[1].message.count(" and "))
        more = f"; {len(lacks) - 1} more triggers name it, and miss it too" if lacks[1:] else ""
        said = (
            f"it is not in force here: {trigger.kind} '{trigger.name}' does not select the"
            f" cluster: {lack.message}{more}"
        )
        return Condition("source", source.name, "no", said, lack.cure)

    # Triggers -----------------------------------------------------------------------------------

    def _add_nameless(
        self, naming_it: list[EventSource], by_source: Mapping[str, list[EventTrigger]]
    ) -> None:
        """Add the triggers whose source does not exist.

        If a trigger names a source of the kind, the others keep their cure only where they probably
        mean such a source, too.
        """
        beside = any(by_source.get(each.name) for each in naming_it)
        names = [each.name for each in naming_it]
        found = []
        for trigger in self._catalog.triggers.values():
            link = self._describe_nameless(trigger)
            if link and beside and not find_nearest(trigger.event_source_name, names):
                link = replace(link, cure="")
            found += [link] if link else []
        self._chain.add_all(found, "triggers name a source that is not there")

    def _describe_nameless(self, trigger: EventTrigger) -> Condition | None:
        if not self._catalog.watches(trigger, self._cluster):
            return None
        if lack := find_name_gap(trigger, self._cluster, self._catalog):
            return Condition("trigger", trigger.name, "failed", *lack)
        if lack := find_source_gap(trigger, self._catalog):
            said = f"it selects the cluster, and {lack.message}"
            return Condition("trigger", trigger.name, "no", said, lack.cure)
        return None

    def _add_triggers(self, source: EventSource, triggers: list[EventTrigger]) -> None:
        cluster = self._catalog.clusters[self._cluster]
        joined = self._catalog.triggers_on(self._cluster, source.name)
        links = []
        for trigger in triggers:
            lack = find_cluster_gap(trigger, cluster, self._catalog)
            if lack:
                said = f"it names '{source.name}', and does not select the cluster: {lack.message}"
                links.append(Condition("trigger", trigger.name, "no", said, lack.cure))
        for name in joined:
            links += self._describe_trigger(source, name)
        self._chain.add_all(links, f"triggers name '{source.name}'")
        for name in joined:
            about = str(self._evaluator.find_key(source)) if self._is_for_one(name) else ""
            made = profile_name(name, self._cluster, about)
            self._results.add(self._catalog.triggers[name], self._cluster, made)

    def _describe_trigger(self, source: EventSource, name: str) -> Iterator[Condition]:
        each = "each match" if self._is_for_one(name) else "all matches"
        said = f"it takes '{source.name}' here, and makes a profile for {each}"
        yield Condition("trigger", name, "yes", said)
        for ref in list_missing_refs(self._holders, self._catalog.triggers[name]):
            lack = describe_missing_ref(self._holders, ref)
            yield Condition("trigger", name, "failed", lack.message, lack.cure)

    def _is_for_one(self, trigger: str) -> bool:
        return self._catalog.triggers[trigger].one_for_event


def _version_of(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("metadata") or {}).get("resourceVersion") or "unknown")


def _describe_blindness(view: ObjectView) -> str:
    return f"; nobody could look at it now: {view.blind}" if view.blind else ""
