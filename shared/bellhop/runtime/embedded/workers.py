"""All that works in the embedded mode: the consumer with its stages, the leases, the schedule.

The schedule runs only when something may be due. A run reads the store some twenty times. Without
writes nothing is due before the earliest timer that the last run saw. So a tick asks one thing:
whether any process has written since. The schedule runs now and then in any case.

The clock may be set, so it is compared with the time since the machine booted. A jump is written
with the heartbeat. After a jump back, timers that the fast clock has set are pulled in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop import __version__
from bellhop.adapters.metrics import Prometheus
from bellhop.configuration.notifier import StatusNotifier
from bellhop.deploy.lease import Peers
from bellhop.deploy.reconciler import ProfileReconciler
from bellhop.errors import BellhopError
from bellhop.events.evaluator import Evaluator
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.ports.tools import NONE
from bellhop.runtime.embedded.consumer import Consumer, Observer, Source
from bellhop.runtime.embedded.state import Embedded
from bellhop.runtime.handlers import Handlers
from bellhop.runtime.handlers.configuration import ONE_PROCESS, make_status_handler
from bellhop.runtime.handlers.deploy import make_deploy_table
from bellhop.runtime.handlers.sweep import make_sweep_table
from bellhop.state.consumer import Inbox, Stage
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.messages import CHARTS, INBOXES, WriteStatus
from bellhop.state.schedule import Schedule
from bellhop.state.timers import SKEW
from bellhop.state.worker_pool import HELPERS, WorkerPool

AT_MOST = timedelta(seconds=5)
"""The longest time between two runs of the schedule."""

HEARTBEAT = timedelta(seconds=30)
"""The time between two heartbeats."""


class Timekeeper:
    """Ticks for one thread."""

    def __init__(self, embedded: Embedded, log: Log) -> None:
        here = embedded.installation
        self._embedded = embedded
        self._clock = here.records.clock
        self._schedule = Schedule(here.records, here.publisher, here.settings, log)
        self._log = log
        self._mark: object = None
        self._look_at = self._clock.now()
        self._heartbeat = WorkerHeartbeat(self._look_at, self._look_at - HEARTBEAT, __version__)
        self._ticked: tuple[datetime, timedelta] | None = None

    def tick(self) -> bool:
        """Publish what is due, finish what was begun and abandoned; say whether it looked."""
        self._check_clock()
        self._beat(self._clock.now())
        # Read before the look: what is written meanwhile is reason for another one.
        mark, now = self._embedded.store.mark(), self._clock.now()
        if mark == self._mark and self._look_at - AT_MOST <= now < self._look_at:
            return False
        self._look()
        due = self._embedded.installation.records.timers.next_at()
        self._mark, self._look_at = mark, min(due or now + AT_MOST, now + AT_MOST)
        return True

    def _check_clock(self) -> None:
        """See whether the clock was set since the last tick, or went back before this process."""
        now, steady = self._clock.now(), self._clock.steady()
        before, self._ticked = self._ticked, (now, steady)
        if before is None:
            self._schedule.pull_in()
            return
        jumped = (now - before[0]) - (steady - before[1])
        if abs(jumped) < SKEW:
            return
        seconds = round(jumped.total_seconds(), 1)
        off = self._heartbeat.off + seconds
        self._log.warning("The clock of this machine jumped", seconds=seconds, off=off)
        self._heartbeat = replace(
            self._heartbeat, at=now - HEARTBEAT, jumped_at=now, jumped=seconds, off=round(off, 1)
        )
        if jumped < timedelta(0):
            self._schedule.pull_in()

    def _beat(self, now: datetime) -> None:
        """Write that we are there; what cannot be written is seen by that."""
        if timedelta(0) <= now - self._heartbeat.at < HEARTBEAT:
            return
        self._heartbeat = replace(self._heartbeat, at=now)
        with suppress(BellhopError):
            self._embedded.installation.records.pulses.put(self._heartbeat)

    def _look(self) -> None:
        self._schedule.tick()
        self._embedded.installation.declare.resume()
        self._embedded.store.delete_expired()


_TICK = 0.5

_EXTENSIONS = 4
"""How often in a visibility timeout what is in flight is held for longer."""

_WORKERS = {
    "evaluate": 2,
    "review": 1,
    "patient": 1,
    "deploy": 2,
    "apply": 32,
    "status": 8,
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
            self._repeat("leases", self._consumer.extend, pause),
            self._repeat("schedule", Timekeeper(embedded, log).tick, _TICK),
        ]

    def start(self) -> None:
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

    def _repeat(self, name: str, work: Callable[[], object], pause: float) -> threading.Thread:
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
    reconciler = ProfileReconciler(
        here.catalogs,
        here.access,
        here.publisher,
        here.settings,
        log,
        metrics=Prometheus(here.reach.within(here.settings.egress_allow)),
        peers=peers,
        pool=WorkerPool(HELPERS),
        tools=here.tools or NONE,
    )
    deploy = make_deploy_table(
        here.records, here.catalogs, here.publisher, here.settings, reconciler
    )
    deploy[WriteStatus] = make_status_handler(
        here.records, here.catalogs, here.access, here.settings, log, pause=ONE_PROCESS
    )
    follow = StatusNotifier(here.records, here.catalogs, here.publisher).follow
    return {
        "evaluate": Evaluator(here.records, here.catalogs, here.publisher, here.settings, log),
        "deploy": Handlers("deploy", deploy, follow),
        "sweep": Handlers("sweep", make_sweep_table(here, log), follow),
    }
