"""Commands and groups whose help ends with examples, as every one of ours does."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import click

_NEAR = 0.65
"""How alike a word and a command are, of 1, where the one may be meant by the other."""


class _Exampled(click.Command):
    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each on a line of its own."""
        del ctx
        if self.examples:
            with formatter.section("Example" if len(self.examples) == 1 else "Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class Command(_Exampled):
    """A command with examples."""


class Group(_Exampled, click.Group):
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
