"""`bellhop import`: convert the configuration of another tool into a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellhop.cli import output
from bellhop.cli.command import Group
from bellhop.cli.completion import complete_cluster, complete_file
from bellhop.cli.options import JSON, TABLE, YAML, files_options, output_option
from bellhop.cli.output import format_count, say
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.cli.sveltos.conversion import Conversion, Converted
    from bellhop.cli.sveltos.hub import Hub

_COLUMNS = (
    output.Column("KIND", "kind"),
    output.Column("NAME", "place"),
    output.Column("RESULT", "result"),
    output.Column("NOTE", "note", prose=True),
)
_IMPORTED, _REFUSED = "imported", "refused"
_SAVE = "bellhop import sveltos -f hub.yaml --output-dir fleet"


@click.group("import", cls=Group, examples=(_SAVE,))
def command() -> None:
    """Convert the configuration of other tools."""


@command.command(
    "sveltos",
    usage=(
        "-f FILE|DIR|-... [OPTIONS]",
        "--kubeconfig FILE [--kubeconfig-context NAME] [OPTIONS]",
        "--into-cluster NAMESPACE/NAME",
    ),
    examples=(
        "bellhop import sveltos -f hub.yaml",
        _SAVE,
        "bellhop import sveltos --kubeconfig hub.kubeconfig --output-dir fleet",
        "bellhop import sveltos --into-cluster mgmt/mgmt",
    ),
)
@files_options("Sveltos' objects, ConfigMaps and Secrets, as `kubectl get -o yaml` prints them.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path),
    shell_complete=complete_file,
    help="Read the management cluster instead, and of its ConfigMaps and Secrets only"
    " those that are named.",
)
@click.option(
    "--kubeconfig-context",
    metavar="NAME",
    help="Context of the kubeconfig; its current one by default.",
)
@click.option(
    "--output-dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write one file for each imported object, readable by you only: clusters/ for"
    " `bellhop register cluster -f`, manifests/ for `bellhop apply -f`. A file with"
    " other contents is never overwritten. Without this option nothing is written.",
)
@click.option(
    "--into-cluster",
    "cluster",
    metavar="NAMESPACE/NAME",
    shell_complete=complete_cluster,
    help="Take over this registered management cluster as it is: its objects are the configuration"
    " from now on, and their profiles adopt what Sveltos deployed. Sveltos' controllers must be"
    " scaled to zero.",
)
@output_option
def sveltos(
    paths: Sequence[str],
    kubeconfig: Path | None,
    kubeconfig_context: str | None,
    folder: Path | None,
    cluster: str | None,
    form: str,
    *,
    recursive: bool,
) -> None:
    """Convert the objects of a management cluster of Sveltos, or take it over in place.

    It reports what is imported and what is refused, and writes one file for each imported object.
    It changes nothing, neither in the management cluster nor in an installation: review the folder,
    then use `bellhop register cluster -f` and `bellhop apply -f`. Profiles and triggers get the
    syncMode DryRun, so that Sveltos and Bellhop do not both deploy.

    With --into-cluster nothing is converted: no file is written, and the objects stay as they are.
    `bellhop set configuration-cluster --clear --leave-policies` gives them back to Sveltos.

    The exit code is 1 if an object is refused, and 2 if no Sveltos object is found. The other
    objects are written all the same.
    """
    from bellhop.cli.sveltos.conversion import convert

    if sum(map(bool, (paths, kubeconfig, cluster))) != 1:
        raise click.UsageError("give one of -f, --kubeconfig and --into-cluster")
    if cluster:
        if folder or form != TABLE:
            raise click.UsageError("--into-cluster writes no files and no report")
        _take_over(cluster)
        return
    if kubeconfig_context and not kubeconfig:
        raise click.UsageError("--kubeconfig-context belongs to --kubeconfig")
    with _open_hub(paths, kubeconfig, kubeconfig_context, recursive=recursive) as hub:
        try:
            found = convert(hub)
        except InvalidError as error:
            source = ", ".join(paths) or f"the cluster of '{kubeconfig}'"
            raise InvalidError(f"cannot import {source}: {error}") from error
    if form in {JSON, YAML}:
        output.print_objects([_format_report(found)], form, one=True)
    else:
        output.print_table(_COLUMNS, map(_row, found.objects), form, nothing="nothing is imported")
        _report_rest(found)
    if folder is not None:
        _write(folder, found, quiet=form in {JSON, YAML})
    if found.refused:
        parts = f"{len(found.refused)} of {format_count(len(found.objects), 'object')}"
        verb = "is" if len(found.refused) == 1 else "are"
        say(
            f"error: {parts} {verb} refused; change what the notes name, or do without;"
            " the documentation's page 'Differences from Sveltos' has the reasons",
            err=True,
        )
        click.get_current_context().exit(1)


def _take_over(cluster: str) -> None:
    from bellhop.cli.selection import find_cluster
    from bellhop.cli.session import open_installation
    from bellhop.configuration.origin import set_configuration_cluster

    here = open_installation()
    key = set_configuration_cluster(here, find_cluster(here, cluster), taken_over=True).key
    say(
        f"Cluster '{key}' holds the configuration, and what Sveltos deployed by it is taken over.",
        "`bellhop get configuration` lists the objects, and `bellhop show failures` what fails.",
    )


@contextmanager
def _open_hub(
    paths: Sequence[str], kubeconfig: Path | None, context: str | None, *, recursive: bool
) -> Iterator[Hub]:
    from bellhop.cli.sveltos.hub import ClusterHub, FilesHub

    if kubeconfig is None:
        from bellhop.cli.manifest_files import list_files, read_files

        yield FilesHub(read_files(list_files(paths, recursive=recursive)))
        return
    from bellhop.adapters.kube.client import KubeClient
    from bellhop.cli.credentials import read_kubeconfig
    from bellhop.core.address_policy import LOCAL

    kube = KubeClient(str(kubeconfig), read_kubeconfig(kubeconfig, context).kubeconfig, reach=LOCAL)
    try:
        yield ClusterHub(kube)
    finally:
        kube.close()


def _row(each: Converted) -> dict[str, Any]:
    result = _IMPORTED if each.manifests else _REFUSED
    return {
        "kind": each.kind,
        "place": each.place,
        "result": result,
        "note": " ".join(each.notes),
    }


def _format_report(found: Conversion) -> dict[str, Any]:
    """Return the report for programs, without contents of Secrets."""
    objects = [
        {
            "kind": each.kind,
            "namespace": each.namespace,
            "name": each.name,
            "result": _IMPORTED if each.manifests else _REFUSED,
            "file": _choose_path(each) if each.manifests else "",
            "notes": list(each.notes),
        }
        for each in found.objects
    ]
    omitted = [
        {"kind": kind, "count": number, "why": why}
        for (why, kind), number in sorted(found.omitted.items())
    ]
    return {"objects": objects, "omitted": omitted, "actions": found.actions}


def _report_rest(found: Conversion) -> None:
    """Print the omitted objects, and the actions that are left to the user."""
    reasons: dict[str, list[str]] = {}
    for (why, kind), number in sorted(found.omitted.items()):
        reasons.setdefault(why, []).append(f"{number} {kind}")
    for why, kinds in reasons.items():
        say(f"left out: {', '.join(kinds)}: {why}")
    for action in found.actions:
        say(f"to do: {action}")


def _write(folder: Path, found: Conversion, *, quiet: bool) -> None:
    from bellhop.cli.manifest_folder import ManifestFile, report_written, write_folder

    taken = [each for each in found.objects if each.manifests]
    files = [ManifestFile(_choose_path(each), each.manifests, each.head) for each in taken]
    report_written(folder, len(files), write_folder(folder, lambda: files), quiet=quiet)


def _choose_path(each: Converted) -> str:
    """Return the file of an object, relative to the folder."""
    from bellhop.cli.manifest_folder import name_file

    parent = "clusters" if each.kind == "SveltosCluster" else "manifests"
    return f"{parent}/{name_file(each.kind, each.namespace, each.name)}"
