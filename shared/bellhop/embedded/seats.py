"""Seats at an inbox: one of its threads is left to whoever has none of them.

Shares take turns when messages are received. That alone would leave the single event of one
cluster waiting until a thread is done with what it took of another's thousand.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Sequence

from bellhop.ports.queue import Delivery


class Seats:
    """Knows for whom each thread of an inbox works, so that no share has all of them.

    A thread has its seat until it has received again, or found nothing to receive: whoever is woken
    by what it settled is not to think that there is a free one, and whoever rests sits nowhere. Two
    that receive at the same moment may miss each other, and one event waits for a piece of work
    then.
    """

    def __init__(self, threads: int) -> None:
        self._most = threads - 1
        self._lock = threading.Lock()
        self._sits: dict[int, frozenset[str]] = {}

    def take(self, deliveries: Sequence[Delivery]) -> bool:
        """Have this thread work for those whose messages these are, and for nobody else.

        Say whether a share has room now that was full for whoever waits.
        """
        me, shares = threading.get_ident(), frozenset(each.message.share for each in deliveries)
        with self._lock:
            left = self._sits.pop(me, frozenset()) - shares
            if shares:
                self._sits[me] = shares
            # With the seat that this one had it was as many as a share may have.
            return any(
                sum(share in each for each in self._sits.values()) == self._most - 1
                for share in left
            )

    def leave(self) -> None:
        """Have this thread work for nobody: it is going to wait, and looks for itself before."""
        self.take(())

    def full(self) -> Collection[str]:
        """Name the shares for which all other threads work, or all but one of those there may be.

        What is left for this thread is for the others.
        """
        return self._full(threading.get_ident())

    def full_for_all(self) -> Collection[str]:
        """Name the shares for which no thread may work but those that do."""
        return self._full(None)

    def _full(self, me: int | None) -> Collection[str]:
        with self._lock:
            others = Counter(
                share for thread, shares in self._sits.items() if thread != me for share in shares
            )
        return [share for share, count in others.items() if count >= self._most > 0]
