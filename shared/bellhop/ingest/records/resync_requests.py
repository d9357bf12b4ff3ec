"""Clusters that were looked at because their sender gave reason to, for as long as none may again.

A forwarder asks to have its cluster looked at, and a token that is signed with a key nobody knows
to have the keys read anew: each at most once a minute, whichever process it comes to.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT, Item, Store

LOOK_PAUSE = timedelta(minutes=1)
"""How often a cluster may ask to be looked at."""


class RequestLimits:
    """Which clusters have asked lately, whichever process they asked; of one sort of look."""

    def __init__(self, store: Store, partition: str) -> None:
        self._store = store
        self._partition = partition

    def ask(self, cluster: str, now: datetime) -> timedelta:
        """Let a cluster be looked at now, or say how long it is to wait; nothing is no wait.

        Of those who ask at once one is let. Who asks in a loop costs a read each time.
        """
        item = self._store.get(self._partition, cluster)
        wait = datetime.fromisoformat(item.value["until"]) - now if item else timedelta(0)
        # A clock that was ahead must not close this for long.
        if timedelta(0) < wait <= LOOK_PAUSE:
            return wait
        until = now + LOOK_PAUSE
        said = {"until": until.isoformat()}
        note = Item(self._partition, cluster, said, expires_at=until)
        try:
            self._store.put(note, expect=item.token if item else ABSENT)
        except StaleError:
            return LOOK_PAUSE
        return timedelta(0)

    def delete(self, cluster: str) -> None:
        """Forget that a cluster has asked."""
        self._store.delete(self._partition, cluster)
