"""The charts of triggers and profiles, with what their references hold, as contents of profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from bellhop.api.policy_ref import ChartRef, PolicyRef
from bellhop.rendering.charts.credentials import held_authority, held_credentials
from bellhop.rendering.event_variables import Event, Read, held_values
from bellhop.rendering.own_contents import OwnRefs, own_texts
from bellhop.state.chart import Chart
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import Content

Hold = Callable[[Sequence[PolicyRef], str, Read], Iterable[HeldText]]
"""Reads what refs name, which a field has."""

_TEXTS = ("repository", "chart", "version", "release", "namespace")
_NAMES = {
    "repository": "repositoryURL",
    "chart": "chartName",
    "version": "chartVersion",
    "release": "releaseName",
    "namespace": "releaseNamespace",
}


def own_charts(charts: Sequence[ChartRef], own: OwnRefs) -> Iterator[Content]:
    """Yield the charts of a user's own profile; all of their texts are templates of deploy time.

    Raises:
        PermanentError: as `own_contents` does.
    """

    def hold(refs: Sequence[PolicyRef], field: str, read: Read) -> Iterable[HeldText]:
        return own_texts(HeldText, refs, own, field, read)

    for each in charts:
        yield _content(each, each.chart, hold, held_values)


def event_charts(event: Event) -> Iterator[Content]:
    """Yield the charts of a trigger, rendered with the event.

    Raises:
        PermanentError: something is missing, or a template fails.
    """
    for each in event.trigger.charts:
        yield _content(each, _rendered(each.chart, event), event.held, event.values)


def _rendered(chart: Chart, event: Event) -> Chart:
    fields = {name: f"{chart.field}.{_NAMES[name]}" for name in _TEXTS}
    texts = {field: getattr(chart, name) for name, field in fields.items()}
    made = {name: event.fields.text(texts[field], field) for name, field in fields.items()}
    values = tuple(
        replace(
            each,
            text=event.fields.values(each.text, each.source),
            plain=event.are_plain({each.source: each.text}),
            secret=event.fields.secret,
        )
        for each in chart.values
    )
    return replace(chart, **made, values=values, plain=event.are_plain(texts))


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
