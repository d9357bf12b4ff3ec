"""`bellhop delete`: what was applied is taken back, and what came of it withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bellhop.cli.commands.orphans import command as orphans
from bellhop.cli.completion import ORPHANS, complete_deleted, complete_name
from bellhop.cli.examples import Command
from bellhop.cli.kinds import shown_name
from bellhop.cli.options import DRY, dry_run_option, files_options, state_option
from bellhop.cli.output import say
from bellhop.cli.selection import Selection, selection_options
from bellhop.cli.session import installation
from bellhop.errors import MissingError

if TYPE_CHECKING:
    from bellhop.cli.deletion import Find, Named
    from bellhop.installation.installation import Installation


class Delete(Command):
    """`delete KIND NAME`, and `delete orphans`, a command of its own behind the same verb."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the arguments of either command; `invoke` and --help are of the one returned."""
        # Options may come before the word: they are read up to the first that is none.
        probe = click.Context(
            orphans,
            resilient_parsing=True,
            ignore_unknown_options=True,
            allow_interspersed_args=False,
        )
        _, rest, _ = orphans.make_parser(probe).parse_args(list(args))
        if rest[:1] != [ORPHANS]:
            return super().make_context(info_name, args, parent, **extra)
        before = args[: len(args) - len(rest)]
        return orphans.make_context(f"{info_name} {ORPHANS}", before + rest[1:], parent, **extra)


@click.command(
    "delete",
    cls=Delete,
    usage=(
        "-f FILE|DIR|- [OPTIONS]",
        "KIND [NAMESPACE/]NAME... [OPTIONS]",
        "KIND -l SELECTOR | --all [OPTIONS]",
    ),
    examples=(
        "bellhop delete -f triggers/",
        "bellhop delete eventtrigger service-network-policy",
        "bellhop delete configmap network-policy -n default",
        "bellhop delete clusterprofiles -l team=web --dry-run",
        "bellhop delete orphans --cluster prod/eu-1",
    ),
)
@click.argument("kind", required=False, shell_complete=complete_deleted)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_name)
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    default="",
    help="Namespace of the objects; `default` if omitted.",
)
@selection_options
@files_options("Manifests to delete.")
@click.option("--ignore-not-found", is_flag=True, help="Ignore missing objects.")
@click.option("--withdraw", is_flag=True, help="Remove at once what the deletion guard would hold.")
@dry_run_option
@state_option
def command(  # noqa: PLR0913 - one parameter an option
    kind: str | None,
    names: Sequence[str],
    namespace: str,
    selection: Selection,
    paths: Sequence[str],
    *,
    recursive: bool,
    ignore_not_found: bool,
    withdraw: bool,
    dry_run: str | None,
) -> None:
    """Delete manifests by file or by name, and withdraw their add-ons from clusters.

    If that is too much at once, a warning names it, and the deletion guard holds it until `bellhop
    release`; with --withdraw it is removed at once. With -l or --all, all such objects of the KIND
    are deleted, in all namespaces without -n. With --filename, only identities are read: a file
    that is no longer valid can still be deleted. `bellhop delete orphans` deletes objects in a
    cluster that no profile owns.
    """
    from bellhop.cli.deletion import read_files, read_kind
    from bellhop.cli.removal_warnings import say_plan

    if bool(paths) == bool(kind) or (selection and (paths or names)):
        raise click.UsageError(
            "name what to delete: either -f FILE, or KIND and NAME, or KIND and -l or --all"
        )
    find = (
        read_kind(kind, names, namespace, selection)
        if kind
        else read_files(paths, recursive=recursive)
    )
    here = installation()
    found: dict[tuple[str, str, str], str] = {}
    missing = []
    for stored, place, name in _find(here, find, ignore_not_found=ignore_not_found):
        there = [each for each in stored if here.records.manifests.has(each, place, name)]
        for each in there:
            found[each, place, name] = shown_name(each, _version(here, each, place, name), name)
        if not there:
            missing.append(f"{stored[0]} '{place}/{name}'" if place else f"{stored[0]} '{name}'")
    if found and not dry_run:
        here.declare.delete(found)
    for shown in found.values():
        say(f"{shown} deleted{DRY if dry_run else ''}")
    if dry_run:
        plan = here.declare.foresee([], found)
        say_plan(here, plan.released() if withdraw else plan)
    elif found:
        _say_or_remove(here, withdraw=withdraw)
    if missing and not ignore_not_found:
        raise MissingError(f"cannot delete {', '.join(missing)}: there is none")


def _find(here: Installation, find: Find, *, ignore_not_found: bool) -> Sequence[Named]:
    try:
        return find(here)
    except MissingError:
        if not ignore_not_found:
            raise
        return ()


def _say_or_remove(here: Installation, *, withdraw: bool) -> None:
    """Name what the deletion would remove and is held, or remove it all the same."""
    from bellhop.cli.removal_warnings import say_held

    held = here.declare.held
    if not withdraw:
        say_held(held)
    for change in sorted({each.change for each in held}) if withdraw else ():
        here.declare.release(change, [each.rule for each in held])


def _version(here: Installation, kind: str, namespace: str, name: str) -> str:
    try:
        kept = here.records.manifests.get(kind, namespace, name)
    except MissingError:
        # What was declared is lost, and may be deleted all the same.
        return ""
    return str(kept.value["apiVersion"]) if kept else ""
