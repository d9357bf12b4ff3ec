"""`bellhop delete`: delete manifests and withdraw their add-ons, or delete orphans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from bellhop.cli.command import Command
from bellhop.cli.completion import ORPHANS, complete_deleted, complete_name
from bellhop.cli.kinds import KindName, find_kind, format_object_name
from bellhop.cli.options import DRY, dry_run_option, files_options
from bellhop.cli.output import say
from bellhop.cli.selection import (
    Selection,
    cluster_option,
    find_cluster,
    select_applied,
    selection_options,
)
from bellhop.cli.session import open_installation
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.installation import Installation


_OF_STAGE = (
    "remove the stage from it, or delete all of it by `bellhop delete clusterpromotion {promotion}`"
)


@click.command(
    "orphans",
    cls=Command,
    usage=("--cluster [NAMESPACE/]NAME",),
    examples=("bellhop delete orphans --cluster prod/eu-1",),
)
@cluster_option
def orphans(namespace: str, cluster: str) -> None:
    """Delete from a cluster the orphans that `bellhop show orphans` lists.

    Each object is read again: it stays if a profile owns it by now, or if somebody re-created it.
    """
    from bellhop.diagnosis.names import object_name
    from bellhop.diagnosis.orphans import remove_orphans

    if not cluster:
        raise click.UsageError("name the cluster: --cluster NAMESPACE/NAME")
    found = False
    here = open_installation()
    for orphan, deleted in remove_orphans(here, find_cluster(here, cluster, namespace)):
        found = True
        verb = "Deleted" if deleted else "Kept"
        say(f"{verb} {object_name(orphan.key)} of '{orphan.finding.profile}'.")
    if not found:
        say("No orphans found.", err=True)


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
    here = open_installation()
    found: dict[tuple[str, str, str], str] = {}
    missing = []
    for stored, place, name in _find(here, find, ignore_not_found=ignore_not_found):
        there = [each for each in stored if here.records.manifests.has(each, place, name)]
        for each in there:
            found[each, place, name] = format_object_name(
                each, _version(here, each, place, name), name
            )
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
        _report_or_remove(here, withdraw=withdraw)
    if missing and not ignore_not_found:
        raise MissingError(f"cannot delete {', '.join(missing)}: there is none")


def _find(here: Installation, find: Find, *, ignore_not_found: bool) -> Sequence[Target]:
    from bellhop.operations.promotions import refuse_stage_profile

    try:
        found = find(here)
    except MissingError:
        if not ignore_not_found:
            raise
        return ()
    for stored, _, name in found:
        if "ClusterProfile" in stored:
            refuse_stage_profile(here, name, "delete", _OF_STAGE)
    return found


def _report_or_remove(here: Installation, *, withdraw: bool) -> None:
    """Name the removals that the guard holds, or release them with `withdraw`."""
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


Target = tuple[tuple[str, ...], str, str]
"""The kinds of manifests it may be, namespace and name."""

Find: TypeAlias = Callable[["Installation"], Sequence[Target]]
"""Find the objects that a command line names in an installation."""


def read_kind(kind: str, names: Sequence[str], namespace: str, selection: Selection) -> Find:
    """Read KIND and NAME..., -l or --all; mistakes in names are reported before anything opens."""
    if selection:
        return lambda here: list(list_selected(here, kind, selection, namespace))
    found = list(read_names(kind, names, namespace))
    return lambda _: found


def read_files(paths: Sequence[str], *, recursive: bool) -> Find:
    found = list(read_identities(paths, recursive=recursive))
    return lambda _: found


def read_names(kind: str, names: Sequence[str], namespace: str) -> Iterator[Target]:
    """Read KIND NAME..., or KIND/NAME; a name may have its namespace before it."""
    first, slash, name = kind.partition("/")
    known = find_kind(first)
    names = [name, *names] if slash else names
    _refuse_not_stored(known)
    if not names:
        raise click.UsageError(f"name the {known.plural} to delete")
    for each in names:
        place, _, name = each.rpartition("/")
        if place and not known.namespaced:
            raise InvalidError(f"cannot delete '{each}': {known.plural} have no namespace")
        if place and namespace not in ("", place):
            raise InvalidError(f"'{each}' and -n {namespace} name two namespaces")
        place = (place or namespace or "default") if known.namespaced else ""
        yield known.stored, place, name


def list_selected(
    here: Installation, kind: str, selection: Selection, namespace: str
) -> Iterator[Target]:
    known = find_kind(kind)
    _refuse_not_stored(known)
    for row in select_applied(here, kind, selection, namespace):
        place = str(row["namespace"]) if known.namespaced else ""
        yield known.stored, place, str(row["name"])


def _refuse_not_stored(known: KindName) -> None:
    if not known.stored:
        hint = (
            "`bellhop deregister cluster` takes a cluster out"
            if known.singular == "cluster"
            else "Bellhop writes them itself"
        )
        raise InvalidError(f"cannot delete {known.plural}; {hint}")


def read_identities(paths: Sequence[str], *, recursive: bool) -> Iterator[Target]:
    """Read only the identities in files: an invalid manifest can still be deleted."""
    from bellhop.api.kinds import KINDS, key_of
    from bellhop.api.sveltos_cluster import KIND as CLUSTER
    from bellhop.cli.manifest_files import list_files, read_files

    for document in read_files(list_files(paths, recursive=recursive), validate=False):
        data: Any = document.data if isinstance(document.data, dict) else {}
        metadata = data.get("metadata")
        kind = data.get("kind")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if kind == CLUSTER and isinstance(name, str):
            place = metadata.get("namespace") or "default"
            raise InvalidError(
                f"cannot delete {CLUSTER} '{place}/{name}'; `bellhop deregister cluster"
                f" {place}/{name}` takes the cluster out",
                where=document.where(),
            )
        if kind not in KINDS or not isinstance(name, str):
            raise InvalidError(
                "cannot determine what to delete: it takes a known kind, and metadata.name",
                where=document.where(),
            )
        key = key_of(data)
        # An EventTrigger and an EventBasedAddOn are one kind.
        yield find_kind(kind).stored or (kind,), key.namespace, key.name
