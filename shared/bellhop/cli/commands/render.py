"""`bellhop render`: render templates and triggers from files, without a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellhop.cli.command import Command
from bellhop.cli.completion import complete_file
from bellhop.cli.generated import (
    ALL,
    CONFIGMAPS,
    MANIFESTS,
    PROFILES,
    explain_match,
    print_json,
    print_yaml,
)
from bellhop.cli.options import JSON, YAML, files_options
from bellhop.cli.output import print_text, say
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.diagnosis.offline_result import RenderedProfile
    from bellhop.diagnosis.source_evaluation import EvaluatedObject
    from bellhop.rendering.templates import Dialect, MissingKey
    from bellhop.state.cluster import Cluster


@click.command(
    "render",
    cls=Command,
    state=False,
    usage=(
        "TEMPLATE|- [--data FILE|-] [OPTIONS]",
        "-f FILE|DIR --object FILE|- --cluster CLUSTER [OPTIONS]",
    ),
    examples=(
        "bellhop render policy.yaml.tpl --data values.yaml",
        "bellhop render policy.yaml.j2 --data values.yaml --engine jinja2",
        "bellhop render -f triggers/ --object service.yaml --cluster prod/eu-1,env=production",
        "bellhop render -f t.yaml --object s.yaml --cluster prod/eu-1 --chart web-1.0.0.tgz",
    ),
)
@click.argument("template", required=False, metavar="[TEMPLATE|-]", shell_complete=complete_file)
@click.option(
    "--data",
    metavar="FILE|-",
    shell_complete=complete_file,
    help="The variables of TEMPLATE: one mapping, YAML or JSON; none if omitted.",
)
@click.option(
    "--engine",
    type=click.Choice(["go", "jinja2"]),
    default="go",
    show_default=True,
    help="The language of TEMPLATE.",
)
@click.option(
    "--missingkey",
    type=click.Choice(["error", "default", "zero"]),
    default="error",
    show_default=True,
    help="The result of a missing key in a Go template: an `error` (as in the pipeline),"
    " `<no value>` (`default`), or its type's `zero`.",
)
@files_options(
    "Manifests of the trigger, its source and its ConfigMaps and Secrets; may be repeated.",
    stdin=False,
)
@click.option(
    "--trigger", default="", metavar="NAME", help="Which trigger, if the files have several."
)
@click.option(
    "--object",
    "objects",
    multiple=True,
    metavar="FILE|-",
    shell_complete=complete_file,
    help="A file with objects of the source cluster or CloudEvents, or - for standard"
    " input; may be repeated.",
)
@click.option(
    "--cluster",
    metavar="NAMESPACE/NAME[,KEY=VALUE...]|FILE",
    help="The source cluster: its name and labels, or the file of a manifest with that metadata.",
)
@click.option(
    "--destination",
    "destinations",
    multiple=True,
    metavar="NAMESPACE/NAME[,KEY=VALUE...]|FILE",
    help="Another cluster that a destination selector may select; may be repeated.",
)
@click.option(
    "--chart",
    "archives",
    multiple=True,
    metavar="FILE",
    shell_complete=complete_file,
    help="The archive (.tgz) of a Helm chart that the trigger deploys; it is found by the"
    " chart's name and version. May be repeated.",
)
@click.option(
    "--download",
    is_flag=True,
    help="Download charts that are in no such archive from their repositories, with the"
    " credentials in the files.",
)
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Quote values of Secrets in errors and results; they are hidden otherwise.",
)
@click.option(
    "--force", is_flag=True, help="Every object matches: neither labels nor Lua are evaluated."
)
@click.option(
    "--files",
    "local",
    multiple=True,
    metavar="URL|KIND/NAMESPACE/NAME=PATH",
    help="A local copy of the files of a remoteURL or a Flux source: a folder, a .tar.gz or one"
    " manifest. May be repeated. Files of a Flux source are not rendered as templates, because"
    " its annotations are unknown.",
)
@click.option(
    "--show",
    type=click.Choice([ALL, PROFILES, CONFIGMAPS, MANIFESTS]),
    default=ALL,
    show_default=True,
    help="`all`, or for each profile only the ClusterProfile (`profiles`), the"
    " instantiated ConfigMaps and Secrets (`configmaps`), or the clusters' manifests"
    " (`manifests`: for `kubectl apply -f -`).",
)
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice([YAML, JSON]),
    default=YAML,
    show_default=True,
    help="Form of what a trigger generates; `json` has the objects, the reasons and the profiles.",
)
def command(  # noqa: PLR0913 - one parameter an option
    *,
    template: str | None,
    data: str | None,
    engine: Dialect,
    missingkey: MissingKey,
    paths: Sequence[str],
    trigger: str,
    objects: Sequence[str],
    cluster: str | None,
    destinations: Sequence[str],
    archives: Sequence[str],
    download: bool,
    local: Sequence[str],
    show: str,
    form: str,
    recursive: bool,
    force: bool,
    show_secrets: bool,
) -> None:
    """Render a template, or everything that a trigger would generate, offline from files.

    With TEMPLATE, its text is rendered with --data and printed. With -f, --object and --cluster,
    the trigger's source is evaluated on the objects, and everything that it would generate is
    printed: each profile, its instantiated ConfigMaps and Secrets, and for each destination the
    manifests. Helm renders charts, without a cluster and, unless --download is given, without a
    network. Files at URLs and in sources of Flux are not downloaded: --files names a local copy
    of each.
    """
    if (template is None) == (not paths):
        raise click.UsageError("name a TEMPLATE, or with -f the manifests of a trigger")
    if template is not None:
        if objects or cluster or trigger or destinations:
            raise click.UsageError("--trigger, --object and clusters go with -f, not TEMPLATE")
        _render_one(template, data, engine, missingkey)
        return
    if not objects or cluster is None:
        raise click.UsageError("a trigger needs --object and --cluster")
    if data is not None:
        raise click.UsageError("--data goes with TEMPLATE; a trigger has its own variables")
    from bellhop.adapters.sources.files.local_files import local_files
    from bellhop.cli.manifest_files import keep_last, list_files, read_files, validate
    from bellhop.diagnosis.offline_render import OfflineRender
    from bellhop.settings import read

    given = read_files(list_files(paths, recursive=recursive))
    _, declared, repeated = keep_last(given, validate(given))
    _warn(repeated)
    render = OfflineRender(
        declared,
        trigger,
        _read_cluster(cluster),
        [_read_cluster(each) for each in destinations],
        read(os.environ),
        quoting=show_secrets,
        files=local_files(local),
    )
    _warn(render.hints())
    evaluated = render.evaluate(read_files(list_files(objects, recursive=recursive)), force=force)
    for each in evaluated:
        _report_match(each, render.source().name)
    generated = _render_charts(render.generate(evaluated), show, archives, download, show_secrets)
    (print_json if form == JSON else print_yaml)(render, evaluated, generated, show)
    for each in evaluated:
        if each.error:
            # The other objects were served, as in the pipeline; the exit code reports this one.
            raise each.error


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(f"warning: {sentence}", err=True)


def _render_one(template: str, data: str | None, engine: Dialect, missing: MissingKey) -> None:
    from bellhop.cli.manifest_files import read_files, read_text
    from bellhop.gotemplate import Limits
    from bellhop.rendering.templates import TemplateText
    from bellhop.settings import read

    if engine != "go" and missing != "error":
        raise click.UsageError(
            "--missingkey is Go's; a Jinja2 template is always strict: use the default filter"
        )
    if template == data == "-":
        raise click.UsageError("TEMPLATE and --data cannot both be standard input")
    found = read_files([data]) if data is not None else []
    if len(found) > 1 or not all(isinstance(each.data, dict) for each in found):
        raise InvalidError(f"cannot take variables from '{data}': it must be one mapping")
    settings = read(os.environ)
    limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
    variables: dict[str, Any] = found[0].data if found else {}
    name = "standard input" if template == "-" else Path(template).name
    written = TemplateText(read_text(template), name, engine, missing=missing).render(
        variables, limits
    )
    print_text(written)


def _read_cluster(given: str) -> Cluster:
    """Read a cluster: the file of a manifest, or `namespace/name,label=value,…`."""
    from datetime import UTC, datetime

    from bellhop.cli.options import read_changes
    from bellhop.state.cluster import Cluster

    place, *labels = given.split(",")
    namespace, slash, name = place.partition("/")
    if Path(given).is_file():
        return _read_cluster_file(given)
    if not (slash and namespace and name):
        raise InvalidError(
            f"cannot read the cluster '{given}': write namespace/name,label=value or name a file"
        )
    found = read_changes(each for each in labels if each)
    kept = {key: value for key, value in found.items() if value is not None}
    return Cluster(namespace, name, kept, "", "", datetime.now(UTC))


def _read_cluster_file(path: str) -> Cluster:
    """Read a cluster from its manifest, with all fields that templates may read."""
    from datetime import UTC, datetime

    from bellhop.cli.manifest_files import read_files
    from bellhop.state.cluster import Cluster

    read = read_files([path])
    data = read[0].data if len(read) == 1 else None
    metadata, spec, status = (
        (data.get(part) or {}) if isinstance(data, dict) else None
        for part in ("metadata", "spec", "status")
    )
    if not (isinstance(metadata, dict) and isinstance(spec, dict) and isinstance(status, dict)):
        raise InvalidError(f"cannot read a cluster from '{path}': it must be one manifest")
    if not metadata.get("name"):
        raise InvalidError(f"cannot read a cluster from '{path}': it has no metadata.name")
    return Cluster(
        metadata.get("namespace") or "default",
        metadata["name"],
        dict(metadata.get("labels") or {}),
        str(status.get("version") or ""),
        "",
        datetime.now(UTC),
        annotations=dict(metadata.get("annotations") or {}),
        spec=spec,
    )


def _report_match(evaluated: EvaluatedObject, source: str) -> None:
    from bellhop.diagnosis.names import object_name

    if evaluated.error:
        return
    does = "matches" if evaluated.matching else "does not match"
    said = explain_match(evaluated)
    because = f": {said}" if said else ""
    say(f"{object_name(evaluated.key)} {does} EventSource '{source}'{because}", err=True)


def _render_charts(
    generated: Iterable[RenderedProfile],
    show: str,
    archives: Sequence[str],
    download: bool,  # noqa: FBT001 - as the command has them
    quoting: bool,  # noqa: FBT001
) -> Iterator[RenderedProfile]:
    """Yield profiles with the manifests of their charts, if those are shown."""
    if show not in {ALL, MANIFESTS}:
        yield from generated
        return
    from tempfile import TemporaryDirectory

    from bellhop.adapters.local.clock import SystemClock
    from bellhop.adapters.sources.charts.local_archives import LocalArchives
    from bellhop.diagnosis.offline_result import render_releases
    from bellhop.ports.charts import Helm
    from bellhop.runtime.embedded.lazy import helm
    from bellhop.settings import read

    with TemporaryDirectory(prefix="bellhop-") as folder:
        found, charts = helm(None, read(os.environ), SystemClock())
        named = LocalArchives(archives, Path(folder), found if download else None)
        for each in generated:
            yield render_releases(each, Helm(named, charts), quoting=quoting)
