"""Commands and groups whose help ends with examples, as every one of ours does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


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
    """A group with examples."""
