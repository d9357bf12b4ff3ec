"""`bellhop describe`: the story of an object, in sections."""

from __future__ import annotations

import click

from bellhop.cli.completion import complete_kind, complete_name
from bellhop.cli.describe import Story
from bellhop.cli.examples import Command
from bellhop.cli.manifests import print_manifests
from bellhop.cli.options import JSON, TABLE, YAML, state_option
from bellhop.cli.output import say
from bellhop.cli.queries import absent, asked, naming_options, nothing
from bellhop.cli.session import installation


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
@state_option
def command(
    kind: str, name: str, namespace: str, selector: str, form: str, *, show_secrets: bool
) -> None:
    """Show one object, or every object of a kind, in sections."""
    what = asked(kind, name, namespace, selector, show_secrets=show_secrets)
    here = installation()
    if form != TABLE:
        print_manifests(here, [what], form)
        return
    view = what.kind.view
    if view.describe(here, what.query, Story()):
        return
    if what.query.name:
        raise absent(here, what)
    say(nothing(here, what), err=True)
