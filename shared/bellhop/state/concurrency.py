"""Conditional writes that are tried again: no worker locks a record, each writes what it has read.

The store refuses a write where another worker wrote since the read. The loser reads again and
decides again; so a function that is decorated here may run several times, and has no effect that
may not be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from bellhop.errors import LostWriteError, StaleError

RETRIES = 8
"""Times that a lost conditional write is tried again with what is there then."""

P = ParamSpec("P")
T = TypeVar("T")


def until_written(
    goal: str, times: int = RETRIES, reason: str = "other writers keep winning"
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Call a function again while its conditional write is lost to another writer.

    `goal` is what the function does, for the error; `{name}` in it is an argument.

    Raises:
        StaleError: it lost as many writes as it has `times`.
    """

    def decorate(attempt: Callable[P, T]) -> Callable[P, T]:
        @wraps(attempt)
        def repeat(*args: P.args, **kwargs: P.kwargs) -> T:
            lost = None
            for _ in range(times):
                try:
                    return attempt(*args, **kwargs)
                except LostWriteError as error:
                    lost = error
            shown = goal.format_map(signature(attempt).bind(*args, **kwargs).arguments)
            raise StaleError(f"cannot {shown}: {reason}") from lost

        return repeat

    return decorate


def until_settled(
    goal: str, times: int = RETRIES
) -> Callable[[Callable[P, bool]], Callable[P, None]]:
    """Call a function until it returns True: until what it read was still so after its write.

    `goal` is what the function does, for the error; `{name}` in it is an argument.

    Raises:
        StaleError: it returned False as often as it has `times`.
    """

    def decorate(attempt: Callable[P, bool]) -> Callable[P, None]:
        @wraps(attempt)
        def repeat(*args: P.args, **kwargs: P.kwargs) -> None:
            for _ in range(times):
                if attempt(*args, **kwargs):
                    return
            shown = goal.format_map(signature(attempt).bind(*args, **kwargs).arguments)
            raise StaleError(f"cannot {shown}: what it reads changes all the time")

        return repeat

    return decorate
