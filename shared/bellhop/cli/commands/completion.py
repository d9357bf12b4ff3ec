"""`bellhop completion`: the script that makes a shell complete commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from bellhop.cli.command import Command
from bellhop.cli.output import print_styled

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=Command,
    state=False,
    examples=(
        "source <(bellhop completion bash)",
        "bellhop completion fish > ~/.config/fish/completions/bellhop.fish",
    ),
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands.

    Options, kinds, names, contexts and files are completed, too.
    """
    found = get_completion_class(shell)
    assert found is not None
    script = found(ctx.find_root().command, {}, "bellhop", "_BELLHOP_COMPLETE").source()
    # click parts the type from the value at every comma, and a list of kinds has some.
    print_styled(script.replace('string split ","', 'string split -m 1 ","'))
