"""Ticks of Cloud Scheduler, for what publishes what is due, and what Terraform is to be told.

    tick ─► heartbeat ─► what rested in the queues, what Pub/Sub has buried ─► timers ─► the guard

Nothing of Terraform's calls a function before it destroys. So an object lies in a bucket of its
own for as long as clusters are registered, since nobody can destroy a bucket that has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellhop.adapters.gcp.queue import wake
from bellhop.runtime.cloud.due import Due
from bellhop.runtime.cloud.ready import Ready
from bellhop.runtime.cloud.tick import Ticker
from bellhop.runtime.gcp.destroy_guard import Guard
from bellhop.runtime.gcp.resources import Resources, from_environment
from bellhop.state.worker_pool import WorkerPool


class Woken(Due):
    """What is due, in the queues as well, and the guard that follows from it."""

    def __init__(self, here: Resources, hands: WorkerPool | None = None) -> None:
        super().__init__(here, hands)
        self._queues = here.queues
        self._guard = Guard(here)

    def publish_delayed(self) -> int:
        """Publish what rested, and take over what Pub/Sub has buried; return how many messages."""
        return wake(self._queues.values())

    def conclude(self) -> None:
        """See that the guard stands while clusters are registered."""
        self._guard.stand()


class Tick:
    """Answers the requests of Cloud Scheduler, of which Google lets in no others."""

    def __init__(
        self,
        make: Callable[[Resources], Due] = Woken,
        opening: Callable[[], Resources] = from_environment,
    ) -> None:
        ready = Ready(make, opening)
        self._ticker = Ticker(ready)

    def __call__(self) -> tuple[dict[str, Any], int]:
        """Do what is due; a tick that fails says so, and is made good by the next one."""
        try:
            return self._ticker.tick({}), 200
        except Exception:  # noqa: BLE001 - it was told of, and Google counts the answer
            return {"error": "the tick failed; its log says why"}, 500
