"""Commands and groups with the forms in which they are typed, and with examples."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import click

from bellhop.cli.kinds import singular, split_kind

_CLUSTER = "cluster"

_NEAR = 0.65
"""How alike a word and a command are, of 1, where the one may be meant by the other."""


class Exampled(click.Command):
    """What commands and groups have in common."""

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), usage: Sequence[str] = (), **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)
        self.usage = tuple(usage)

    def forms(self, ctx: click.Context) -> Sequence[str]:
        """Return the forms in which a command is typed: its own, or the one that click derives."""
        return self.usage or (" ".join(self.collect_usage_pieces(ctx)),)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each form on a line of its own, the first one after `Usage:`."""
        first, *others = self.forms(ctx)
        formatter.write_usage(ctx.command_path, first)
        for form in others:
            formatter.write_usage(ctx.command_path, form, prefix=" " * len("Usage: "))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each on a line of its own."""
        del ctx
        if self.examples:
            with formatter.section("Example" if len(self.examples) == 1 else "Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class Command(Exampled):
    """A command with examples."""


class Group(Exampled, click.Group):
    """A group with examples, which names the nearest command where there is none."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; what is mistyped is told with a guess, importing none of them."""
        try:
            return super().resolve_command(ctx, self._by_kind(ctx, args))
        except click.exceptions.NoSuchCommand as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1, cutoff=_NEAR)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"there is no command '{args[0]}'{hint}", ctx) from error

    def _by_kind(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `clusters NAME` and `cluster/NAME` as the command `cluster` and a name."""
        first, *rest = args
        if _CLUSTER not in self.list_commands(ctx):
            return args
        if singular(first) == _CLUSTER:
            return [_CLUSTER, *rest]
        kind, name = split_kind(first, [_CLUSTER])
        return [kind, name, *rest] if kind else args
