"""Write entries of the event log, of all threads together, a moment after they were noted."""

from __future__ import annotations

import threading
import time

from bellhop.errors import BellhopError
from bellhop.logs import Log
from bellhop.ports.clock import Clock
from bellhop.state.event_log import EventLog

_PAUSE = 0.5
"""For so long lines gather; who follows them sees them a moment later."""

_BETWEEN_TRIMS = 60.0


class Notes:
    """A thread that sleeps while nothing is noted."""

    def __init__(self, event_log: EventLog, clock: Clock, log: Log) -> None:
        self._event_log = event_log
        self._clock = clock
        self._log = log
        self._gathered = event_log.gather()
        self._stopping = threading.Event()
        self._trimmed_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="notes")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write buffered entries, and end."""
        self._stopping.set()
        self._gathered.set()
        self._thread.join()
        self._write()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._gathered.wait()
            self._stopping.wait(_PAUSE)
            self._gathered.clear()
            try:
                self._write()
            except Exception as error:  # noqa: BLE001 - the thread outlives any error
                self._log.error("Failed to write the event log", error)

    def _write(self) -> None:
        lost = self._event_log.flush()
        if lost:
            self._log.warning(
                "Lost lines of the event log: the store did not take them", lines=lost
            )
        if time.monotonic() - self._trimmed_at > _BETWEEN_TRIMS:
            self._trimmed_at = time.monotonic()
            try:
                self._event_log.trim(self._clock.now())
            except BellhopError as error:
                self._log.warning("Could not trim the event log", error=str(error))
