"""`bellhop get` and `bellhop describe`: objects as a table, as manifests or in sections."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bellhop.cli import output
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_kind, complete_name
from bellhop.cli.options import (
    JSON,
    NAME,
    TABLE,
    YAML,
    headers_option,
    named_output_option,
)
from bellhop.cli.output import say
from bellhop.cli.printer import Description
from bellhop.cli.queries import (
    ObjectQuery,
    explain_nothing,
    make_missing_error,
    naming_options,
    read_query,
)
from bellhop.cli.session import open_installation

if TYPE_CHECKING:
    from bellhop.cli.output import Row
    from bellhop.installation import Installation


@click.command(
    "get",
    cls=Command,
    usage=("KIND[,KIND...] [NAME] [OPTIONS]",),
    examples=(
        "bellhop get eventreports -n default -o yaml",
        "bellhop get clusters -l env=prod -o wide",
        "bellhop get eventsources,eventtriggers --no-headers",
        "bellhop get clusterprofiles -w",
    ),
)
@click.argument("kind", shell_complete=complete_kind)
@click.argument("name", required=False, default="", shell_complete=complete_name)
@naming_options
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="Watch for changes. Ctrl-C ends it with exit code 0.",
)
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Show values of Secrets, also of those in a report; without it they read"
    " `<hidden>`, which cannot be applied by mistake.",
)
@headers_option
@named_output_option
def command(  # noqa: PLR0913 - one parameter an option
    kind: str,
    name: str,
    namespace: str,
    selector: str,
    form: str,
    *,
    watch: bool,
    show_secrets: bool,
    headers: bool,
) -> None:
    """List the objects of one or several kinds, or show one object.

    Kinds are clusters (cl), eventsources (es), eventtriggers and eventbasedaddons (et, ebao),
    eventreports (er), heldreports (held), clusterprofiles (cp), profiles (pr), clusterpromotions
    (cpr), clustersets (cs),
    sets (st), classifiers (cf), clusterhealthchecks (chc), healthchecks (hc), rolerequests (rr),
    configmaps (cm) and secrets (sec); several are written with commas between them. Without -n, all
    namespaces are read. configuration (conf) lists all of them, with where each is kept.
    """
    kinds = [each for each in kind.split(",") if each] or [kind]
    several = [
        read_query(each, name, namespace, selector, show_secrets=show_secrets) for each in kinds
    ]
    if watch and (len(several) > 1 or form in {JSON, YAML}):
        raise click.UsageError("--watch follows one kind, as a table or by name")
    here = open_installation()
    if form in {JSON, YAML}:
        print_manifests(here, several, form)
        return
    listed: Sequence[Row] = ()
    for number, what in enumerate(several):
        if number and form != NAME and headers:
            output.print_styled("")
        listed = _list(here, what, form, headers=headers)
    if watch:
        watch_rows(here, several[0], form, listed)


def _list(here: Installation, what: ObjectQuery, form: str, *, headers: bool) -> Sequence[Row]:
    rows = list(what.kind.view.rows(here, what.query))
    if not rows and what.query.name:
        raise make_missing_error(here, what)
    if not rows:
        output.say(explain_nothing(here, what), err=True)
    elif form == NAME:
        for row in rows:
            output.say(what.kind.object_name(row))
    else:
        output.print_table(what.kind.view.columns, rows, form, nothing="", headers=headers)
    return rows


@click.command(
    "describe",
    cls=Command,
    examples=(
        "bellhop describe eventtrigger service-network-policy",
        "bellhop describe cluster prod/eu-1",
        "bellhop describe clusterprofile kyverno -o yaml",
    ),
)
@click.argument("kind", shell_complete=complete_kind)
@click.argument("name", required=False, default="", shell_complete=complete_name)
@naming_options
@click.option(
    "--show-secrets", is_flag=True, help="Show values of Secrets; they are hidden otherwise."
)
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice([TABLE, JSON, YAML]),
    default=TABLE,
    help="Sections, or the manifests with their status, as `bellhop get` prints them.",
)
def describe(
    kind: str, name: str, namespace: str, selector: str, form: str, *, show_secrets: bool
) -> None:
    """Show one object, or every object of a kind, in sections."""
    what = read_query(kind, name, namespace, selector, show_secrets=show_secrets)
    here = open_installation()
    if form != TABLE:
        print_manifests(here, [what], form)
        return
    view = what.kind.view
    if view.describe(here, what.query, Description()):
        return
    if what.query.name:
        raise make_missing_error(here, what)
    say(explain_nothing(here, what), err=True)


def print_manifests(here: Installation, several: Sequence[ObjectQuery], form: str) -> None:
    """Print manifests: a named one by itself, others as one list, as they come."""
    for what in several:
        place, name = what.query.namespace, what.query.name
        if (place or name) and next(iter(what.kind.view.rows(here, what.query)), None) is None:
            if name:
                raise make_missing_error(here, what)
            explain_nothing(here, what)
    found = (each for what in several for each in what.kind.view.manifests(here, what.query))
    if not any(what.query.name for what in several):
        output.print_objects(found, form)
        return
    named = list(found)
    output.print_objects(named, form, one=len(named) == 1)


_PAUSE = 0.5
_AGEING = ("age", "changed", "lastSweep")
"""Columns that change by themselves."""

Rows = Mapping[str, Mapping[str, Any]]


def watch_rows(
    here: Installation, what: ObjectQuery, form: str, listed: Iterable[Mapping[str, Any]]
) -> None:
    """Print changes of listed rows until Ctrl-C, which is no error."""
    try:
        before = _index_rows(what, listed)
        while True:
            time.sleep(_PAUSE)
            now = _index_rows(what, what.kind.view.rows(here, what.query))
            for name, row in now.items():
                if _strip_ages(before.get(name)) != _strip_ages(row):
                    _print_row(what, name, row, form)
            for name in before.keys() - now.keys():
                output.say(f"{name} deleted", err=True)
            before = now
    except KeyboardInterrupt:
        output.say("", err=True)


def _index_rows(what: ObjectQuery, rows: Iterable[Mapping[str, Any]]) -> Rows:
    return {what.kind.object_name(row): row for row in rows}


def _strip_ages(row: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return row and {key: value for key, value in row.items() if key not in _AGEING}


def _print_row(what: ObjectQuery, name: str, row: Mapping[str, Any], form: str) -> None:
    if form == NAME:
        output.say(name)
    else:
        output.print_table(what.kind.view.columns, [row], form, nothing="", headers=False)
    output.flush()
