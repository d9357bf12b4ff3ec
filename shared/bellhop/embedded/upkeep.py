"""What has to be done as time passes while `serve` runs: certificates, and registrations."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from bellhop.adapters.local.server import Server
from bellhop.embedded.identity import Identity
from bellhop.errors import BellhopError
from bellhop.fleet.installation import Installation
from bellhop.fleet.renewal import renew, renewals_due
from bellhop.logs import Log

_TICK_SECONDS = 30.0
_AFTER_A_FAILURE = timedelta(minutes=10)


class Upkeep:
    """A thread that looks every half minute what is due, and does it."""

    def __init__(
        self, installation: Installation, identity: Identity, server: Server, log: Log
    ) -> None:
        self._here = installation
        self._identity = identity
        self._server = server
        self._log = log
        self._later: dict[str, datetime] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="upkeep")

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is in hand and end."""
        self._stopping.set()
        self._thread.join()

    def tick(self) -> None:
        """Do what is due now."""
        now = self._here.records.clock.now()
        if now >= self._identity.renew_at:
            self._renew_listener(now)
        for key in renewals_due(self._here):
            if self._stopping.is_set():
                return
            if now >= self._later.get(key, now):
                self._renew_cluster(key, now)

    def _renew_listener(self, now: datetime) -> None:
        try:
            self._server.renew(*self._identity.certificate(now))
        except BellhopError as error:
            self._identity.renew_at = now + _AFTER_A_FAILURE
            self._log.warning("Cannot renew the listener's certificate", error=str(error))
        else:
            self._log.info("Renewed the listener's certificate")

    def _renew_cluster(self, key: str, now: datetime) -> None:
        try:
            for done in renew(self._here, key):
                self._log.info("Renewed a cluster", cluster=key, done=done)
        except BellhopError as error:
            self._later[key] = now + _AFTER_A_FAILURE
            self._log.warning("Cannot renew a cluster", cluster=key, error=str(error))
        else:
            self._later.pop(key, None)

    def _work(self) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                self.tick()
            except Exception as error:  # noqa: BLE001 - upkeep outlives whatever it meets
                self._log.error("Failed to look what is due", error)
