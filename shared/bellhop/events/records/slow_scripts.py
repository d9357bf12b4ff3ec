"""Sources whose scripts take long, so that no process has to find that out anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from bellhop.errors import StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, Store
from bellhop.state.record import SlowScript
from bellhop.state.table import Table

FORGOTTEN = timedelta(days=1)
"""After how long a source that took no time is none that takes long: it may be deleted."""


class SlowScripts:
    """Paces by source."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        self._table = Table(store, SlowScript, in_key=("source",))

    def all(self) -> Iterator[SlowScript]:
        """Yield all paces."""
        for item in self._table.items("pace"):
            yield self._table.read(item.value, source=item.sort)

    def slow(self, source: str, digest: str, times: int) -> bool:
        """Note that a source took too long so many times more; say whether that is news.

        Of two who note it at once one may be lost: it is noted again as long as it lasts.
        """
        kept = self._table.get("pace", source, source=source)
        now = self._clock.now()
        new = SlowScript(source, digest, times, now)
        old = kept.value if kept and kept.value.digest == digest else None
        if old:
            new = SlowScript(source, digest, old.times + times, old.since)
        try:
            token = kept.token if kept else ABSENT
            self._table.put("pace", source, new, expect=token, expires_at=now + FORGOTTEN)
        except StaleError:
            return False
        return old is None

    def quick(self, source: str) -> None:
        """Forget that a source takes long."""
        self._table.store.delete("pace", source)
