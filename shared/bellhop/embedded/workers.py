"""Threads that feed the stages of the embedded mode, and its schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

from bellhop.embedded.state import Embedded
from bellhop.logs import Log
from bellhop.ports.queue import Consumer, Delivery, GivenUp
from bellhop.stages.inbox import Inbox, Stage
from bellhop.stages.schedule import Schedule

_BATCH = 50
_WAIT = timedelta(seconds=1)
_TICK = 0.5
_EXTENSIONS = 4
"""How often in a visibility timeout what is in hand is held for longer."""


class Workers:
    """Threads that feed the stages until they are told to stop."""

    def __init__(self, embedded: Embedded, stages: dict[str, Stage], log: Log) -> None:
        settings = embedded.installation.settings
        self._log = log
        self._embedded = embedded
        self._stopping = threading.Event()
        here = embedded.installation
        self._schedule = Schedule(here.records, here.publisher, settings, log)
        self._in_hand: dict[str, tuple[Consumer, Delivery]] = {}
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
        pause = settings.visibility.total_seconds() / _EXTENSIONS
        self._threads.append(
            threading.Thread(target=self._repeat, args=(self._hold_on, pause), name="holding")
        )

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
            deliveries = queue.receive(_BATCH, wait=_WAIT)
            me = threading.current_thread().name
            if deliveries:
                # They are of one group, which is held as a whole.
                self._in_hand[me] = queue, deliveries[-1]
            try:
                work(deliveries)
            finally:
                self._in_hand.pop(me, None)

        def work(deliveries: Sequence[Delivery]) -> None:
            for delivery, result in inbox.work(deliveries):
                became = queue.settle(delivery, result)
                if isinstance(became, GivenUp):
                    self._log.warning(
                        "Moved a message to the dead letters", stage=name, reason=became.reason
                    )

        self._repeat(once, 0.0)

    def _keep_time(self) -> None:
        self._repeat(self._tick, _TICK)

    def _tick(self) -> None:
        """Publish what is due; finish what was begun and abandoned."""
        self._schedule.tick()
        self._embedded.installation.declare.resume()
        self._embedded.store.sweep_expired()

    def _hold_on(self) -> None:
        """Keep what is in hand from being given to others while its worker is alive."""
        for queue, delivery in list(self._in_hand.values()):
            queue.extend(delivery)

    def _repeat(self, work: Callable[[], None], pause: float) -> None:
        while not self._stopping.is_set():
            try:
                work()
            except Exception as error:  # noqa: BLE001 - a worker outlives whatever it meets
                self._log.error("Failed between messages", error)
                self._stopping.wait(1.0)
            self._stopping.wait(pause)
