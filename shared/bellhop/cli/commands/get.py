"""`bellhop get`: objects as a table, or as manifests."""

from __future__ import annotations

import click

from bellhop.cli import output
from bellhop.cli.asking import absent, asked, naming_options
from bellhop.cli.examples import Command
from bellhop.cli.kinds import complete_kind
from bellhop.cli.options import JSON, YAML, output_option, state_option
from bellhop.cli.session import installation


@click.command(
    "get",
    cls=Command,
    examples=(
        "bellhop get eventreports -n default -o yaml",
        "bellhop get clusters -l env=prod -o wide",
        "bellhop get clusterprofile/service-network-policy-5f0c1d2e3a4b",
    ),
)
@click.argument("kind", shell_complete=complete_kind)
@click.argument("name", required=False, default="")
@naming_options
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets in -o json|yaml.")
@output_option
@state_option
def command(
    kind: str, name: str, namespace: str, selector: str, form: str, *, show_secrets: bool
) -> None:
    """List the objects of a kind, or show one.

    Kinds are clusters (cl), eventsources (es), eventtriggers and eventbasedaddons (et, ebao),
    eventreports (er), clusterprofiles (cp), configmaps (cm) and secrets (sec). Without -n all
    namespaces are looked through.
    """
    what = asked(kind, name, namespace, selector, show_secrets=show_secrets)
    here = installation()
    view = what.kind.view
    if what.query.name and next(iter(view.rows(here, what.query)), None) is None:
        raise absent(here, what)
    if form not in {JSON, YAML}:
        nothing = f"No {what.kind.plural} found."
        output.table(view.columns, view.rows(here, what.query), form, nothing=nothing)
    elif what.query.name:
        found = list(view.manifests(here, what.query))
        output.objects(found, form, one=len(found) == 1)
    else:
        output.objects(view.manifests(here, what.query), form)
