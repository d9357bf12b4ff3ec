"""From one object of a cluster to what came of it: who looked at it, and why it was taken or not.

object ─► sources that name its kind ─► triggers that name these ─► profiles ─► destinations
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop import luabox
from bellhop.api.kinds import EventSource, EventTrigger
from bellhop.api.source_names import asker
from bellhop.core.generated_names import profile_name
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.diagnosis import access_gaps, object_names, overview
from bellhop.diagnosis.explain.chain import Chain, Explanation, Link, State
from bellhop.diagnosis.explain.result import Results, Serves
from bellhop.diagnosis.held_deletions import reported
from bellhop.diagnosis.object_names import meant
from bellhop.diagnosis.object_view import ObjectView, alike, see
from bellhop.diagnosis.releases import deployed_by
from bellhop.diagnosis.reports import AGGREGATION, selection
from bellhop.diagnosis.selection_gaps import Holders, lacking, miss, no_holder, no_source
from bellhop.diagnosis.source_evaluation import CHOSEN, LEFT_OUT, NOTHING
from bellhop.errors import InvalidError, ScriptError, StaleError, TemporaryError
from bellhop.events.rules_match import Candidate, judge, why, why_not
from bellhop.installation.installation import Installation
from bellhop.rendering.observation import observe
from bellhop.state.record import Match

STEPS = ("cluster", "object", "source", "trigger", "profile", "destination")
_JUDGING_SECONDS = 5.0
_DONE = "nothing to do: everything is deployed"


class _Verdict(NamedTuple):
    """What a source makes of the object now, in words; `failed` if its script did."""

    matching: bool
    said: str
    failed: bool = False


def explain_object(
    here: Installation, cluster: str, kind: str, namespace: str, name: str, serves: Serves
) -> Explanation:
    """Explain what became of an object, from its last observation to what was applied.

    Raises:
        InvalidError: the kind is in several groups, or in no namespace.
        MissingError: there is no such cluster, or nobody names such a kind.
    """
    key = object_names.cluster_named(here, cluster)
    gvk, *others = object_names.kinds_named(here, key, kind)
    namespaced = object_names.scope_of(gvk)
    if namespaced is False and namespace:
        raise InvalidError(f"{gvk.kind} objects are in no namespace; write only '{name}'")
    place = namespace or ("default" if namespaced else "")
    about = ObjectKey(gvk, place, name)
    if namespaced is None and not namespace and not here.records.observations.head(key, about):
        # Of a kind that is not known nobody can say whether it is in namespaces.
        about = about._replace(namespace="default")
    versions = [about._replace(gvk=each) for each in others]
    return _Story(here, key, about, versions, serves).tell()


class _Story:
    """One object's story, told once."""

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
        self._holders = Holders(here)
        self._chain = Chain(f"{overview.object_name(key)} in {cluster}", STEPS)
        self._results = Results(here, self._catalog, self._chain, serves)
        self._limits = luabox.Limits(
            seconds=here.settings.script_seconds, memory=here.settings.script_memory
        )
        self._until = time.monotonic() + _JUDGING_SECONDS
        self._candidates: dict[ObjectKey, Candidate | None] = {}

    def tell(self) -> Explanation:
        """Tell the whole chain."""
        self._tell_cluster()
        sight = see(self._here, self._cluster, self._key)
        self._candidates[self._key] = self._candidate(sight.manifest)
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
        self._tell_object(sight, watched=bool(watched))
        taken = self._tell_sources(sight, naming_it, in_force)
        profile, how = deployed_by(self._here, self._cluster, identity)
        if not profile:
            return self._chain.end(_DONE)
        return self._end_deployed(sight, profile, how, taken=taken)

    def _end_deployed(
        self, sight: ObjectView, profile: str, how: str, *, taken: bool
    ) -> Explanation:
        """Close the chain of an object that Bellhop deployed, which need not be an event."""
        if not taken:
            self._chain.drop_cures("cluster")
        missing = sight.there is None and not sight.blind
        cure = f"`bellhop redeploy {profile} --cluster {self._cluster}`" if missing else ""
        state: State = "failed" if missing else "yes"
        self._chain.add("object", overview.object_name(self._key), state, how, cure)
        return self._chain.end(_DONE if taken else f"nothing; {how}")

    # The cluster and the object -----------------------------------------------------------------

    def _tell_cluster(self) -> None:
        health = overview.health(self._here, self._cluster)
        refused = overview.refused(self._here, self._cluster)
        if health.away:
            said = f"it is {health.state.lower()}: {health.message}"
            cure = f"see that cluster '{self._cluster}' answers: {health.message}"
            self._chain.add("cluster", self._cluster, "failed", said, cure)
        if pause := overview.paused(self._here, self._cluster):
            self._chain.add("cluster", self._cluster, "waits", *pause)
        if refused:
            cure = f"`bellhop register cluster` for '{self._cluster}' again"
            self._chain.add("cluster", self._cluster, "failed", refused, cure)

    def _tell_object(self, sight: ObjectView, *, watched: bool) -> None:
        name, kept = overview.object_name(self._key), sight.kept
        if sight.lost:
            self._chain.add("object", name, "waits", sight.lost, self._sweep())
        elif kept is None:
            self._tell_unseen(sight, watched=watched)
        elif sight.behind:
            was = "gone" if kept.gone else f"version {kept.resource_version}"
            now = "gone" if sight.there is None else f"version {_version(sight.there)}"
            said = f"last seen {self._ago(sight)} ago as {was}, and it is {now} in the cluster"
            self._chain.add("object", name, "waits", said, self._sweep())
        elif kept.gone:
            said = f"it was deleted, noticed {self._ago(sight)} ago{_unseen(sight)}"
            self._chain.add("object", name, "no", said, "create it again, if it is to match")
        else:
            seen = f"version {kept.resource_version}, seen {self._ago(sight)} ago"
            same = _unseen(sight) or ", and so it is in the cluster now"
            self._chain.add("object", name, "yes", seen + same)

    def _tell_unseen(self, sight: ObjectView, *, watched: bool) -> None:
        name = overview.object_name(self._key)
        if sight.there is not None:
            if watched:
                said = "it is in the cluster, and Bellhop has received no event of it"
                self._chain.add("object", name, "waits", said, self._sweep())
            else:
                said = "it is in the cluster; no source in force there names its kind"
                self._chain.add("object", name, "no", said)
            return
        near = alike(self._here, self._cluster, self._key)
        hint = f"; did you mean '{near}'?" if near else ""
        if sight.blind:
            said = f"Bellhop has received no event of it{_unseen(sight)}{hint}"
        else:
            said = f"there is none in the cluster{hint}"
        cure = f"look for it under its name '{near}'" if near else "create it, or correct its name"
        self._chain.add("object", name, "failed" if not sight.blind else "no", said, cure)

    def _sweep(self) -> str:
        waiting = self._results.waiting(str(self._key))
        if waiting.startswith("ask again"):
            return f"`bellhop resync {self._cluster}`: it finds objects without an event"
        return waiting

    def _ago(self, sight: ObjectView) -> str:
        assert sight.kept
        seconds = (self._here.records.clock.now() - sight.kept.seen_at).total_seconds()
        for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
            if seconds >= 2 * size:
                return f"{seconds // size:.0f} {unit}"
        return f"{max(seconds, 0):.0f} s"

    # Sources ------------------------------------------------------------------------------------

    def _tell_sources(
        self, sight: ObjectView, naming_it: list[EventSource], in_force: set[str]
    ) -> bool:
        """Tell of each source that names the kind; return whether one takes the object."""
        by_source: dict[str, list[EventTrigger]] = {}
        for trigger in self._catalog.triggers.values():
            by_source.setdefault(trigger.event_source_name, []).append(trigger)
        links, taken = [], []
        for source in naming_it:
            triggers = by_source.get(source.name, [])
            if source.name not in in_force:
                links.append(self._out_of_force(source, triggers))
                continue
            link = self._source(source, sight)
            links.append(link)
            if link.state in {"yes", "waits"}:
                taken.append((source, triggers))
        links.sort(key=lambda link: link.name not in in_force)
        self._chain.add_all(links, f"sources name {self._key.gvk.kind}, and do not take it")
        declared = [name for name in self._catalog.sources if not asker(name)]
        others = len(declared) - len(naming_it)
        if others:
            self._chain.note("source", f"{others} name other kinds")
        if not naming_it:
            said = f"no EventSource names {self._key.gvk.kind}"
            cure = f"apply an EventSource that names {self._key.gvk}, and a trigger that names it"
            self._chain.add("source", "-", "no", said, cure)
        self._tell_nameless(naming_it, by_source)
        for source, triggers in taken:
            self._tell_triggers(source, triggers)
        return bool(taken)

    def _out_of_force(self, source: EventSource, triggers: list[EventTrigger]) -> Link:
        """Say why a source is not in force in the cluster: nobody joins it, or none selects it."""
        if not triggers:
            said = "it is not in force here: no trigger names it"
            cure = f"apply an EventTrigger with eventSourceName: {source.name}"
            return Link("source", source.name, "no", said, cure)
        cluster = self._catalog.clusters[self._cluster]
        lacks = [(each, lack) for each in triggers if (lack := miss(each, cluster, self._catalog))]
        if not lacks:
            said = "it is not in force here: the trigger that names it fails"
            return Link("source", source.name, "no", said)
        trigger, lack = min(lacks, key=lambda each: each[1].said.count(" and "))
        more = f"; {len(lacks) - 1} more triggers name it, and miss it too" if lacks[1:] else ""
        said = (
            f"it is not in force here: {trigger.kind} '{trigger.name}' does not select the"
            f" cluster: {lack.said}{more}"
        )
        return Link("source", source.name, "no", said, lack.cure)

    def _source(self, source: EventSource, sight: ObjectView) -> Link:
        """Judge the object by a source again, and hold that against the match that is kept."""
        verdict = self._judge(source)
        match = self._match(source)
        if verdict.failed or (match and match.error):
            said = verdict.said if verdict.failed else failure(source, match.error if match else "")
            kept = "; that it matched before stands" if match and match.matching else ""
            cure = mending(source, said)
            return Link("source", source.name, "failed", said + kept, cure)
        matched = bool(match and match.matching)
        if match and match.held and not verdict.matching:
            return self._stays(source, verdict)
        if verdict.matching and matched and source.aggregation:
            return self._aggregated(source, verdict)
        if verdict.matching == matched:
            state = "yes" if matched else "no"
            cure = "" if matched else self._differing(source, verdict, sight)
            return Link("source", source.name, state, verdict.said, cure)  # type: ignore[arg-type]
        now = f"it matches now ({verdict.said})" if verdict.matching else f"now {verdict.said}"
        kept = "its match is kept until it is evaluated" if matched else "and is not evaluated yet"
        held = self._held() if matched else ""
        cure = self._sweep() if sight.behind else self._results.waiting(str(self._key))
        return Link("source", source.name, "waits", f"{now}, {kept}{held}", cure)

    def _stays(self, source: EventSource, verdict: _Verdict) -> Link:
        """Tell of an object that ended with too many others."""
        kept, name = self._here.records.holds.get(self._cluster, source.name), source.name
        why = f": {reported(self._here, kept.value).why}" if kept else ""
        cure = f"`bellhop release {self._cluster} {name}`, if that was meant; else fix what ended"
        said = f"now {verdict.said}, and its match is held{why}"
        return Link("source", name, "waits", said, cure)

    def _aggregated(self, source: EventSource, verdict: _Verdict) -> Link:
        """Tell what the source's aggregatedSelection makes of an object that matches."""
        kept, name = selection(self._here, self._cluster, source.name), source.name
        cure = (
            f"`bellhop resync {self._cluster}`: the script is run after a resync of all its kinds"
        )
        if kept is None:
            said = f"{verdict.said}; its aggregatedSelection waits for a resync of all its kinds"
            return Link("source", name, "waits", said, cure)
        if isinstance(kept, str):
            return Link("source", name, "failed", kept, cure)
        if kept.error:
            said = failure(source, kept.error)
            stays = "; what it said before stands" if kept.made else ""
            return Link("source", name, "failed", said + stays, mending(source, said))
        told = f": {kept.message}" if kept.message else ""
        if str(self._matched_key(source)) in kept.by_key:
            return Link("source", name, "yes", f"{verdict.said}; {CHOSEN}{told}")
        said = f"{verdict.said}; {LEFT_OUT}{told}"
        what = overview.object_name(self._key)
        cure = f"change {what}, or the aggregatedSelection of EventSource '{name}'{told}"
        return Link("source", name, "no", said, cure)

    def _differing(self, source: EventSource, verdict: _Verdict, sight: ObjectView) -> str:
        if sight.manifest is None:
            return ""
        what = overview.object_name(self._key)
        return f"change {what}, or EventSource '{source.name}': {verdict.said}"

    def _judge(self, source: EventSource) -> _Verdict:
        candidate = self._candidate_for(source)
        if candidate is None:
            return _Verdict(matching=False, said="there is no object that it could take")
        if source.account and (said := self._denied(source)):
            return _Verdict(matching=False, said=said)
        if time.monotonic() > self._until:
            match = self._match(source)
            matching = bool(match and match.matching)
            return _Verdict(matching, "not judged again: there are too many to judge all of them")
        try:
            ruling = judge(source, candidate, self._limits)
        except (ScriptError, TemporaryError) as error:
            return _Verdict(matching=False, said=failure(source, str(error)), failed=True)
        if ruling.matching:
            return _Verdict(matching=True, said=why(ruling))
        reasons = dict.fromkeys(why_not(each, candidate.manifest) for each in ruling.declined)
        return _Verdict(matching=False, said="; ".join(reasons) or NOTHING)

    def _denied(self, source: EventSource) -> str:
        """Say why the account of a source does not see the object; empty where it does."""
        key = self._matched_key(source)
        return access_gaps.denied(self._here.records, self._cluster, source.account, key)

    def _candidate_for(self, source: EventSource) -> Candidate | None:
        """Return the object in the version that a source names, where that is known, too."""
        if self._key.gvk in source.kinds:
            return self._candidates[self._key]
        key = next((each for each in self._versions if each.gvk in source.kinds), self._key)
        if key not in self._candidates:
            try:
                found = self._here.records.observations.get(self._cluster, key)
            except StaleError:
                found = None
            self._candidates[key] = self._candidate(found.value.manifest if found else None)
        return self._candidates[key]

    def _candidate(self, manifest: Mapping[str, Any] | None) -> Candidate | None:
        """Make of an object what the pipeline judges: just what would be observed of it."""
        if manifest is None:
            return None
        seen = observe(self._cluster, manifest, self._here.records.clock.now())
        assert seen.manifest is not None
        return Candidate(seen.manifest)

    def _match(self, source: EventSource) -> Match | None:
        for key in (self._key, *self._versions):
            kept = self._here.records.matches.get(self._cluster, source.name, key)
            if kept:
                return kept.value
        return None

    def _held(self) -> str:
        strikes = self._here.records.strikes.get(self._cluster, self._key.gvk).value
        if not strikes:
            return ""
        agreement = self._here.settings.deletion_agreement
        return f": a resync found suspiciously many deleted; {strikes} of {agreement} resyncs agree"

    # Triggers -----------------------------------------------------------------------------------

    def _tell_nameless(
        self, naming_it: list[EventSource], by_source: Mapping[str, list[EventTrigger]]
    ) -> None:
        """Tell of the triggers whose source cannot be found.

        Where a trigger joins a source of the kind, what others name is beside the point, unless
        one probably means a source of the kind.
        """
        beside = any(by_source.get(each.name) for each in naming_it)
        names = [each.name for each in naming_it]
        found = []
        for trigger in self._catalog.triggers.values():
            link = self._nameless(trigger)
            if link and beside and not meant(trigger.event_source_name, names):
                link = replace(link, cure="")
            found += [link] if link else []
        self._chain.add_all(found, "triggers name a source that is not there")

    def _nameless(self, trigger: EventTrigger) -> Link | None:
        """Tell of a trigger that selects the cluster, and whose source cannot be found."""
        if not self._catalog.watches(trigger, self._cluster):
            return None
        problem = self._catalog.problems_in(self._cluster).get(trigger.name)
        lack = no_source(trigger, self._catalog)
        if problem:
            said = f"its eventSourceName cannot be rendered: {problem}"
            cure = f"correct the eventSourceName of {trigger.kind} '{trigger.name}': {problem}"
            return Link("trigger", trigger.name, "failed", said, cure)
        if lack:
            said = f"it selects the cluster, and {lack.said}"
            return Link("trigger", trigger.name, "no", said, lack.cure)
        return None

    def _tell_triggers(self, source: EventSource, triggers: list[EventTrigger]) -> None:
        cluster = self._catalog.clusters[self._cluster]
        joined = self._catalog.triggers_on(self._cluster, source.name)
        links = []
        for trigger in triggers:
            lack = miss(trigger, cluster, self._catalog)
            if lack:
                said = f"it names '{source.name}', and does not select the cluster: {lack.said}"
                links.append(Link("trigger", trigger.name, "no", said, lack.cure))
        for name in joined:
            links += self._joined(source, name)
        self._chain.add_all(links, f"triggers name '{source.name}'")
        for name in joined:
            about = str(self._matched_key(source)) if self._one(name) else ""
            made = profile_name(name, self._cluster, about)
            self._results.tell(self._catalog.triggers[name], self._cluster, made)

    def _joined(self, source: EventSource, name: str) -> Iterator[Link]:
        each = "each match" if self._one(name) else "all matches"
        said = f"it takes '{source.name}' here, and makes a profile for {each}"
        yield Link("trigger", name, "yes", said)
        for ref in lacking(self._holders, self._catalog.triggers[name]):
            lack = no_holder(self._holders, ref)
            yield Link("trigger", name, "failed", lack.said, lack.cure)

    def _one(self, trigger: str) -> bool:
        return self._catalog.triggers[trigger].one_for_event

    def _matched_key(self, source: EventSource) -> ObjectKey:
        keys = (self._key, *self._versions)
        return next((each for each in keys if each.gvk in source.kinds), self._key)


