"""`bellhop apply`: all documents are valid, or none is stored."""

from __future__ import annotations

from collections.abc import Sequence

import click

from bellhop.cli.completing import complete_file
from bellhop.cli.examples import Command
from bellhop.cli.kinds import shown_name
from bellhop.cli.options import DRY, dry_run_option, state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation
from bellhop.errors import InvalidError


@click.command(
    "apply",
    cls=Command,
    examples=(
        "bellhop apply -f sources.yaml -f triggers/",
        "kubectl get configmap policies -o yaml | bellhop apply -f -",
    ),
)
@click.option(
    "-f",
    "--filename",
    "paths",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    shell_complete=complete_file,
    help="Manifests: a file, a folder, or - for standard input; may be repeated.",
)
@click.option("-R", "--recursive", is_flag=True, help="Look into the folders of folders too.")
@click.option("--validate-only", is_flag=True, help="Store nothing, and need no installation.")
@dry_run_option
@state_option
def command(
    paths: Sequence[str], *, recursive: bool, validate_only: bool, dry_run: str | None
) -> None:
    """Validate manifests, all of them, then store them.

    Taken are EventSource, EventTrigger, EventBasedAddOn, ClusterProfile, Profile, ClusterSet, Set,
    Classifier, ClusterHealthCheck, HealthCheck, RoleRequest, ConfigMap and Secret.
    When one document has a mistake, every mistake of all documents is told and none is stored.
    """
    from bellhop.cli.applying import hints, refuse_changes
    from bellhop.cli.reading import declarations, documents, files, last_of_each

    read = documents(files(paths, recursive=recursive))
    if not read:
        raise InvalidError(f"cannot apply {', '.join(paths)}: there is no document in it")
    read, found, repeated = last_of_each(read, declarations(read))
    for sentence in repeated:
        say(f"warning: {sentence}", err=True)
    if validate_only:
        for kind in found:
            say(f"{shown_name(kind.kind, kind.api_version, kind.name)} valid")
        return
    here = installation(create=not dry_run)
    try:
        results = here.declare.rehearse(found) if dry_run else here.declare.apply(found)
    except InvalidError:
        refuse_changes(here, read, found)
        raise
    names = (shown_name(each.kind, each.api_version, each.name) for each in found)
    told = DRY if dry_run else ""
    say(*(f"{name} {each.change}{told}" for name, each in zip(names, results, strict=True)))
    from bellhop.cli.holding import say_held

    if dry_run:
        say_held(here.declare.foresee(found), dry=True)
        return
    say_held(here.declare.held)
    from bellhop.fleet.outlook import outlook

    for sentence in (*outlook(here, found), *hints(here, found, results)):
        say(f"warning: {sentence}", err=True)
