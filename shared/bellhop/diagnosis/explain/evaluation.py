"""Evaluation of one object by a source again, in sentences, and the cure of a failed script."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bellhop import luabox
from bellhop.api.kinds import EventSource
from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis.access_gaps import describe_denial
from bellhop.diagnosis.condition import Condition, Status
from bellhop.diagnosis.explain.result import Results
from bellhop.diagnosis.held_deletions import read_held_report
from bellhop.diagnosis.names import object_name
from bellhop.diagnosis.object_view import ObjectView
from bellhop.diagnosis.source_evaluation import CHOSEN, LEFT_OUT, explain_ruling
from bellhop.diagnosis.source_status import AGGREGATION, read_selection
from bellhop.errors import ScriptError, StaleError, TemporaryError
from bellhop.events.rules_match import Candidate, evaluate_rules
from bellhop.installation import Installation
from bellhop.rendering.observation import observe
from bellhop.state.match import Match

_SECONDS = 5.0


class Evaluation(NamedTuple):
    """The result of a source for an object now, in words; `failed` if its script did."""

    matching: bool
    said: str
    failed: bool = False


def evaluate(source: EventSource, candidate: Candidate, limits: luabox.Limits) -> Evaluation:
    try:
        ruling = evaluate_rules(source, candidate, limits)
    except (ScriptError, TemporaryError) as error:
        said = describe_failure(source, str(error))
        return Evaluation(matching=False, said=said, failed=True)
    return Evaluation(ruling.matching, explain_ruling(ruling, candidate.manifest))


_RULE_FAILED = "its CEL rule failed"


def describe_failure(source: EventSource, error: str) -> str:
    """Return a failure of a script, with the line that failed, or of a rule; without Secrets."""
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


def advise_source(source: EventSource, said: str) -> str:
    what = "rule" if said.startswith(_RULE_FAILED) else "script"
    what = AGGREGATION if said.startswith(f"its {AGGREGATION} ") else what
    return f"correct the {what} of EventSource '{source.name}', and apply it: {said}"


class ObjectEvaluator:
    """Evaluates one object by sources again, and compares that with the stored matches.

    The key of the object may be that of another version than a source names; after a few seconds
    no further script runs.
    """

    def __init__(
        self,
        here: Installation,
        cluster: str,
        key: ObjectKey,
        versions: Sequence[ObjectKey],
        results: Results,
        manifest: Mapping[str, Any] | None,
    ) -> None:
        self._here = here
        self._cluster = cluster
        self._key = key
        self._versions = versions
        self._results = results
        self._limits = luabox.Limits(
            seconds=here.settings.script_seconds, memory=here.settings.script_memory
        )
        self._until = time.monotonic() + _SECONDS
        self._candidates = {key: self._candidate(manifest)}

    def describe(self, source: EventSource, view: ObjectView) -> Condition:
        """Evaluate the object by a source again, and compare that with the stored match."""
        evaluation = self._evaluate(source)
        match = self._find_match(source)
        if evaluation.failed or (match and match.error):
            said = (
                evaluation.said
                if evaluation.failed
                else describe_failure(source, match.error if match else "")
            )
            kept = "; that it matched before stands" if match and match.matching else ""
            cure = advise_source(source, said)
            return Condition("source", source.name, "failed", said + kept, cure)
        matched = bool(match and match.matching)
        if match and match.held and not evaluation.matching:
            return self._describe_held(source, evaluation)
        if evaluation.matching and matched and source.aggregation:
            return self._describe_aggregation(source, evaluation)
        if evaluation.matching == matched:
            state: Status = "yes" if matched else "no"
            cure = "" if matched else self._advise_change(source, evaluation, view)
            return Condition("source", source.name, state, evaluation.said, cure)
        now = (
            f"it matches now ({evaluation.said})"
            if evaluation.matching
            else f"now {evaluation.said}"
        )
        kept = "its match is kept until it is evaluated" if matched else "and is not evaluated yet"
        held = self._describe_confirmations() if matched else ""
        cure = self.advise_resync() if view.behind else self._results.advise_waiting(str(self._key))
        return Condition("source", source.name, "waits", f"{now}, {kept}{held}", cure)

    def _describe_held(self, source: EventSource, evaluation: Evaluation) -> Condition:
        kept, name = self._here.records.holds.get(self._cluster, source.name), source.name
        why = f": {read_held_report(self._here, kept.value).why}" if kept else ""
        cure = f"`bellhop release {self._cluster} {name}`, if that was meant; else fix what ended"
        said = f"now {evaluation.said}, and its match is held{why}"
        return Condition("source", name, "waits", said, cure)

    def _describe_aggregation(self, source: EventSource, evaluation: Evaluation) -> Condition:
        kept, name = read_selection(self._here, self._cluster, source.name), source.name
        cure = (
            f"`bellhop resync {self._cluster}`: the script is run after a resync of all its kinds"
        )
        if kept is None:
            said = f"{evaluation.said}; its aggregatedSelection waits for a resync of all its kinds"
            return Condition("source", name, "waits", said, cure)
        if isinstance(kept, str):
            return Condition("source", name, "failed", kept, cure)
        if kept.error:
            said = describe_failure(source, kept.error)
            stays = "; what it said before stands" if kept.made else ""
            return Condition("source", name, "failed", said + stays, advise_source(source, said))
        message = f": {kept.message}" if kept.message else ""
        if str(self.find_key(source)) in kept.by_key:
            return Condition("source", name, "yes", f"{evaluation.said}; {CHOSEN}{message}")
        said = f"{evaluation.said}; {LEFT_OUT}{message}"
        what = object_name(self._key)
        cure = f"change {what}, or the aggregatedSelection of EventSource '{name}'{message}"
        return Condition("source", name, "no", said, cure)

    def _advise_change(self, source: EventSource, evaluation: Evaluation, view: ObjectView) -> str:
        if view.manifest is None:
            return ""
        what = object_name(self._key)
        return f"change {what}, or EventSource '{source.name}': {evaluation.said}"

    def _evaluate(self, source: EventSource) -> Evaluation:
        candidate = self._candidate_for(source)
        if candidate is None:
            return Evaluation(matching=False, said="there is no object that it could take")
        if source.account and (said := self._describe_denial(source)):
            return Evaluation(matching=False, said=said)
        if time.monotonic() > self._until:
            match = self._find_match(source)
            matching = bool(match and match.matching)
            return Evaluation(matching, "not judged again: there are too many to judge all of them")
        return evaluate(source, candidate, self._limits)

    def _describe_denial(self, source: EventSource) -> str:
        key = self.find_key(source)
        return describe_denial(self._here.records, self._cluster, source.account, key)

    def _candidate_for(self, source: EventSource) -> Candidate | None:
        """Return the object in the version that a source names, where that is known."""
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
        """Return what ingest would observe of an object: that is what the evaluator gets."""
        if manifest is None:
            return None
        seen = observe(self._cluster, manifest, self._here.records.clock.now())
        assert seen.manifest is not None
        return Candidate(seen.manifest)

    def _find_match(self, source: EventSource) -> Match | None:
        for key in (self._key, *self._versions):
            kept = self._here.records.matches.get(self._cluster, source.name, key)
            if kept:
                return kept.value
        return None

    def _describe_confirmations(self) -> str:
        counted = self._here.records.strikes.get(self._cluster, self._key.gvk).value
        if not counted:
            return ""
        needed = self._here.settings.deletion_agreement
        return f": a resync found suspiciously many deleted; {counted} of {needed} resyncs agree"

    def find_key(self, source: EventSource) -> ObjectKey:
        keys = (self._key, *self._versions)
        return next((each for each in keys if each.gvk in source.kinds), self._key)

    def advise_resync(self) -> str:
        waiting = self._results.advise_waiting(str(self._key))
        if waiting.startswith("ask again"):
            return f"`bellhop resync {self._cluster}`: it finds objects without an event"
        return waiting
