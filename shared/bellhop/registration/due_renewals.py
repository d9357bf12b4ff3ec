"""Renewals of clusters when they are due.

Their code, with registration and certificates, is imported when the first one is due: that takes
as long as the rest of a cold start.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from bellhop.errors import BellhopError, StaleError
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.ports.store import ABSENT
from bellhop.state.delays import RENEWAL_PAUSE, renewal_timer
from bellhop.state.messages import Renew

_SOON = timedelta(seconds=30)
"""Time between two steps that are due at once, so that a mark that stays causes no busy loop."""


class Renewals:
    """Renews clusters, and sets the timers of their next renewals."""

    def __init__(self, here: Installation, log: Log) -> None:
        self._here = here
        self._log = log

    def handle(self, message: Renew) -> None:
        """Renew a cluster; a failure is logged, and the timer retries it."""
        from bellhop.registration.renewal import renew  # noqa: PLC0415 - slow, as above

        key = message.cluster
        try:
            for done in renew(self._here, key):
                self._log.info("Renewed a cluster", cluster=key, done=done)
        except BellhopError as error:
            self._log.warning("Cannot renew a cluster", cluster=key, error=str(error))
            self._set_next(key, RENEWAL_PAUSE)
        else:
            self._set_next(key, _SOON)

    def _set_next(self, key: str, pause: timedelta) -> None:
        """Set the timer to the time in the record, and not before a pause."""
        from bellhop.registration.renewal import find_next  # noqa: PLC0415 - as above

        records, name = self._here.records, renewal_timer(key)
        timer = records.timers.get(name)
        kept = records.clusters.get(key)
        at = find_next(kept.value, records.clock.now()) if kept else None
        token = timer.token if timer else ABSENT
        with suppress(StaleError):
            if at is not None:
                later = max(at, records.clock.now() + pause)
                records.timers.set(name, later, Renew(key).message().body, expect=token)
            elif timer:
                records.timers.cancel(name, expect=token)
