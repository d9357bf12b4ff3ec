"""Checks of Lua, CEL and regular expressions before any of them is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from bellhop import celbox, gotemplate, luabox
from bellhop.api.kinds import Classifier, ConfigMap, EventSource, HealthCheck, Secret
from bellhop.api.source import EventSourceSpec
from bellhop.core.sveltos_annotations import LUA
from bellhop.documents.document import Path
from bellhop.errors import InvalidError
from bellhop.rendering.cloud_event_filters import problem

if TYPE_CHECKING:
    from bellhop.api.addon import AddonSpec
    from bellhop.api.checks import Check as CheckSpec
    from bellhop.api.rules import CelRule


def objections(declared: EventSource | Classifier | HealthCheck) -> Iterator[tuple[Path, str]]:
    """Yield where a script, rule or expression stands that is none, and why, with its place."""
    if isinstance(declared, EventSource):
        yield from _objections(declared)
        return
    if isinstance(declared, HealthCheck):
        # A flat script is checked as it was written, without the call that is appended to it.
        if declared.spec.script:
            yield from _of_scripts([(("spec", "script"), declared.spec.script)], declared.name)
            return
        for path, said in _objections(declared.source):
            yield (("spec", "evaluateHealth") if path[1] == _AGGREGATION else path), said
        return
    for index, source in enumerate(declared.sources):
        for path, said in _objections(source):
            yield _in_classifier(path, index), said


def _in_classifier(path: Path, index: int) -> Path:
    """Return where a classifier has what its source of a number has at a path."""
    if path[1] == _AGGREGATION:
        return ("spec", _CONSTRAINT, "aggregatedClassification")
    _, selectors, number, *rest = path
    assert isinstance(number, int)
    return ("spec", _CONSTRAINT, selectors, index + number, *rest)


def _objections(source: EventSource) -> Iterator[tuple[Path, str]]:
    yield from _of_scripts(_scripts(source), source.name)
    for path, pattern in _patterns(source):
        if said := problem(pattern):
            yield path, f"the regular expression cannot be compiled: {said}"
    yield from _of_rules(_rules(source))


def check_objections(spec: AddonSpec) -> Iterator[tuple[Path, str]]:
    """Yield where a script or rule of a check stands that is none, and why, with its place."""
    for when, checks in spec.checks_written().items():
        for index, check in enumerate(checks):
            place = ("spec", when, index)
            if check.script:
                yield from _of_scripts([((*place, "script"), check.script)], check.name)
            rules = enumerate(check.evaluate_cel)
            yield from _of_rules(((*place, _CEL, number, "rule"), rule) for number, rule in rules)
            yield from _of_templates(_templates(check, place))


def _templates(check: CheckSpec, place: Path) -> Iterator[tuple[Path, str]]:
    """Yield the templates of a check's metrics, with their places."""
    if check.metric_source:
        yield (*place, "metricSource", "url"), check.metric_source.url
    for number, each in enumerate(check.metric_queries):
        yield (*place, "metricQueries", number, "query"), each.query


def _of_templates(templates: Iterable[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for path, text in templates:
        try:
            gotemplate.compile_template(
                text, name=str(path[-1]), funcs=gotemplate.event_functions()
            )
        except gotemplate.GoTemplateError as error:
            yield path, f"the template cannot be read: {error}"


def _of_scripts(scripts: Iterable[tuple[Path, str]], name: str) -> Iterator[tuple[Path, str]]:
    for path, text in scripts:
        if said := _lua(text, name):
            yield path, said


def _of_rules(rules: Iterable[tuple[Path, CelRule]]) -> Iterator[tuple[Path, str]]:
    for path, rule in rules:
        try:
            celbox.Rule(rule.rule, name=rule.name)
        except celbox.CelError as error:
            yield path, _objection(rule, error)


def of_holder(holder: ConfigMap | Secret) -> Iterator[tuple[Path, str]]:
    """Yield the entries of a ConfigMap or Secret that should be scripts and are not, with reasons.

    Entries that are rendered first are unknown, and nothing of a Secret is quoted.
    """
    from bellhop.rendering.inputs import INSTANTIATE, entries_of  # noqa: PLC0415 - few write so

    if LUA not in holder.annotations or INSTANTIATE in holder.annotations:
        return
    try:
        entries = entries_of(holder)
    except InvalidError:
        return
    field = "data" if isinstance(holder, ConfigMap) else "stringData"
    for entry, text in sorted(entries.items()):
        if said := _lua(text, holder.name, secret=isinstance(holder, Secret)):
            yield (field, entry), said


def declaring(holder: ConfigMap | Secret) -> Iterator[tuple[Path, str]]:
    """Yield the entries of a ConfigMap or Secret with manifests that only `bellhop apply` reads."""
    from bellhop.rendering.inputs import entries_of  # noqa: PLC0415 - few write so
    from bellhop.rendering.manifests import declaration_in  # noqa: PLC0415 - for `apply` only

    try:
        entries = entries_of(holder)
    except InvalidError:
        return
    field = "data" if isinstance(holder, ConfigMap) else "stringData"
    for entry, text in sorted(entries.items()):
        if said := declaration_in(text):
            yield (field, entry), said


def _lua(text: str, name: str, *, secret: bool = False) -> str:
    try:
        if not luabox.Script(text, name=name).may_define(_FUNCTION):
            return (
                f"the Lua script defines no function '{_FUNCTION}', which is what is called; name"
                " it so, without 'local'"
            )
    except luabox.LuaError as error:
        place = f" in its line {error.line}" if error.line else ""
        if secret:
            return f"the Lua script cannot be compiled{place}"
        line = f"; the line is `{error.excerpt}`" if error.excerpt else ""
        return f"the Lua script cannot be compiled{place}: {error.wording}{line}"
    return ""


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


_FUNCTION = "evaluate"
_FIELDS = ("script", "evaluate")
_AGGREGATION = "aggregatedSelection"
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
