"""`bellhop context`: which installation the CLI talks to."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from bellhop.cli import output
from bellhop.cli.command import Group
from bellhop.cli.completion import complete_context, complete_file
from bellhop.cli.contexts import AWS, EMBEDDED, GCP, Context, load, refuse_unknown_kind, save
from bellhop.cli.options import JSON, YAML, output_option, wrap_file_errors
from bellhop.cli.output import say
from bellhop.cli.printer import Printer, printer_options
from bellhop.cli.session import choose_context
from bellhop.errors import InvalidError

_COLUMNS = (
    output.Column("CURRENT", "current", shown=lambda value: "*" if value else ""),
    output.Column("NAME", "name"),
    output.Column("KIND", "kind"),
    output.Column("WHERE", "where"),
)
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,512}", re.ASCII)
_NOUNS = {EMBEDDED: "state in", AWS: "table", GCP: "database"}


@click.group(
    "context",
    cls=Group,
    state=False,
    examples=("bellhop context add lab --state /srv/bellhop", "bellhop context use lab"),
)
def command() -> None:
    """Choose the installation that the CLI talks to.

    A context is a name for an installation. `local` always exists, with its state in
    ~/.local/state/bellhop. BELLHOP_STATE and BELLHOP_CONTEXT take priority over the current
    context, and --state or --context over those.
    """


@command.command("list", state=False, examples=("bellhop context list",))
@printer_options(headers=False)
def list_contexts(*, printer: Printer) -> None:
    """List the contexts."""
    contexts = load(os.environ)
    rows = [
        {
            "current": each.name == contexts.current,
            "name": each.name,
            "kind": each.kind,
            "where": each.where,
        }
        for each in contexts.known.values()
    ]
    printer.present(_COLUMNS, rows, nothing="No contexts found.")


@command.command("use", state=False, examples=("bellhop context use lab",))
@click.argument("name", shell_complete=complete_context)
def use(name: str) -> None:
    """Make a context the current one."""
    contexts = load(os.environ)
    refuse_unknown_kind(contexts.find(name))
    save(contexts.use(name), os.environ)
    say(f"Now using context '{name}'.")


@command.command(
    "add",
    state=False,
    usage=(
        "NAME --state DIR",
        "NAME --aws FILE|- [--profile PROFILE] [--role-arn ARN] [--endpoint URL]",
        "NAME --gcp FILE|-",
    ),
    examples=(
        "bellhop context add lab --state /srv/bellhop",
        "terraform output -json | bellhop context add prod --aws -",
        "terraform output -json | bellhop context add prod --gcp -",
    ),
)
@click.argument("name")
@click.option(
    "--state",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="State folder of an embedded installation.",
)
@click.option(
    "--aws",
    metavar="FILE|-",
    type=click.Path(path_type=Path),
    shell_complete=complete_file,
    help="An installation on AWS: the output of `terraform output -json`, all of it or the"
    " value of the output `bellhop`; - for standard input.",
)
@click.option(
    "--gcp",
    metavar="FILE|-",
    type=click.Path(path_type=Path),
    shell_complete=complete_file,
    help="The same for an installation on Google Cloud.",
)
@click.option(
    "--profile",
    metavar="PROFILE",
    default="",
    help="Profile of the AWS configuration; by default that of AWS_PROFILE, or the SDK's choice.",
)
@click.option(
    "--role-arn",
    metavar="ARN",
    default="",
    help="Role to assume with these credentials, for example for an installation in"
    " another account.",
)
@click.option(
    "--endpoint",
    metavar="URL",
    default="",
    help="Address of AWS's services, if it is not the usual one.",
)
def add(
    *, name: str, state: Path | None, aws: Path | None, gcp: Path | None, **called: str
) -> None:
    """Add a context, or change one.

    A context of an installation in a cloud has names and addresses, and no credentials: each
    command uses those that the AWS SDK or Google's libraries find.
    """
    given = [(kind, each) for kind, each in ((AWS, aws), (GCP, gcp)) if each is not None]
    if len(given) + (state is not None) != 1:
        raise InvalidError(
            f"cannot add context '{name}': name its folder with --state DIR, or what Terraform has"
            " put out with --aws FILE or --gcp FILE"
        )
    if aws is None and any(called.values()):
        raise click.UsageError("--profile, --role-arn and --endpoint belong to --aws")
    if state is not None:
        context = Context(name, EMBEDDED, state.absolute())
    else:
        [(kind, outputs)] = given
        context = Context(name, kind, place=_place(kind, outputs, called))
    contexts = load(os.environ)
    change = "changed" if name in contexts.known else "added"
    save(contexts.add(context), os.environ)
    say(f"Context '{name}' {change}.")


def _place(kind: str, outputs: Path, called: Mapping[str, str]) -> dict[str, str]:
    from bellhop.adapters.local.files import bounded, read_at_most
    from bellhop.cli.providers.provider import LARGEST, read_outputs

    endpoint, role = called["endpoint"], called["role_arn"]
    if endpoint and not endpoint.startswith(("https://", "http://")):
        raise InvalidError(f"cannot use --endpoint '{endpoint}': it is not an http or https URL")
    if role and not _ROLE.fullmatch(role):
        raise InvalidError(
            f"cannot use --role-arn '{role}': it is not the ARN of a role, such as"
            " arn:aws:iam::123456789012:role/operator"
        )
    source = "standard input" if str(outputs) == "-" else str(outputs)
    with wrap_file_errors(f"'{source}'"):
        piped = str(outputs) == "-"
        content = (
            bounded(sys.stdin.buffer, LARGEST, source)
            if piped
            else read_at_most(Path(source), LARGEST)
        )
        text = content.decode()
    own = {key: each for key, each in called.items() if each}
    return {**read_outputs(text, source, kind), **own}


@command.command("remove", state=False, examples=("bellhop context remove lab",))
@click.argument("name", shell_complete=complete_context)
def remove(name: str) -> None:
    """Remove a context; the installation does not change. The current one cannot be removed."""
    save(load(os.environ).remove(name), os.environ)
    say(f"Context '{name}' removed.")


@command.command("show", state=False, examples=("bellhop context show -o yaml",))
@output_option
def show(form: str) -> None:
    """Show the context that commands use now, however it was chosen."""
    from bellhop.cli.providers.provider import load_provider

    context = choose_context()
    there = load_provider(context).exists(context)
    if form in {JSON, YAML}:
        output.print_objects([{**context.to_dict(), "there": there}], form, one=True)
        return
    name = context.name or "(named by --state or BELLHOP_STATE)"
    say(f"{name}: {context.kind}, {_NOUNS[context.kind]} {context.where}")
    if not there:
        say("There is no state yet; `bellhop serve`, `apply` or `register` makes the folder.")
