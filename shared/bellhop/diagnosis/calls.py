"""Calls to clusters and queues, in parallel and with a time limit, for a command that waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import TypeVar

from bellhop.core.gvk import GVK
from bellhop.errors import BellhopError, UnreachableError
from bellhop.installation import Installation, Ticking
from bellhop.ports.queue import Backlog, DeadLetter

FRESH = timedelta(seconds=60)
"""A cluster that was reached within this time is not called to see whether it answers."""

_MAX_CLUSTERS = 64
_PARALLEL = 16
_SECONDS = 4.0
_NAMESPACE = GVK("", "v1", "Namespace")
_MAX_LETTERS = 10_000

S = TypeVar("S")
T = TypeVar("T")


def find_unanswered_here(here: Installation, keys: Iterable[str]) -> dict[str, str]:
    """Call clusters as `find_unanswered` does; none if functions of a cloud do the work.

    These may reach clusters that this machine does not.
    """
    return {} if isinstance(here.vitals, Ticking) else find_unanswered(here, keys)


def find_unanswered(here: Installation, keys: Iterable[str] | None = None) -> dict[str, str]:
    """Call the clusters that were not reached lately; return the errors of unanswered calls.

    Of very many those are called that were reached longest ago. A cluster with an open circuit
    breaker is not called.
    """
    now = here.records.clock.now()
    waiting = []
    for key in here.catalogs.known().clusters if keys is None else keys:
        listed = here.records.health.head(key).swept_at
        if (listed is None or now - listed > FRESH) and here.records.circuits.get(key) is None:
            waiting.append((listed is not None, listed or now, key))
    keys = [key for _, _, key in sorted(waiting)[:_MAX_CLUSTERS]]
    late = f"it did not answer within {_SECONDS:g} s"
    answers = ask_all(keys, lambda key: _call(here, key), _SECONDS)
    return {key: said for key in keys if (said := answers.get(key, late))}


def ask_all(keys: Iterable[str], ask: Callable[[str], T], seconds: float) -> dict[str, T]:
    """Ask about several clusters in parallel; return the answers that came in time.

    A call that does not return keeps its daemon thread. An error that comes too late is dropped:
    the state may be closed by then. An error in time is raised.
    """
    waiting: SimpleQueue[str] = SimpleQueue()
    answers: SimpleQueue[tuple[str, T | Exception]] = SimpleQueue()
    several = list(keys)
    for key in several:
        waiting.put(key)

    def work() -> None:
        try:
            while True:
                key = waiting.get_nowait()
                try:
                    answers.put((key, ask(key)))
                except Exception as error:  # noqa: BLE001 - raised by who waits, if still there
                    answers.put((key, error))
        except Empty:
            return

    for _ in several[:_PARALLEL]:
        threading.Thread(target=work, name="calling", daemon=True).start()
    found: dict[str, T] = {}
    ends = time.monotonic() + seconds
    while len(found) < len(several):
        try:
            key, answer = answers.get(timeout=max(0.0, ends - time.monotonic()))
        except Empty:
            break
        if isinstance(answer, Exception):
            raise answer
        found[key] = answer
    return found


def _call(here: Installation, key: str) -> str:
    """Return the error of a call that was not answered; a refusal is an answer."""
    try:
        here.access.open(key).get(_NAMESPACE, "", "kube-system")
    except UnreachableError as error:
        return str(error)
    except BellhopError:
        # A refusal is an answer; the next resync reports other errors.
        return ""
    return ""


Letters = Mapping[str, Sequence[DeadLetter]]
"""Dead letters by inbox, oldest first."""


def read_backlogs(here: Installation) -> Mapping[str, Backlog]:
    return _ask_each(here.queues, lambda queue: queue.backlog())


def list_dead_letters(here: Installation) -> Letters:
    return _ask_each(here.dead, lambda letters: letters.list(limit=_MAX_LETTERS))


def _ask_each(several: Mapping[str, S], ask: Callable[[S], T]) -> Mapping[str, T]:
    with ThreadPoolExecutor(max(len(several), 1), thread_name_prefix="queues") as threads:
        return dict(zip(several, threads.map(ask, several.values()), strict=True))
