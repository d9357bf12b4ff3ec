"""`bellhop apply`: all documents are valid, or none is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import (
    DRY,
    applyset_options,
    dry_run_option,
    files_options,
    refuse_prune_alone,
    state_option,
)
from bellhop.cli.output import say
from bellhop.cli.results import Results, results_option
from bellhop.cli.session import installation

if TYPE_CHECKING:
    from bellhop.api.kinds import Declaration, DeclarationKey
    from bellhop.declarations.apply import WrittenManifest
    from bellhop.documents.document import Document
    from bellhop.installation.installation import Installation
    from bellhop.operations.applysets import ApplySet


@click.command(
    "apply",
    cls=Command,
    usage=(
        "-f FILE|DIR|- [--validate-only | --dry-run] [OPTIONS]",
        "-f FILE|DIR|- --applyset NAME [--prune [--allow-empty]] [OPTIONS]",
    ),
    examples=(
        "bellhop apply -f sources.yaml -f triggers/",
        "bellhop apply -f fleet/ -R --applyset fleet --prune --dry-run",
        "kubectl get configmap policies -o yaml | bellhop apply -f -",
    ),
)
@files_options(
    "Manifests: a file, a folder (`*.yaml`, `*.yml` and `*.json`, by name), or `-` for standard"
    " input; may be repeated.",
    required=True,
)
@click.option("--validate-only", is_flag=True, help="Store nothing; needs no installation.")
@applyset_options
@dry_run_option
@results_option
@state_option
def command(  # noqa: PLR0913 - one parameter an option
    paths: Sequence[str],
    applyset: str | None,
    form: str,
    *,
    recursive: bool,
    validate_only: bool,
    prune: bool,
    allow_empty: bool,
    dry_run: str | None,
) -> None:
    """Validate all manifests, then store them.

    Kinds are EventSource, EventTrigger, EventBasedAddOn, ClusterProfile, Profile, ClusterSet, Set,
    Classifier, ClusterHealthCheck, HealthCheck, RoleRequest, ConfigMap and Secret. If a document
    has an error, all errors of all documents are reported, with file, document, line, path and the
    nearest valid name, and nothing is stored. With -o name, json or yaml the results are printed
    once all objects are stored and pruned; warnings go to standard error.
    """
    from bellhop.cli.apply_files import read

    refuse_prune_alone(applyset, prune=prune, allow_empty=allow_empty)
    documents, found = read(paths, applyset, recursive=recursive, allow_empty=allow_empty)
    printer = Results(form, DRY if dry_run else "")
    if validate_only:
        for kind in found:
            printer.add(kind.key, kind.api_version, "valid")
        printer.finish()
        return
    here = installation(create=not dry_run)
    members = _members(here, applyset)
    if dry_run:
        _rehearse(here, documents, found, members, printer, prune=prune)
        printer.finish()
        return
    with members.leased() if members else nullcontext():
        left = members.left(found) if members else []
        if members and prune and left:
            # What is applied and what is pruned is one change.
            here.declare.hold_also(each.rule for each in here.declare.foresee(found, left).held)
        results = _stored(here, documents, found, printer)
        if members and prune:
            _prune(here, members, left, printer)
    printer.finish()
    _advise(here, found, results)


def _members(here: Installation, name: str | None) -> ApplySet | None:
    from bellhop.operations.applysets import ApplySet

    return ApplySet(here, name) if name is not None else None


def _rehearse(
    here: Installation,
    documents: Sequence[Document],
    found: Sequence[Declaration],
    members: ApplySet | None,
    printer: Results,
    *,
    prune: bool,
) -> None:
    """Say what would become of each object, and what would be deleted and held."""
    from bellhop.cli.apply_files import refusing_changes
    from bellhop.cli.removal_warnings import say_plan
    from bellhop.diagnosis.dependencies import warn_of_dependencies

    left = members.left(found) if members else []
    with refusing_changes(here, documents, found):
        results = here.declare.rehearse(found)
    _tell(printer, found, results)
    pruned = left if prune else []
    _tell_pruned(printer, pruned)
    say_plan(here, here.declare.foresee(found, pruned))
    _warn(warn_of_dependencies(here.declare.rehearse_catalog(found), found))


def _stored(
    here: Installation,
    documents: Sequence[Document],
    found: Sequence[Declaration],
    printer: Results,
) -> Sequence[WrittenManifest]:
    from bellhop.cli.apply_files import refusing_changes
    from bellhop.cli.removal_warnings import say_held

    with refusing_changes(here, documents, found):
        results = here.declare.apply(found)
    _tell(printer, found, results)
    say_held(here.declare.held)
    return results


def _prune(
    here: Installation, members: ApplySet, left: Sequence[DeclarationKey], printer: Results
) -> None:
    from bellhop.cli.removal_warnings import say_held

    pruned = members.prune(left)
    _tell_pruned(printer, pruned)
    if pruned:
        say_held(here.declare.held)


def _tell(
    printer: Results, found: Sequence[Declaration], results: Sequence[WrittenManifest]
) -> None:
    for each, result in zip(found, results, strict=True):
        printer.add(each.key, each.api_version, result.change)


def _tell_pruned(printer: Results, keys: Iterable[DeclarationKey]) -> None:
    from bellhop.api.kinds import KINDS

    for key in keys:
        printer.add(key, KINDS[key.kind][1][0], "pruned")


def _advise(
    here: Installation, found: Sequence[Declaration], results: Sequence[WrittenManifest]
) -> None:
    from bellhop.cli.apply_files import hints
    from bellhop.diagnosis.dependencies import warn_of_dependencies
    from bellhop.diagnosis.warnings import outlook

    _warn(outlook(here, found))
    _warn(warn_of_dependencies(here.catalogs.known(), found))
    _warn(hints(here, found, results))


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(f"warning: {sentence}", err=True)
