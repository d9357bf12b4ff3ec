"""Installations on one machine, held so that nobody works on them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellhop.cli.contexts import EMBEDDED
from bellhop.cli.session import chosen


@contextmanager
def at_rest(*, create: bool = False) -> Iterator[None]:
    """Hold the chosen installation, as `bellhop serve` does; one in a cloud sees its mark.

    Raises:
        BusyError: `bellhop serve` works on it.
    """
    context = chosen()
    if context.kind != EMBEDDED:
        yield
        return
    from bellhop.embedded.state import make_folder, only_one, require_state

    if create:
        make_folder(context.state)
    else:
        require_state(context.state)
    with only_one(context.state):
        yield
