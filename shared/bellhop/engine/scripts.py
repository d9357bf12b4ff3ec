"""What Lua, CEL and RE2 have against what sources and classifiers run, before any of it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bellhop import celbox, luabox
from bellhop.engine.listening import problem
from bellhop.model.document import Path
from bellhop.model.kinds import Classifier, EventSource
from bellhop.model.source import EventSourceSpec

if TYPE_CHECKING:
    from bellhop.model.rules import CelRule


def objections(declared: EventSource | Classifier) -> Iterator[tuple[Path, str]]:
    """Yield where a script, rule or expression stands that is none, and why, with its place."""
    if isinstance(declared, EventSource):
        yield from _objections(declared)
        return
    for index, source in enumerate(declared.sources):
        for path, said in _objections(source):
            yield _in_classifier(path, index), said


def _in_classifier(path: Path, index: int) -> Path:
    """Return where a classifier has what its source of a number has at a path."""
    if path[1] == "aggregatedSelection":
        return ("spec", _CONSTRAINT, "aggregatedClassification")
    _, selectors, number, *rest = path
    assert isinstance(number, int)
    return ("spec", _CONSTRAINT, selectors, index + number, *rest)


def _objections(source: EventSource) -> Iterator[tuple[Path, str]]:
    for path, text in _scripts(source):
        try:
            luabox.Script(text, name=source.name)
        except luabox.LuaError as error:
            place = f" in its line {error.line}" if error.line else ""
            line = f"; the line is `{error.excerpt}`" if error.excerpt else ""
            yield path, f"the Lua script cannot be compiled{place}: {error.wording}{line}"
    for path, pattern in _patterns(source):
        if said := problem(pattern):
            yield path, f"the regular expression cannot be compiled: {said}"
    for path, rule in _rules(source):
        try:
            celbox.Rule(rule.rule, name=rule.name)
        except celbox.CelError as error:
            yield path, _objection(rule, error)


def _objection(rule: CelRule, error: celbox.CelError) -> str:
    said = f"the CEL rule '{rule.name}' cannot be compiled"
    if not error.line:
        return f"{said}: {error.wording}"
    # CEL counts lines as Python's \n does, and none of its other ends of lines.
    line = rule.rule.split("\n")[error.line - 1].strip()
    place = f"in its line {error.line}, column {error.column}"
    return f"{said} {place}: {error.wording}; the line is `{line}`"


def _scripts(source: EventSource) -> Iterator[tuple[Path, str]]:
    spec = source.spec
    fields = (*_FIELDS, "aggregated_selection")
    yield from (
        (("spec", _alias(each)), getattr(spec, each)) for each in fields if _has(spec, each)
    )
    for index, entry in enumerate(spec.resource_selectors):
        for field in _FIELDS:
            if _has(entry, field):
                yield ("spec", "resourceSelectors", index, field), getattr(entry, field)
    for index, match in enumerate(spec.messaging_match_criteria):
        if match.evaluate:
            yield ("spec", _MESSAGING, index, "evaluate"), match.evaluate


def _rules(source: EventSource) -> Iterator[tuple[Path, CelRule]]:
    spec = source.spec
    yield from (
        (("spec", _CEL, index, "rule"), rule) for index, rule in enumerate(spec.evaluate_cel)
    )
    for entry_index, entry in enumerate(spec.resource_selectors):
        for index, rule in enumerate(entry.evaluate_cel):
            yield ("spec", "resourceSelectors", entry_index, _CEL, index, "rule"), rule
    for match_index, match in enumerate(spec.messaging_match_criteria):
        for index, rule in enumerate(match.evaluate_cel):
            yield ("spec", _MESSAGING, match_index, _CEL, index, "rule"), rule


def _patterns(source: EventSource) -> Iterator[tuple[Path, str]]:
    for index, match in enumerate(source.spec.messaging_match_criteria):
        for field, spelled in _PATTERNS.items():
            if _has(match, field):
                yield ("spec", _MESSAGING, index, spelled), getattr(match, field)


_FIELDS = ("script", "evaluate")
_CEL = "evaluateCEL"
_MESSAGING = "messagingMatchCriteria"
_CONSTRAINT = "deployedResourceConstraint"
_PATTERNS = {
    "subject": "subject",
    "cloud_event_source": "cloudEventSource",
    "cloud_event_type": "cloudEventType",
    "cloud_event_subject": "cloudEventSubject",
}


def _alias(field: str) -> str:
    return EventSourceSpec.model_fields[field].alias or field


def _has(spec: object, field: str) -> bool:
    return bool(getattr(spec, field))
