"""Let something happen at the call of a method: between what a worker reads and what it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def do_nothing() -> None:
    """Only have the calls counted."""


def before_each(target: Any, method: str, act: Callable[[], object] = do_nothing) -> list[None]:
    """Act before each call of a method; return a list that grows with each."""
    real = getattr(target, method)
    calls: list[None] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        act()
        return real(*args, **kwargs)

    setattr(target, method, call)
    return calls


def before_next(target: Any, method: str, act: Callable[[], object]) -> None:
    """Act before the next call of a method."""
    left = [act]
    before_each(target, method, lambda: left and left.pop()())


def after_next(target: Any, method: str, act: Callable[[], object]) -> None:
    """Act after the next call of a method, before its caller goes on."""
    real, left = getattr(target, method), [act]

    def call(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        while left:
            left.pop()()
        return result

    setattr(target, method, call)


@contextmanager
def failing(target: Any, method: str, error: BaseException) -> Iterator[None]:
    """Raise an error at each call of a method within the block."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    real = getattr(target, method)
    setattr(target, method, fail)
    try:
        yield
    finally:
        setattr(target, method, real)
