"""How far long work is: a line on a terminal that is written over, and gone when the work is done.

It goes to standard error, so that what a command prints is the same with it.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from bellhop.cli.output import overwrite

_SELDOM = 100
"""Of what is quick one is told in so many."""


class Progress:
    """Tells of work while the block lasts."""

    def __enter__(self) -> Self:
        """Begin; nothing is told yet."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        """Take away what was told, be the work done or not."""
        self.clear()

    def ask(self, name: str, number: int, total: int) -> None:
        """Tell who is asked next, of how many."""
        overwrite(f"asking {name} ({number} of {total}) …")

    def count(self, number: int, what: str) -> None:
        """Tell how many are done, now and then."""
        if number % _SELDOM == 1:
            overwrite(f"{number} {what} …")

    def wait(self, text: str) -> None:
        """Tell what is waited for."""
        overwrite(f"{text} …")

    def clear(self) -> None:
        """Make room for a line of what the command prints."""
        overwrite("")
