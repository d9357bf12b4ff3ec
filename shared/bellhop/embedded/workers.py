"""Threads that feed the stages of the embedded mode, and its schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from random import random

from bellhop.embedded.state import Embedded
from bellhop.logs import Log
from bellhop.messages import Sweep
from bellhop.ports.queue import Consumer, GivenUp
from bellhop.stages.inbox import Inbox, Stage

_BATCH = 50
_WAIT = timedelta(seconds=1)
_TICK = 1.0
_COLLECTING = timedelta(hours=1)


class Workers:
    """Threads that feed the stages until they are told to stop."""

    def __init__(self, embedded: Embedded, stages: dict[str, Stage], log: Log) -> None:
        settings = embedded.installation.settings
        self._log = log
        self._embedded = embedded
        self._stopping = threading.Event()
        self._due: dict[str, datetime] = {}
        self._collected = embedded.installation.records.clock.now() - _COLLECTING
        counts = {"evaluate": 2, "deploy": settings.workers, "sweep": 2}
        self._threads = [
            threading.Thread(
                target=self._work,
                args=(
                    name,
                    embedded.queues[name],
                    Inbox(name, stage, settings, log),
                ),
                name=f"{name}-{number}",
            )
            for name, stage in stages.items()
            for number in range(counts[name])
        ]
        self._threads.append(threading.Thread(target=self._keep_time, name="schedule"))

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is in hand and end."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _work(self, name: str, queue: Consumer, inbox: Inbox) -> None:
        def once() -> None:
            for delivery, result in inbox.work(queue.receive(_BATCH, wait=_WAIT)):
                became = queue.settle(delivery, result)
                if isinstance(became, GivenUp):
                    self._log.warning(
                        "Moved a message to the dead letters", stage=name, reason=became.reason
                    )

        self._repeat(once, pause=0.0)

    def _keep_time(self) -> None:
        self._repeat(self._tick, pause=_TICK)

    def _tick(self) -> None:
        """Ask for the sweeps that are due, each cluster at its own time; finish abandoned work."""
        installation = self._embedded.installation
        records = installation.records
        interval = installation.settings.sweep_interval
        now = records.clock.now()
        for key in installation.catalogs.current().clusters:
            # Jitter keeps a fleet registered at once from being listed at once for ever.
            pause = interval * (0.9 + 0.2 * random())  # noqa: S311 - spreads load, guards nothing
            if key not in self._due:
                swept = records.health.get(key).value.swept_at
                self._due[key] = (swept or now) + pause
            if now >= self._due[key]:
                self._due[key] = now + pause
                installation.publisher.publish([Sweep(key)])
        installation.declare.resume()
        if now >= self._collected + _COLLECTING:
            records.collect(now)
            self._collected = now
        self._embedded.store.sweep_expired()

    def _repeat(self, work: Callable[[], None], *, pause: float) -> None:
        while not self._stopping.is_set():
            try:
                work()
            except Exception as error:  # noqa: BLE001 - a worker outlives whatever it meets
                self._log.error("Failed between messages", error)
                self._stopping.wait(1.0)
            self._stopping.wait(pause)
