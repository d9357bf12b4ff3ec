"""What a process has to do for itself as time passes: renew its certificate, look for room."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

from bellhop.adapters.local.server import Server
from bellhop.errors import BellhopError
from bellhop.installation.process import Room
from bellhop.logs import Log
from bellhop.ports.clock import Clock
from bellhop.runtime.embedded.identity import ListenerIdentity

_TICK_SECONDS = 30.0
_AFTER_A_FAILURE = timedelta(minutes=10)


class Upkeep:
    """A thread that looks every half minute what is due, and does it.

    The certificate is this process's alone, and says itself when it is to be renewed; a process
    that begins anew makes a new one.
    """

    def __init__(
        self,
        clock: Clock,
        identity: ListenerIdentity,
        server: Server,
        log: Log,
        room: Callable[[], Room],
    ) -> None:
        self._clock = clock
        self._identity = identity
        self._server = server
        self._log = log
        self._room = room
        self._warned = ""
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
        self._look_for_room()
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

    def _look_for_room(self) -> None:
        """Warn once while the disk has little room, once more when it is full, and when it ends."""
        room = self._room()
        state = "full" if room.full else "low" if room.low else ""
        if state == self._warned:
            return
        self._warned = state
        if state:
            self._log.warning(
                "The disk of the state is full" if room.full else "The disk of the state fills up",
                folder=str(room.folder),
                problem=room.problem,
            )
        else:
            self._log.info("The disk of the state has free space again", folder=str(room.folder))

    def _work(self) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                self.tick()
            except Exception as error:  # noqa: BLE001 - upkeep outlives whatever it meets
                self._log.error("Failed to look what is due", error)
