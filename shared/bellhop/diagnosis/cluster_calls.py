"""Calls clusters now, several at once and with little patience, for somebody who waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import TypeVar

from bellhop.core.gvk import GVK
from bellhop.errors import BellhopError, UnreachableError
from bellhop.installation.installation import Installation
from bellhop.installation.process import Ticking

LONG = timedelta(seconds=60)
"""A cluster that was reached within this time is not called to see whether it answers."""

_MOST = 64
_AT_ONCE = 16
_SECONDS = 4.0
_NAMESPACE = GVK("", "v1", "Namespace")
T = TypeVar("T")


def unanswered(here: Installation, keys: Iterable[str]) -> dict[str, str]:
    """Call some clusters as `silent` does, from the machine whose process works on them.

    Functions of a cloud may reach clusters that this machine does not: none is called for these.
    """
    return {} if isinstance(here.vitals, Ticking) else silent(here, keys)


def silent(here: Installation, keys: Iterable[str] | None = None) -> dict[str, str]:
    """Call the clusters that were not reached lately; return what those met that do not answer.

    Of all clusters, or of some. The records know of a cluster only how it was at its last sweep. Of
    very many those are called that were not reached for longest. Who is known not to answer is not
    called.
    """
    now = here.records.clock.now()
    waiting = []
    for key in here.catalogs.known().clusters if keys is None else keys:
        swept_at = here.records.health.head(key).swept_at
        if (swept_at is None or now - swept_at > LONG) and here.records.circuits.get(key) is None:
            waiting.append((swept_at is not None, swept_at or now, key))
    keys = [key for _, _, key in sorted(waiting)[:_MOST]]
    late = f"it did not answer within {_SECONDS:g} s"
    answers = at_once(keys, lambda key: _call(here, key), _SECONDS)
    return {key: said for key in keys if (said := answers.get(key, late))}


def at_once(keys: Iterable[str], ask: Callable[[str], T], seconds: float) -> dict[str, T]:
    """Ask about several clusters at once; return the answers that came in time.

    Who does not answer keeps its thread, which ends by itself and holds up nobody's end. What
    fails by then, as it may where the state was closed meanwhile, is nobody's.

    Raises:
        Exception: asking failed, in time.
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

    for _ in several[:_AT_ONCE]:
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
    """Return what a call of a cluster met that nobody answered; empty for any answer."""
    try:
        here.access.open(key).get(_NAMESPACE, "", "kube-system")
    except UnreachableError as error:
        return str(error)
    except BellhopError:
        # Whoever refuses has answered; what else is wrong the next sweep says.
        return ""
    return ""
