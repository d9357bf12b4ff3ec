"""A cluster's record changed on condition, so that nobody's change of it is lost."""

from __future__ import annotations

from collections.abc import Callable

from bellhop.errors import BusyError, StaleError
from bellhop.installation.installation import Installation
from bellhop.state.record import Cluster

_TRIES = 5

Change = Callable[[Cluster], Cluster | None]


def rewrite(here: Installation, key: str, change: Change) -> Cluster | None:
    """Change a cluster's record, whatever else is changed of it meanwhile; return it as it is now.

    None if it is not there, or if `change` returns None for what is there; it may be called
    several times. Who may send follows at once, what is wired at the next sweep.

    Raises:
        BusyError: it keeps being changed by others.
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
        gate = here.records.gates.known(key)
        if gate:
            # Of the revision that it was: a gate that is opened meanwhile knows more.
            old = gate.value
            known = old.kinds, old.revision, old.listeners, old.held, old.followed
            here.records.gates.put(key, new.gate(*known))
        return new
    raise BusyError(f"cannot change cluster '{key}': it keeps being changed by others; try again")
