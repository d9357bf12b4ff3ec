"""Clusters that were looked at because their forwarder had asked, for as long as none may again."""

from __future__ import annotations

from datetime import datetime, timedelta

from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT, Item, Store

LOOK_PAUSE = timedelta(minutes=1)
"""How often a cluster may ask to be looked at."""


class Looks:
    """Which clusters have asked lately, whichever process they asked."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def ask(self, cluster: str, now: datetime) -> timedelta:
        """Let a cluster be looked at now, or say how long it is to wait; nothing is no wait.

        Of those who ask at once one is let. Who asks in a loop costs a read each time.
        """
        item = self._store.get("look", cluster)
        wait = datetime.fromisoformat(item.value["until"]) - now if item else timedelta(0)
        # A clock that was ahead must not close this for long.
        if timedelta(0) < wait <= LOOK_PAUSE:
            return wait
        until = now + LOOK_PAUSE
        note = Item("look", cluster, {"until": until.isoformat()}, expires_at=until)
        try:
            self._store.put(note, expect=item.token if item else ABSENT)
        except StaleError:
            return LOOK_PAUSE
        return timedelta(0)

    def delete(self, cluster: str) -> None:
        """Forget that a cluster has asked."""
        self._store.delete("look", cluster)
