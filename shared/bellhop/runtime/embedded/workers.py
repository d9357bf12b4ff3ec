"""All that works in the embedded mode: the consumer with its stages, the leases, the schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from bellhop.adapters.metrics import Prometheus
from bellhop.deploy.handler import Deploy
from bellhop.deploy.lease import Peers
from bellhop.deploy.reconciler import ProfileReconciler
from bellhop.events.evaluator import Evaluator
from bellhop.extras.health.notifier import HealthNotifier
from bellhop.installation.installation import Installation
from bellhop.logs import Log
from bellhop.ports.tools import NONE
from bellhop.registration.due_renewals import Renewals
from bellhop.resync.resync import Resyncer
from bellhop.runtime.embedded.consumer import Consumer, Source
from bellhop.runtime.embedded.observer import Observer
from bellhop.runtime.embedded.state import Embedded
from bellhop.runtime.embedded.timekeeper import Timekeeper
from bellhop.state.consumer import Inbox, Stage
from bellhop.state.messages import CHARTS, INBOXES
from bellhop.state.worker_pool import HELPERS, WorkerPool

_TICK = 0.5

_EXTENSIONS = 4
"""How often in a visibility timeout what is in flight is held for longer."""

_WORKERS = {
    "evaluate": 2,
    "review": 1,
    "patient": 1,
    "deploy": 2,
    "apply": 32,
    CHARTS: 4,
    "confirm": 16,
    "sweep": 16,
    "probe": 16,
}
"""Workers of each inbox. Those of the last ones wait for clusters, some of which never answer.

Each of `charts` runs Helm, which takes a hundred megabytes.
"""

_STAGES = {**INBOXES, CHARTS: "deploy"}

_RESTS = {"patient": 3}
"""So many times as long as it took a worker rests after a script that takes long."""


class Workers:
    """Works on messages and keeps the time until it is stopped."""

    def __init__(
        self,
        embedded: Embedded,
        stages: Mapping[str, Stage],
        log: Log,
        observer: Observer | None = None,
    ) -> None:
        settings = embedded.installation.settings
        self._log = log
        self._stopping = threading.Event()
        sources = {
            name: Source(
                embedded.queues[name],
                Inbox(name, stages[_STAGES[name]], settings, log),
                workers,
                _RESTS.get(name, 0),
            )
            for name, workers in _WORKERS.items()
            if _STAGES[name] in stages
        }
        self._consumer = Consumer(embedded.inboxes, sources, log, observer)
        pause = settings.visibility.total_seconds() / _EXTENSIONS
        self._threads = [
            self._repeated("leases", self._consumer.extend, pause),
            self._repeated("schedule", Timekeeper(embedded, log).tick, _TICK),
        ]

    def start(self) -> None:
        """Begin to work."""
        self._consumer.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is in flight and end."""
        # Leases are extended until the last worker has ended.
        self._consumer.stop()
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _repeated(self, name: str, work: Callable[[], object], pause: float) -> threading.Thread:
        def repeat() -> None:
            while not self._stopping.is_set():
                try:
                    work()
                except Exception as error:  # noqa: BLE001 - it outlives whatever it meets
                    self._log.error("Failed to look what is due", error)
                    self._stopping.wait(1.0)
                self._stopping.wait(pause)

        return threading.Thread(target=repeat, name=name)


def make_stages(here: Installation, peers: Peers, log: Log) -> Mapping[str, Stage]:
    """Make all stages that take messages."""
    sweep = Resyncer(here.records, here.catalogs, here.access, here.publisher, here.settings, log)
    execute = ProfileReconciler(
        here.catalogs,
        here.access,
        here.publisher,
        here.settings,
        log,
        metrics=Prometheus(here.reach.within(here.settings.egress_allow)),
        peers=peers,
        hands=WorkerPool(HELPERS),
        tools=here.tools or NONE,
    )
    return {
        "evaluate": Evaluator(here.records, here.catalogs, here.publisher, here.settings, log),
        "deploy": Deploy(here.records, here.catalogs, here.publisher, execute, here.settings),
        "sweep": HealthNotifier(here, Renewals(here, sweep, log), log),
    }