_RULE_FAILED = "its CEL rule failed"


def failure(source: EventSource, error: str) -> str:
    """Say how a script or a rule failed, with a script's line that did; neither holds a Secret."""
    if error.startswith(f"{source.name}, rule '"):
        return f"{_RULE_FAILED}: {error}"
    what, begins = "script", source.name
    scripts = {each.script for each in source.selectors if each.script}
    if error.startswith(f"{source.name}, {AGGREGATION}:"):
        what, begins = AGGREGATION, f"{source.name}, {AGGREGATION}"
        scripts = {source.aggregation}
    place = re.match(rf"{re.escape(begins)}:(\d+): ", error)
    lines = next(iter(scripts)).splitlines() if len(scripts) == 1 else []
    if place and 0 < int(place[1]) <= len(lines):
        error += f"; the line is `{lines[int(place[1]) - 1].strip()}`"
    return f"its {what} failed: {error}"


def mending(source: EventSource, said: str) -> str:
    """Say what to do about a failure of a source."""
    what = "rule" if said.startswith(_RULE_FAILED) else "script"
    what = AGGREGATION if said.startswith(f"its {AGGREGATION} ") else what
    return f"correct the {what} of EventSource '{source.name}', and apply it: {said}"


def _version(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("metadata") or {}).get("resourceVersion") or "unknown")


def _unseen(sight: ObjectView) -> str:
    return f"; nobody could look at it now: {sight.blind}" if sight.blind else ""
