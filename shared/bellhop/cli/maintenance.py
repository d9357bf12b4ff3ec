"""Installations on one machine, held so that nobody works on them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellhop.cli.contexts import EMBEDDED
from bellhop.cli.session import chosen


@contextmanager
def at_rest(refusal: str, *, create: bool = False) -> Iterator[None]:
    """Hold the chosen installation, as `bellhop serve` does; one in a cloud sees its mark.

    `refusal` begins the sentence of a command that cannot have it.

    Raises:
        BusyError: `bellhop serve` works on it.
    """
    context = chosen()
    if context.kind != EMBEDDED:
        yield
        return
    from bellhop.runtime.embedded.state import make_folder, only_one, require_state

    if create:
        make_folder(context.state)
    else:
        require_state(context.state)
    with only_one(context.state, refusal):
        yield
