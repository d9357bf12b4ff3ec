"""Commands and groups with the forms in which they are typed, and with examples."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import click

from bellhop.cli.kinds import singular_name, split_kind
from bellhop.cli.options import state_options

_CLUSTER = "cluster"

_NEAR = 0.65
"""The least likeness, of 1, between a word and a command that is suggested for it."""


class Exampled(click.Command):
    """The base of commands and groups; with `state` they have --state and --context."""

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        usage: Sequence[str] = (),
        state: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.params += state_options() if state else []
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
        del ctx
        if self.examples:
            with formatter.section("Example" if len(self.examples) == 1 else "Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class Command(Exampled):
    """A command with examples."""


class Group(Exampled, click.Group):
    """A group with examples, which suggests the nearest command for a mistyped one."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or suggest the nearest one without importing any."""
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
        if singular_name(first) == _CLUSTER:
            return [_CLUSTER, *rest]
        kind, name = split_kind(first, [_CLUSTER])
        return [kind, name, *rest] if kind else args
