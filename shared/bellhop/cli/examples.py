"""Commands and groups with the forms in which they are typed, and with examples."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any

import click

PROFILES = ("clusterprofile", "profile", "rolerequest")
"""Kinds of which names are told apart by the kind before them."""

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
    """A command with examples; its first argument may have its kind before it.

    `kinds` are those of what the command names: `rollback clusterprofile web` is
    `rollback ClusterProfile/web`, and `resync cluster prod/eu-1` is `resync prod/eu-1`.
    """

    def __init__(self, *args: Any, kinds: Collection[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._kinds = kinds

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments after a kind before a name has become a part of the name."""
        return super().parse_args(ctx, self._joined(args) if self._kinds else args)

    def _joined(self, args: list[str]) -> list[str]:
        from bellhop.cli.kinds import singular

        names = list(takewhile(lambda word: not word.startswith("-"), args))
        kind = singular(names[0]) if len(names) > 1 else ""
        if kind not in self._kinds:
            return args
        before = f"{kind}/" if kind in PROFILES else ""
        return [*(f"{before}{name}" for name in names[1:]), *args[len(names) :]]


class Group(Exampled, click.Group):
    """A group with examples, which names the nearest command where there is none."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; what is mistyped is told with a guess, importing none of them."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1, cutoff=_NEAR)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"there is no command '{args[0]}'{hint}", ctx) from error
