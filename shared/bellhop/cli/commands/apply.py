"""`bellhop apply`: all documents are valid, or none is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from bellhop.cli.exampled import Command
from bellhop.cli.installation import Installation
from bellhop.cli.kinds import shown_name
from bellhop.cli.options import state_option
from bellhop.cli.reading import documents, files, kinds
from bellhop.cli.session import installation
from bellhop.errors import InvalidError
from bellhop.model.document import Document, InvalidDocuments
from bellhop.model.kinds import EventTrigger, Kind, of


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
    help="Manifests: a file, a folder, or - for standard input; may be repeated.",
)
@click.option("-R", "--recursive", is_flag=True, help="Look into the folders of folders too.")
@click.option("--validate-only", is_flag=True, help="Store nothing, and need no installation.")
@state_option
def command(paths: Sequence[str], *, recursive: bool, validate_only: bool) -> None:
    """Validate manifests, all of them, then store them.

    Taken are EventSource, EventTrigger, EventBasedAddOn, ClusterProfile, ConfigMap and Secret.
    When one document has a mistake, every mistake of all documents is told and none is stored.
    """
    read = documents(files(paths, recursive=recursive))
    if not read:
        raise InvalidError(f"cannot apply {', '.join(paths)}: there is no document in it")
    found = kinds(read)
    if validate_only:
        for kind in found:
            click.echo(f"{shown_name(kind.kind, kind.api_version, kind.name)} valid")
        return
    here = installation()
    _refuse_changes(here, read, found)
    results = here.declare.apply(found)
    for kind, result in zip(found, results, strict=True):
        name = shown_name(kind.kind, kind.api_version, kind.name)
        click.echo(f"{name} {result.change}")
    for sentence in _missing(here, found):
        click.echo(f"warning: {sentence}", err=True)


def _refuse_changes(here: Installation, read: Sequence[Document], found: Sequence[Kind]) -> None:
    """Tell every change that may not be, with its place; Declare would tell the first alone."""
    problems = []
    for document, kind in zip(read, found, strict=True):
        manifest = here.records.manifest(*kind.key)
        old = of(manifest) if manifest is not None else None
        if not isinstance(kind, EventTrigger) or not isinstance(old, EventTrigger):
            continue
        try:
            kind.refuse_change(old)
        except InvalidError as error:
            sentence = str(error).removeprefix(f"{error.where}: ")
            where = document.where(tuple(error.where.split(".")))
            problems.append(InvalidError(sentence, where=where))
    if problems:
        raise InvalidDocuments(problems)


def _missing(here: Installation, found: Sequence[Kind]) -> Iterator[str]:
    """Say what triggers name and nobody has applied; it may come later, or be a typing error."""
    for kind in found:
        if not isinstance(kind, EventTrigger):
            continue
        source = kind.event_source_name
        if "{{" not in source and here.records.manifest("EventSource", "", source) is None:
            yield f"{kind.kind} '{kind.name}' names EventSource '{source}', which is not there yet"
        for ref in kind.policy_refs:
            if ref.optional or not ref.namespace or "{{" in ref.namespace + ref.name:
                continue
            if here.records.manifest(ref.kind, ref.namespace, ref.name) is None:
                yield (
                    f"{kind.kind} '{kind.name}' names {ref.kind} '{ref.namespace}/{ref.name}',"
                    " which is not there yet"
                )
