"""The way into an embedded installation: its state folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from bellhop.cli.contexts import Context
from bellhop.cli.providers import Opened, Wanted, unreachable
from bellhop.errors import InvalidError
from bellhop.runtime.embedded.state import Embedded, look_into, open_state, require_state, vitals
from bellhop.settings import read


def opened(context: Context, environment: Mapping[str, str], *, create: bool) -> Embedded:
    """Open a state folder, or make it if it may be made.

    Raises:
        MissingError: there is none: a folder that was mistyped is not to look like an empty one.
    """
    if not create:
        require_state(context.state)
    return open_state(context.state, read(environment), whole=False)


def looked_into(context: Context, environment: Mapping[str, str]) -> Embedded:
    """Open a state folder in which nothing is made or changed.

    Raises:
        MissingError: there is none.
        InvalidError: it is of another version or key.
    """
    return look_into(context.state, read(environment))


def journal(context: Context, environment: Mapping[str, str], stage: str) -> NoReturn:
    """Refuse: nobody keeps what a process has written to its standard output.

    Raises:
        InvalidError: always.
    """
    del context, environment, stage
    raise InvalidError(
        "cannot read the log of an embedded installation: `bellhop serve` writes it to its"
        " standard output; `bellhop show events` shows the decisions"
    )


def managed(context: Context, opened: Opened, wanted: Wanted) -> NoReturn:
    """Refuse: one machine is nobody in a cloud.

    Raises:
        InvalidError: always.
    """
    del context, opened
    raise unreachable(wanted, "an embedded installation")


def there(context: Context) -> bool:
    """Say whether there is a state."""
    return (context.state / "key").exists()


def running(context: Context) -> bool | None:
    """Say whether a process holds the folder."""
    return vitals(context.state).running
