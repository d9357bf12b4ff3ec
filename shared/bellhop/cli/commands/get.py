"""`bellhop get`: objects as a table, by name, or as manifests; once, or as they change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.completion import complete_kind, complete_name
from bellhop.cli.examples import Command
from bellhop.cli.manifests import print_manifests
from bellhop.cli.options import JSON, NAME, YAML, headers_option, named_output_option, state_option
from bellhop.cli.queries import Asked, absent, asked, naming_options, nothing
from bellhop.cli.session import installation

if TYPE_CHECKING:
    from bellhop.cli.output import Row
    from bellhop.installation.installation import Installation


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
@state_option
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
    eventreports (er), heldreports (held), clusterprofiles (cp), profiles (pr), clustersets (cs),
    sets (st), classifiers (cf), clusterhealthchecks (chc), healthchecks (hc), rolerequests (rr),
    configmaps (cm) and secrets (sec); several are written with commas between them. Without -n, all
    namespaces are read.
    """
    kinds = [each for each in kind.split(",") if each] or [kind]
    several = [asked(each, name, namespace, selector, show_secrets=show_secrets) for each in kinds]
    if watch and (len(several) > 1 or form in {JSON, YAML}):
        raise click.UsageError("--watch follows one kind, as a table or by name")
    here = installation()
    if form in {JSON, YAML}:
        print_manifests(here, several, form)
        return
    listed: Sequence[Row] = ()
    for number, what in enumerate(several):
        if number and form != NAME and headers:
            output.compose("")
        listed = _list(here, what, form, headers=headers)
    if watch:
        from bellhop.cli.watch import watch as follow

        follow(here, several[0], form, listed)


def _list(here: Installation, what: Asked, form: str, *, headers: bool) -> Sequence[Row]:
    rows = list(what.kind.view.rows(here, what.query))
    if not rows and what.query.name:
        raise absent(here, what)
    if not rows:
        output.say(nothing(here, what), err=True)
    elif form == NAME:
        for row in rows:
            output.say(what.kind.object_name(row))
    else:
        output.table(what.kind.view.columns, rows, form, nothing="", headers=headers)
    return rows
