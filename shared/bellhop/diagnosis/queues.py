"""What is in all queues, asked for at once: a cloud takes a second to show one's dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bellhop.installation.installation import Installation
from bellhop.ports.queue import Backlog, DeadLetter

_MANY = 10_000

S = TypeVar("S")
T = TypeVar("T")

Letters = Mapping[str, Sequence[DeadLetter]]
"""Dead letters by inbox, oldest first."""


def backlogs(here: Installation) -> Mapping[str, Backlog]:
    """Count what is to be done, by inbox."""
    return _each(here.queues, lambda queue: queue.backlog())


def dead_letters(here: Installation) -> Letters:
    """Look at all messages that were given up."""
    return _each(here.dead, lambda letters: letters.list(limit=_MANY))


def _each(several: Mapping[str, S], ask: Callable[[S], T]) -> Mapping[str, T]:
    with ThreadPoolExecutor(max(len(several), 1), thread_name_prefix="queues") as threads:
        return dict(zip(several, threads.map(ask, several.values()), strict=True))
