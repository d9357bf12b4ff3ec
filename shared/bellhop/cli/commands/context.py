"""`bellhop context`: which installation the CLI talks to."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bellhop.cli import output
from bellhop.cli.completing import complete_context
from bellhop.cli.contexts import EMBEDDED, PROVIDERS, Context, load, require_embedded, save
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import JSON, YAML, output_option
from bellhop.cli.output import say
from bellhop.cli.session import chosen
from bellhop.errors import InvalidError

_COLUMNS = (
    output.Column("CURRENT", "current", shown=lambda value: "*" if value else ""),
    output.Column("NAME", "name"),
    output.Column("KIND", "kind"),
    output.Column("STATE", "state"),
)


@click.group(
    "context",
    cls=Group,
    examples=("bellhop context add lab --state /srv/bellhop", "bellhop context use lab"),
)
def command() -> None:
    """Choose the installation that the CLI talks to.

    A context is a name for an installation. Without any, `local` keeps its state in
    ~/.local/state/bellhop. BELLHOP_STATE and BELLHOP_CONTEXT go before the current context, and
    --state and --context before those.
    """


@command.command("list", cls=Command, examples=("bellhop context list",))
@output_option
def list_contexts(form: str) -> None:
    """List the contexts."""
    contexts = load(os.environ)
    rows = [
        {
            "current": each.name == contexts.current,
            "name": each.name,
            "kind": each.kind,
            "state": str(each.state),
        }
        for each in contexts.known.values()
    ]
    output.present(_COLUMNS, rows, form, nothing="No contexts found.")


@command.command("use", cls=Command, examples=("bellhop context use lab",))
@click.argument("name", shell_complete=complete_context)
def use(name: str) -> None:
    """Make a context the current one."""
    contexts = load(os.environ)
    require_embedded(contexts.named(name).kind, name)
    save(contexts.using(name), os.environ)
    say(f"Now using context '{name}'.")


@command.command("add", cls=Command, examples=("bellhop context add lab --state /srv/bellhop",))
@click.argument("name")
@click.option("--state", type=click.Path(path_type=Path), help="State folder.")
@click.option(
    "--kind",
    type=click.Choice(PROVIDERS),
    default=EMBEDDED,
    show_default=True,
    help="Kind of the installation.",
)
def add(name: str, state: Path | None, kind: str) -> None:
    """Add a context, or change one."""
    require_embedded(kind, name)
    if state is None:
        raise InvalidError(f"cannot add context '{name}': name its folder with --state DIR")
    contexts = load(os.environ)
    change = "changed" if name in contexts.known else "added"
    save(contexts.adding(Context(name, kind, state.absolute())), os.environ)
    say(f"Context '{name}' {change}.")


@command.command("show", cls=Command, examples=("bellhop context show -o yaml",))
@output_option
def show(form: str) -> None:
    """Show the context that commands use now, whatever chose it."""
    context = chosen()
    row = {
        "name": context.name,
        "kind": context.kind,
        "state": str(context.state),
        "there": (context.state / "key").exists(),
    }
    if form in {JSON, YAML}:
        output.objects([row], form, one=True)
        return
    name = context.name or "(named by --state or BELLHOP_STATE)"
    say(f"{name}: {context.kind}, state in {context.state}")
    if not row["there"]:
        say("There is no state yet; `bellhop serve`, `apply` or `register` makes the folder.")
