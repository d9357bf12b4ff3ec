"""`bellhop apply`: store all manifests, or none if one is invalid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bellhop.cli.command import Command
from bellhop.cli.kinds import format_object_name
from bellhop.cli.options import (
    DRY,
    JSON,
    NAME,
    TABLE,
    YAML,
    applyset_options,
    dry_run_option,
    files_options,
    refuse_prune_without_set,
)
from bellhop.cli.output import print_records, say
from bellhop.cli.session import open_installation

if TYPE_CHECKING:
    from bellhop.api.kinds import Declaration, DeclarationKey
    from bellhop.declarations.apply import WrittenManifest
    from bellhop.documents.document import Document
    from bellhop.installation import Installation
    from bellhop.operations.applysets import ApplySet

F = TypeVar("F", bound=Callable[..., Any])


def results_option(command: F) -> F:
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice([TABLE, NAME, JSON, YAML]),
        default=TABLE,
        help="Print results as lines, names, JSON or YAML.",
    )(command)


class Results:
    """Prints results in a form; `after` ends each line, and programs read it as `dryRun`."""

    def __init__(self, form: str, after: str = "") -> None:
        self._form = form
        self._after = after
        self._rows: list[dict[str, Any]] = []

    def add(self, key: DeclarationKey, api_version: str, change: str) -> None:
        """Print the result of an object at once, or keep it until `finish`."""
        name = format_object_name(key.kind, api_version, key.name)
        if self._form == TABLE:
            say(f"{name} {change}{self._after}")
        elif self._form == NAME:
            say(name)
        else:
            self._rows.append(
                {
                    "apiVersion": api_version,
                    "kind": key.kind,
                    "namespace": key.namespace,
                    "name": key.name,
                    "result": change,
                    "dryRun": bool(self._after),
                }
            )

    def finish(self) -> None:
        if self._form in {JSON, YAML}:
            print_records(self._rows, self._form)


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

    Kinds are EventSource, EventTrigger, EventBasedAddOn, ClusterProfile, Profile, ClusterPromotion,
    ClusterSet, Set, Classifier, ClusterHealthCheck, HealthCheck, RoleRequest, ConfigMap and Secret.
    If a document has an error, all errors of all documents are reported, with file, document, line,
    path and the nearest valid name, and nothing is stored. With -o name, json or yaml the results
    are printed once all objects are stored and pruned; warnings go to standard error.
    """
    from bellhop.cli.apply_files import read_manifests

    refuse_prune_without_set(applyset, prune=prune, allow_empty=allow_empty)
    documents, found = read_manifests(paths, applyset, recursive=recursive, allow_empty=allow_empty)
    printer = Results(form, DRY if dry_run else "")
    if validate_only:
        for kind in found:
            printer.add(kind.key, kind.api_version, "valid")
        printer.finish()
        return
    here = open_installation(create=not dry_run)
    members = _members(here, applyset)
    if dry_run:
        _preview(here, documents, found, members, printer, prune=prune)
        printer.finish()
        return
    with members.leased() if members else nullcontext():
        left = members.left(found) if members else []
        if members and prune and left:
            # What is applied and what is pruned is one change.
            here.declare.hold_also(each.rule for each in here.declare.foresee(found, left).held)
        results = _store(here, documents, found, printer)
        if members and prune:
            _prune(here, members, left, printer)
    printer.finish()
    _warn_of_effects(here, found, results)


def _members(here: Installation, name: str | None) -> ApplySet | None:
    from bellhop.operations.applysets import ApplySet

    return ApplySet(here, name) if name is not None else None


def _preview(
    here: Installation,
    documents: Sequence[Document],
    found: Sequence[Declaration],
    members: ApplySet | None,
    printer: Results,
    *,
    prune: bool,
) -> None:
    from bellhop.cli.apply_files import locate_refused_changes
    from bellhop.cli.removal_warnings import say_plan
    from bellhop.diagnosis.warnings import warn_of_dependencies

    left = members.left(found) if members else []
    with locate_refused_changes(here, documents, found):
        results = here.declare.preview(found)
    _report_results(printer, found, results)
    pruned = left if prune else []
    _report_pruned(printer, pruned)
    say_plan(here, here.declare.foresee(found, pruned))
    _warn(warn_of_dependencies(here.declare.preview_catalog(found), found))


def _store(
    here: Installation,
    documents: Sequence[Document],
    found: Sequence[Declaration],
    printer: Results,
) -> Sequence[WrittenManifest]:
    from bellhop.cli.apply_files import locate_refused_changes
    from bellhop.cli.removal_warnings import say_held

    with locate_refused_changes(here, documents, found):
        results = here.declare.apply(found)
    _report_results(printer, found, results)
    say_held(here.declare.held)
    return results


def _prune(
    here: Installation, members: ApplySet, left: Sequence[DeclarationKey], printer: Results
) -> None:
    from bellhop.cli.removal_warnings import say_held

    pruned = members.prune(left)
    _report_pruned(printer, pruned)
    if pruned:
        say_held(here.declare.held)


def _report_results(
    printer: Results, found: Sequence[Declaration], results: Sequence[WrittenManifest]
) -> None:
    for each, result in zip(found, results, strict=True):
        printer.add(each.key, each.api_version, result.change)


def _report_pruned(printer: Results, keys: Iterable[DeclarationKey]) -> None:
    from bellhop.api.kinds import KINDS

    for key in keys:
        printer.add(key, KINDS[key.kind][1][0], "pruned")


def _warn_of_effects(
    here: Installation, found: Sequence[Declaration], results: Sequence[WrittenManifest]
) -> None:
    from bellhop.cli.apply_files import list_hints
    from bellhop.diagnosis.warnings import list_warnings, warn_of_dependencies

    _warn(list_warnings(here, found))
    _warn(warn_of_dependencies(here.catalogs.known(), found))
    _warn(list_hints(here, found, results))


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(f"warning: {sentence}", err=True)
