"""`bellhop delete`: what was applied is taken back, and what came of it withdrawn."""

from __future__ import annotations

from collections.abc import Sequence

import click

from bellhop.cli.exampled import Command
from bellhop.cli.kinds import complete_kind, shown_name
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation
from bellhop.errors import MissingError


@click.command(
    "delete",
    cls=Command,
    examples=(
        "bellhop delete -f triggers/",
        "bellhop delete eventtrigger service-network-policy",
        "bellhop delete configmap network-policy -n default",
    ),
)
@click.argument("kind", required=False, shell_complete=complete_kind)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-n", "--namespace", default="", help="Namespace of a ConfigMap or Secret; else default."
)
@click.option(
    "-f", "--filename", "paths", multiple=True, metavar="FILE|DIR|-", help="What to delete."
)
@click.option("-R", "--recursive", is_flag=True, help="Look into the folders of folders too.")
@click.option("--ignore-not-found", is_flag=True, help="What is not there is no error.")
@state_option
def command(
    kind: str | None,
    names: Sequence[str],
    namespace: str,
    paths: Sequence[str],
    *,
    recursive: bool,
    ignore_not_found: bool,
) -> None:
    """Delete manifests by file or by name; what they brought to clusters is withdrawn."""
    from bellhop.cli.deleting import listed, named

    if bool(paths) == bool(kind):
        raise click.UsageError("name what to delete: either -f FILE, or KIND and NAME")
    wanted = list(named(kind, names, namespace) if kind else listed(paths, recursive=recursive))
    here = installation()
    found: dict[tuple[str, str, str], str] = {}
    missing = []
    for stored, place, name in wanted:
        there = [
            (each, manifest)
            for each in stored
            if (manifest := here.records.manifest(each, place, name)) is not None
        ]
        for each, manifest in there:
            found[each, place, name] = shown_name(each, str(manifest["apiVersion"]), name)
        if not there:
            missing.append(f"{stored[0]} '{place}/{name}'" if place else f"{stored[0]} '{name}'")
    if found:
        here.declare.delete(found)
    for shown in found.values():
        say(f"{shown} deleted")
    if missing and not ignore_not_found:
        raise MissingError(f"cannot delete {', '.join(missing)}: there is none")
