"""Hints at frequent mistakes in templates; each may be intended, and none is an error.

They are shown by `apply`, `render` and in reports, each with the fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from bellhop.api.kinds import ConfigMap, EventSource, EventTrigger, Secret
from bellhop.core.sveltos_annotations import LUA
from bellhop.errors import InvalidError
from bellhop.rendering.inputs import INSTANTIATE, TEMPLATE, Ref, entries_of
from bellhop.rendering.templates import ANNOTATION as DIALECT
from bellhop.rendering.templates import TemplateText
from bellhop.state.content import Content

_ESCAPED = re.compile(r"`[^`]*+(?:`|\Z)|\"(?:[^\"\\]++|\\.)*+(?:\"|\\?\Z)", re.DOTALL)
_OF_EVENT = re.compile(r"(?:^|[\s(|=])[.$.]*\.((?:Matching)?Resources?|CloudEvents?)\b")
_FOR_ONE = frozenset({"Resource", "MatchingResource", "CloudEvent"})
_COLLECTED = frozenset({"Resource", "Resources"})
_SHOWN = 60


def list_trigger_hints(
    trigger: EventTrigger,
    source: EventSource | None,
    held: Iterable[tuple[Ref, ConfigMap | Secret]],
) -> Iterator[str]:
    """Yield what is missing in a trigger's ConfigMaps and Secrets, or in its source."""
    for ref, holder in held:
        if {DIALECT, LUA} & {*holder.annotations, *trigger.annotations}:
            continue
        actions, always = _list_actions(holder), trigger.instantiates_all
        named = {name for action in actions for name in _OF_EVENT.findall(action)}
        if not always and INSTANTIATE not in holder.annotations:
            yield from _check_rendering(ref, holder, actions, named)
            yield from _check_syntax(ref, holder, {}) if TEMPLATE in holder.annotations else ()
            continue
        yield from _check_syntax(ref, holder, None)
        wrong = named - _FOR_ONE if trigger.one_for_event else named & _FOR_ONE
        for name in sorted(wrong):
            one = str(not trigger.one_for_event).lower()
            yield f"{ref} reads .{name}, which only exists with oneForEvent: {one}"
        if source and not source.collect_resources and named & _COLLECTED:
            name = min(named & _COLLECTED)
            yield (
                f"{ref} reads .{name}, and EventSource '{source.name}' collects no objects; give it"
                " collectResources: true"
            )


def list_profile_hints(held: Iterable[tuple[Ref, ConfigMap | Secret]]) -> Iterator[str]:
    """Yield what in a user's own profile looks like a template and is none, or is not valid."""
    for ref, holder in held:
        if TEMPLATE in holder.annotations and not {DIALECT, LUA} & set(holder.annotations):
            yield from _check_syntax(ref, holder, {})
        actions = _list_actions(holder)
        if actions and not {TEMPLATE, DIALECT, LUA} & set(holder.annotations):
            yield _describe_literal(ref, holder, actions[0], f"add the annotation {TEMPLATE}")


def list_content_hints(contents: Iterable[Content]) -> Iterator[str]:
    """Yield the rendered contents that still have an action, which is deployed literally."""
    for content in contents:
        if any(_has_action(manifest) for manifest in content.manifests):
            yield (
                f"{content.ref}, entry {content.entry}, deploys"
                f" '{{{{' as it is; if a template is meant, add the annotation {TEMPLATE}"
            )


def _check_rendering(
    ref: Ref, holder: ConfigMap | Secret, actions: list[str], named: set[str]
) -> Iterator[str]:
    if named and TEMPLATE in holder.annotations:
        yield (
            f"{ref} reads .{min(named)}, which is not there at deploy time, when {TEMPLATE} has it"
            f" rendered; add the annotation {INSTANTIATE}"
        )
    elif actions and TEMPLATE not in holder.annotations:
        first = next((each for each in actions if _OF_EVENT.search(each)), actions[0])
        yield _describe_literal(ref, holder, first, f"add the annotation {INSTANTIATE}")


def _check_syntax(
    ref: Ref, holder: ConfigMap | Secret, resources: Mapping[str, Any] | None
) -> Iterator[str]:
    """Yield entries with a syntax error; `resources` are None for templates of an event."""
    with suppress(InvalidError):
        for entry, text in sorted(entries_of(holder).items()):
            name, secret = f"{holder.place}/{entry}", isinstance(holder, Secret)
            if said := TemplateText(text, name, secret=secret, resources=resources).objection():
                yield f"{ref} cannot be rendered: {said}"


def _describe_literal(ref: Ref, holder: ConfigMap | Secret, action: str, cure: str) -> str:
    shown = action if len(action) <= _SHOWN else f"{action[:_SHOWN]}…"
    said = "has an action" if isinstance(holder, Secret) else f"says '{{{{ {shown} }}}}'"
    return f"{ref} {said}, which is deployed as it is; if a template is meant, {cure}"


def _list_actions(holder: ConfigMap | Secret) -> list[str]:
    """Return the actions without their string literals, which may be templates for later."""
    try:
        written = entries_of(holder).values()
    except InvalidError:
        return []
    return [_ESCAPED.sub('""', found) for text in written for found in _scan_actions(text)]


def _scan_actions(text: str) -> Iterator[str]:
    """Yield the actions of a text without comments, in linear time."""
    start = text.find("{{")
    while start >= 0:
        end = text.find("}}", start + 2)
        if end < 0:
            return
        inner = text[start + 2 : end].removeprefix("-").removesuffix("-").strip()
        if inner and not inner.startswith("/*"):
            yield inner
        start = text.find("{{", end + 2)


def _has_action(value: object) -> bool:
    if isinstance(value, str):
        return next(_scan_actions(value), None) is not None
    if isinstance(value, Mapping):
        return any(_has_action(each) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple) and any(map(_has_action, value))
