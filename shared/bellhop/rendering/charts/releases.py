"""Releases of a profile in one cluster: their names and values, rendered for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from bellhop.api.helm import values_problem
from bellhop.core.digest import digest
from bellhop.core.gvk import Identity
from bellhop.core.names import label_value_problem, namespace_problem
from bellhop.errors import InvalidError, PermanentError
from bellhop.rendering import secrecy
from bellhop.rendering.charts.credentials import login_for
from bellhop.rendering.inputs import MissingInputError
from bellhop.rendering.templates import RenderContext
from bellhop.state.chart import Chart, Options, Place, release_key
from bellhop.state.cluster_text import HeldText
from bellhop.state.content import Content, Handling, PatchText, artifact_of, flux_path

_NAMES = {
    "repository": "repositoryURL",
    "chart": "chartName",
    "version": "chartVersion",
    "release": "releaseName",
    "namespace": "releaseNamespace",
}
_RELEASE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?")


class Desired(Struct, frozen=True):
    """The desired state of a release in a cluster; no error may quote a `secret` one.

    The digest covers all that deploying it writes down, and no credentials. The chart of one with a
    `source` is in the artifact of that, which is an object of Flux.
    """

    key: Identity
    place: Place
    values: tuple[str, ...]
    chart: Chart
    digest: str
    ref: str
    how: Handling
    patches: tuple[PatchText, ...] = ()
    secret: bool = False
    source: Mapping[str, Any] | None = None
    sources: tuple[str, ...] = ()
    """The reference that each of the values comes from."""

    def check_values(self) -> None:
        """Check that Helm can read the values, before it is called.

        Raises:
            InvalidError: one is no mapping; the message names where it is from.
        """
        for source, text in zip(self.sources, self.values, strict=True):
            problem = values_problem(text)
            if problem:
                why = "it is not a mapping in YAML" if self.secret else problem
                raise InvalidError(why, where=source)


def desired(content: Content, context: RenderContext) -> Desired:
    """Return the release of a chart for a cluster.

    Raises:
        MissingInputError: what its values or credentials are to be taken from is not there.
        TemplateError: a template fails.
        InvalidError: what was rendered names no release, or is made of a Secret's value.
    """
    chart = content.chart
    assert chart
    for_it = [each for each in chart.values if each.is_for(context.key)]
    secret = context.secret or any(each.secret for each in for_it)
    with secrecy.withhold_unforeseen(f"cannot render {chart.field}", secret=secret):
        names = _names(chart, context)
        found = list(_values(for_it, context))
        values = tuple(text for _, text in found)
        patches = _patches(content, context)
        public = replace(context, resources={})
        chart = replace(
            chart,
            install=_options(chart, chart.install, public),
            upgrade=_options(chart, chart.upgrade, public),
        )
    _refuse_names(chart, names)
    logins = [each for each in chart.logins if each.is_for(context.key)]
    _refuse_missing(logins)
    login = login_for(names["repository"], logins, chart.login)
    how = [chart.install, chart.upgrade, chart.removal, chart.unwanted]
    source = context.resources.get(chart.field) if flux_path(names["repository"]) else None
    revision = [artifact_of(source)] if source else []
    return Desired(
        release_key(names["namespace"], names["release"]),
        Place(names["repository"], _chart(names), names["version"], login),
        values,
        chart,
        digest([names, values, to_builtins([*how, patches, content.how]), *revision]),
        content.ref,
        content.how,
        patches,
        secret or any(each.secret for each in patches),
        source,
        tuple(source for source, _ in found),
    )


def release_of(chart: Chart, context: RenderContext) -> Identity | None:
    """Return the release of a chart for a cluster; None if it is to be removed, or cannot be known.

    It cannot where its name is made of objects that templates read: the context has none.
    """
    if chart.unwanted:
        return None
    texts = (
        HeldText(getattr(chart, name), chart.field, plain=chart.plain)
        for name in ("namespace", "release")
    )
    try:
        namespace, name = (context.render(each).strip() for each in texts)
    except PermanentError:
        return None
    return release_key(namespace, name)


def _options(chart: Chart, options: Options, context: RenderContext) -> Options:
    """Render the texts of options with the cluster, and nothing else: Helm's record has them."""

    def rendered(text: str) -> str:
        return context.render(HeldText(text, f"{chart.field}.options"))

    labels = {name: rendered(text) for name, text in options.labels.items()}
    for name, value in labels.items():
        if problem := label_value_problem(value):
            raise InvalidError(problem, where=f"{chart.field}.options.labels.{name}")
    return replace(options, labels=labels, description=rendered(options.description))


def _names(chart: Chart, context: RenderContext) -> dict[str, str]:
    """Render what a release is called and made of; none of it may be a Secret's value."""
    made: dict[str, str] = {}
    known = context.withheld()
    for name, field in _NAMES.items():
        written = getattr(chart, name)
        text = HeldText(written, f"{chart.field}.{field}", plain=chart.plain)
        made[name] = context.render(text).strip()
        if name in ("repository", "chart"):
            scheme, found, rest = made[name].partition("://")
            made[name] = f"{scheme.lower()}{found}{rest}" if found else made[name]
        known.knowing(written).refuse_names([(field, made[name])], chart.field)
    return made


def _values(texts: list[HeldText], context: RenderContext) -> Iterator[tuple[str, str]]:
    """Yield values, each after where it is from."""
    _refuse_missing(texts)
    for each in texts:
        made = context.render(each)
        if made.strip():
            yield each.source, made


def _patches(content: Content, context: RenderContext) -> tuple[PatchText, ...]:
    """Return the patches of a chart's objects, rendered; they are read once, to see what is wrong.

    Raises:
        InvalidError: one is no patch.
    """
    if not content.how.patches:
        return ()
    from bellhop.rendering.patches.texts import patches_of, rendered_for  # noqa: PLC0415 - as there

    found = rendered_for(content.how.patches, context)
    for each in found:
        patches_of(each)
    return found


def _refuse_missing(texts: list[HeldText]) -> None:
    for each in texts:
        if each.missing:
            raise MissingInputError(each.missing)


def _chart(names: Mapping[str, str]) -> str:
    """Return the name of a chart; before it a repository's may stand, by which Helm knows that."""
    if any(names[each].lower().startswith("oci://") for each in ("repository", "chart")):
        return names["chart"]
    return names["chart"].rpartition("/")[2]


def _refuse_names(chart: Chart, names: Mapping[str, str]) -> None:
    """Refuse what names no release, before Helm is asked.

    Raises:
        InvalidError: it does not; the message says what is wrong.
    """
    release, namespace = names["release"], names["namespace"]
    if not _RELEASE.fullmatch(release):
        raise InvalidError(
            f"{release[:60]!r} is not the name of a release; it takes at most 53 lower-case"
            " letters, digits, '-' and '.'",
            where=f"{chart.field}.releaseName",
        )
    if problem := namespace_problem(namespace) if namespace else "it is empty":
        raise InvalidError(problem, where=f"{chart.field}.releaseNamespace")
