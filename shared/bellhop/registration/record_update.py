"""Updates of a cluster that happen as a whole: no other writer and no Ctrl-C comes between."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bellhop.errors import BusyError, ConflictError, StaleError
from bellhop.installation import Installation
from bellhop.state.cluster import Cluster

_TRIES = 5

Change = Callable[[Cluster], Cluster | None]


def refuse_configured(here: Installation, verb: str, key: str) -> None:
    """Refuse to change a cluster by a command that a SveltosCluster has registered.

    Raises:
        ConflictError: the configuration cluster holds its object.
    """
    namespace, _, name = key.partition("/")
    if here.records.configured.holds("SveltosCluster", namespace, name):
        raise ConflictError(
            f"cannot {verb} cluster '{key}': SveltosCluster '{key}' of the configuration cluster"
            " has registered it; change it there with kubectl"
        )


def update_cluster(here: Installation, key: str, change: Change) -> Cluster | None:
    """Change a cluster's record despite concurrent changes; return it.

    None if it does not exist, or if `change`, which may be called several times, returns None.
    Ingest policy follows at once, the webhook with the next resync.

    Raises:
        BusyError: other writers keep winning.
    """
    for _ in range(_TRIES):
        kept = here.records.clusters.get(key)
        new = change(kept.value) if kept else None
        if kept is None or new is None:
            return None
        try:
            here.records.clusters.put(new, expect=kept.token)
        except StaleError:
            continue
        here.records.catalog.change("clusters")
        gate = here.records.gates.get_or_none(key)
        if gate:
            # Of the revision that it was: a gate that is opened meanwhile knows more.
            old = gate.value
            known = old.kinds, old.revision, old.listeners, old.held, old.followed, old.configured
            here.records.gates.put(key, new.gate(*known))
        return new
    raise BusyError(f"cannot change cluster '{key}': it keeps being changed by others; try again")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a Ctrl-C wait until the block is done: it must happen as a whole or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before: Callable[[int, Any], Any] | int | None = signal.signal(
        signal.SIGINT, lambda number, _frame: waiting.append(number)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt
