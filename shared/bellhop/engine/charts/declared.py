"""The charts of triggers and profiles, with what their references hold, as contents of profiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.engine.charts.logins import held_authority, held_credentials
from bellhop.engine.instantiate import (
    INSTANTIATE,
    TEMPLATE,
    Fields,
    Instance,
    Ref,
    entries_of,
    instance,
    missing,
    resolve,
)
from bellhop.engine.own_contents import own_texts
from bellhop.errors import MissingError
from bellhop.gotemplate import Limits
from bellhop.gotemplate.lexer import RAW_STRING, STRING, tokenize
from bellhop.model.addon import ChartRef, PolicyRef
from bellhop.model.chart import Chart
from bellhop.model.held_text import HeldText
from bellhop.model.kinds import ConfigMap, EventTrigger, Secret
from bellhop.model.record import Content

Holder = ConfigMap | Secret | None
Find = Callable[[Ref], Holder]
Read = Callable[[Ref, Holder], Iterable[HeldText]]
Hold = Callable[[Sequence[PolicyRef], str, Read], Iterable[HeldText]]
"""Reads what refs name, which a field has."""

_RAW = re.compile(r"\{%-?\s*raw\b")

_TEXTS = ("repository", "chart", "version", "release", "namespace")
_NAMES = {
    "repository": "repositoryURL",
    "chart": "chartName",
    "version": "chartVersion",
    "release": "releaseName",
    "namespace": "releaseNamespace",
}


def own_charts(
    charts: Sequence[ChartRef],
    clusters: Sequence[Mapping[str, Any]],
    find: Find,
    limits: Limits,
) -> Iterator[Content]:
    """Yield the charts of a user's own profile; all of their texts are templates of deploy time.

    `clusters` are its destinations as templates see them.

    Raises:
        PermanentError: as `own_contents` does.
    """

    def hold(refs: Sequence[PolicyRef], field: str, read: Read) -> Iterable[HeldText]:
        return own_texts(HeldText, refs, clusters, find, limits, field, read)

    for each in charts:
        yield _content(each, each.chart, hold, _held_values)


class Event(Struct, frozen=True):
    """What a trigger's charts are rendered with."""

    trigger: EventTrigger
    root: Mapping[str, Any]
    fields: Fields
    namespace: str
    find: Find
    limits: Limits
    quoting: bool = False

    def charts(self) -> Iterator[Content]:
        """Yield the charts of the trigger, rendered with the event.

        Raises:
            PermanentError: something is missing, or a template fails.
        """
        for each in self.trigger.charts:
            yield _content(each, self._rendered(each.chart), self._hold, self._values)

    def _hold(self, refs: Sequence[PolicyRef], field: str, read: Read) -> Iterator[HeldText]:
        where = f"{field}[{{}}]"
        for ref in resolve(refs, self.fields, namespace=self.namespace, field=where):
            yield from read(ref, self.find(ref))

    def _rendered(self, chart: Chart) -> Chart:
        texts = {name: getattr(chart, name) for name in _TEXTS}
        made = {
            name: self.fields.text(text, f"{chart.field}.{_NAMES[name]}")
            for name, text in texts.items()
        }
        values = tuple(
            replace(
                each,
                text=self.fields.values(each.text, each.source),
                plain=not self._writes_actions(each.text),
                secret=self.fields.secret,
            )
            for each in chart.values
        )
        plain = not any(map(self._writes_actions, texts.values()))
        return replace(chart, **made, values=values, plain=plain)

    def _writes_actions(self, template: str) -> bool:
        """Say whether a template writes an action out as text, for deploy time.

        Nothing else is rendered again: what an event says must not be read as a template.
        """
        if self.fields.dialect == "jinja2":
            return _RAW.search(template) is not None
        return any(
            each.kind in (STRING, RAW_STRING) and "{{" in each.text for each in tokenize(template)
        )

    def _made(self, ref: Ref, holder: ConfigMap | Secret) -> Instance | None:
        return instance(
            ref,
            holder,
            self.root,
            always=self.trigger.era_always_renders,
            limits=self.limits,
            annotations=self.trigger.annotations,
            quoting=self.quoting,
        )

    def _values(self, ref: Ref, holder: Holder, *, field: str) -> Iterator[HeldText]:
        """Yield what a ConfigMap or Secret holds; with the event where its annotations say so."""
        made = self._made(ref, holder) if holder else None
        if made is None:
            yield from _held_values(ref, holder, field=field)
            return
        secret = isinstance(holder, Secret) or self.fields.secret
        for entry, text in made.texts.items():
            source = f"{ref.namespace}/{ref.name}/{entry}"
            yield HeldText(text, source, plain=TEMPLATE not in made.annotations, secret=secret)


def _content(
    each: ChartRef, chart: Chart, hold: Hold, read: Callable[..., Iterable[HeldText]]
) -> Content:
    """Return a chart with what its references hold."""
    field = f"{chart.field}.valuesFrom"
    values = (*chart.values, *_ordered(hold(each.values, field, partial(read, field=field))))
    logins: list[HeldText] = []
    for name, refs, its in (
        ("credentials", each.credentials, held_credentials),
        ("ca", each.authority, held_authority),
    ):
        field = f"{chart.field}.registryCredentialsConfig.{name}"
        key = each.key if name == "credentials" else ""
        logins += hold(refs, field, partial(its, field=field, key=key))
    whole = replace(chart, values=values, logins=tuple(logins))
    return Content(chart.field, "", chart=whole, how=each.how)


def _ordered(values: Iterable[HeldText]) -> list[HeldText]:
    """Return values in the order in which Sveltos merges them: templates come last, and win."""
    return sorted(values, key=lambda each: not each.plain)


def _held_values(ref: Ref, holder: Holder, *, field: str) -> Iterator[HeldText]:
    """Yield the entries of a ConfigMap or Secret as values, by the names of the entries.

    Raises:
        MissingError: it is not there, and not optional.
        InvalidError: a Secret has a wrong type, or an entry is no text.
    """
    if holder is None:
        if ref.optional:
            return
        raise MissingError(missing(ref, field))
    plain = not {TEMPLATE, INSTANTIATE} & holder.annotations.keys()
    for entry, text in sorted(entries_of(holder, field).items()):
        source = f"{ref.namespace}/{ref.name}/{entry}"
        yield HeldText(text, source, plain=plain, secret=isinstance(holder, Secret))
