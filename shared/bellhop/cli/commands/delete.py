"""`bellhop delete`: what was applied is taken back, and what came of it withdrawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from bellhop.cli.exampled import Command
from bellhop.cli.kinds import complete_kind, kind_named, shown_name
from bellhop.cli.options import state_option
from bellhop.cli.reading import documents, files
from bellhop.cli.session import installation
from bellhop.errors import InvalidError, MissingError
from bellhop.model.kinds import KINDS

Wanted = tuple[tuple[str, ...], str, str]
"""The kinds of manifests it may be, namespace and name."""


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
    if bool(paths) == bool(kind):
        raise click.UsageError("name what to delete: either -f FILE, or KIND and NAME")
    wanted = list(_named(kind, names, namespace) if kind else _listed(paths, recursive=recursive))
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
        click.echo(f"{shown} deleted")
    if missing and not ignore_not_found:
        raise MissingError(f"cannot delete {', '.join(missing)}: there is none")


def _named(kind: str, names: Sequence[str], namespace: str) -> Iterator[Wanted]:
    first, slash, name = kind.partition("/")
    known = kind_named(first)
    names = [name, *names] if slash else names
    if not known.stored:
        hint = (
            "`bellhop deregister cluster` takes a cluster out"
            if known.singular == "cluster"
            else "Bellhop writes them itself"
        )
        raise InvalidError(f"cannot delete {known.plural}; {hint}")
    if not names:
        raise click.UsageError(f"name the {known.plural} to delete")
    place = (namespace or "default") if known.namespaced else ""
    for each in names:
        yield known.stored, place, each


def _listed(paths: Sequence[str], *, recursive: bool) -> Iterator[Wanted]:
    """Read identities alone: what is no longer valid can still be deleted."""
    for document in documents(files(paths, recursive=recursive), validate=False):
        data: Any = document.data if isinstance(document.data, dict) else {}
        metadata = data.get("metadata")
        kind = data.get("kind")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if kind not in KINDS or not isinstance(name, str):
            raise InvalidError(
                "cannot tell what to delete: it takes a known kind, and metadata.name",
                where=document.where(),
            )
        namespaced = KINDS[kind][0].namespaced
        yield (kind,), str(metadata.get("namespace") or "default") if namespaced else "", name
