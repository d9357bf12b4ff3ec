"""Does the renewals that are due, beside the sweeps.

What they need, registering and certificates among it, is loaded when the first one is due: that
takes as long as all the rest of a cold sweep.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from bellhop.errors import BellhopError, StaleError
from bellhop.installation.installation import Installation
from bellhop.logs import Log
from bellhop.ports.store import ABSENT
from bellhop.state.consumer import Stage
from bellhop.state.delays import RENEWAL_PAUSE, renewal_timer
from bellhop.state.messages import Envelope, Renew

_SOON = timedelta(seconds=30)
"""Between two steps that are due at once: no mark that stays keeps anybody busy."""


class Renewals:
    """The sweep stage, and beside it the renewals: they register anew, which is no stage's work."""

    def __init__(self, here: Installation, sweep: Stage, log: Log) -> None:
        self._here = here
        self._sweep = sweep
        self._log = log

    def handle(self, message: Envelope) -> None:
        """Do one message's work, as the sweep stage says."""
        if isinstance(message, Renew):
            self._renew(message.cluster)
        else:
            self._sweep.handle(message)

    def _renew(self, key: str) -> None:
        from bellhop.registration.renewal import renew  # noqa: PLC0415 - dear, as above

        try:
            for done in renew(self._here, key):
                self._log.info("Renewed a cluster", cluster=key, done=done)
        except BellhopError as error:
            self._log.warning("Cannot renew a cluster", cluster=key, error=str(error))
            self._set_next(key, RENEWAL_PAUSE)
        else:
            self._set_next(key, _SOON)

    def _set_next(self, key: str, pause: timedelta) -> None:
        """Set the timer for when the record says, and not before a pause."""
        from bellhop.registration.renewal import next_at  # noqa: PLC0415 - as above

        records, name = self._here.records, renewal_timer(key)
        timer = records.timers.get(name)
        kept = records.clusters.get(key)
        at = next_at(kept.value, records.clock.now()) if kept else None
        token = timer.token if timer else ABSENT
        with suppress(StaleError):
            if at is not None:
                later = max(at, records.clock.now() + pause)
                records.timers.set(name, later, Renew(key).message().body, expect=token)
            elif timer:
                records.timers.cancel(name, expect=token)
