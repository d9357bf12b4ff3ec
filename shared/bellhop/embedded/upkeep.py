"""What a process has to do for itself as time passes: renew the listener's certificate."""

from __future__ import annotations

import threading
from datetime import timedelta

from bellhop.adapters.local.server import Server
from bellhop.embedded.identity import ListenerIdentity
from bellhop.errors import BellhopError
from bellhop.logs import Log
from bellhop.ports.clock import Clock

_TICK_SECONDS = 30.0
_AFTER_A_FAILURE = timedelta(minutes=10)


class Upkeep:
    """A thread that looks every half minute what is due, and does it.

    The certificate is this process's alone, and says itself when it is to be renewed; a process
    that begins anew makes a new one.
    """

    def __init__(self, clock: Clock, identity: ListenerIdentity, server: Server, log: Log) -> None:
        self._clock = clock
        self._identity = identity
        self._server = server
        self._log = log
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
        now = self._clock.now()
        if now < self._identity.renew_at:
            return
        try:
            self._server.renew(*self._identity.certificate(now))
        except BellhopError as error:
            self._identity.renew_at = now + _AFTER_A_FAILURE
            self._log.warning("Cannot renew the listener's certificate", error=str(error))
        else:
            self._log.info("Renewed the listener's certificate")

    def _work(self) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                self.tick()
            except Exception as error:  # noqa: BLE001 - upkeep outlives whatever it meets
                self._log.error("Failed to look what is due", error)
