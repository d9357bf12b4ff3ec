"""Ticks of Cloud Scheduler: publish due messages, and guard the installation against Terraform.

    tick ─► heartbeat ─► delayed messages, Pub/Sub's dead letters ─► timers ─► the guard

Terraform calls no function here before it destroys an installation. So an object is in a bucket of
its own for as long as clusters are registered: Google deletes no bucket that has an object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.adapters.gcp.queue import wake
from bellhop.errors import BellhopError, MissingError
from bellhop.runtime.cloud.tick import Due, Ticker
from bellhop.runtime.gcp.resources import Resources, from_environment
from bellhop.state.worker_pool import WorkerPool

REGISTERED = "registered"
_WHY = b"clusters are registered: deregister them before the installation is destroyed\n"


class Guard:
    """An object in a bucket of its own, which cannot be destroyed for as long as it has one.

    It is read again each time, since other processes write it as well: a late one is corrected
    within a minute. The bucket is created last and destroyed first; its failures are only logged.
    """

    def __init__(self, here: Resources) -> None:
        self._clusters = here.records.clusters
        self._log = here.log
        self._blobs = CloudBlobs(here.services, here.guard) if here.guard else None

    def stand(self) -> None:
        """See that the object is there while clusters are, and not otherwise."""
        if self._blobs is None:
            return
        needed = self._clusters.any()
        try:
            if needed and not self._stands(self._blobs):
                self._blobs.put(REGISTERED, _WHY)
            elif not needed and self._stands(self._blobs):
                self._blobs.delete(REGISTERED)
        except BellhopError as error:
            self._log.warning("Cannot guard the installation", error=str(error))

    def _stands(self, blobs: CloudBlobs) -> bool:
        try:
            return bool(blobs.get(REGISTERED))
        except MissingError:
            return False


class Woken(Due):
    """The work of a tick, with delayed messages of the queues, and the guard."""

    def __init__(self, here: Resources, pool: WorkerPool | None = None) -> None:
        super().__init__(here, pool)
        self._queues = here.queues
        self._guard = Guard(here)

    def publish_delayed(self) -> int:
        """Publish delayed messages, and store Pub/Sub's dead letters; return how many."""
        return wake(self._queues.values())

    def conclude(self) -> None:
        """Keep the guard while clusters are registered."""
        self._guard.stand()


class Tick:
    """Answers the requests of Cloud Scheduler, of which Google lets in no others."""

    def __init__(
        self,
        make: Callable[[Resources], Due] = Woken,
        opening: Callable[[], Resources] = from_environment,
    ) -> None:
        self._ticker = Ticker(make, opening)

    def __call__(self) -> tuple[dict[str, Any], int]:
        """Do what is due; a tick that fails says so, and the next one corrects it."""
        try:
            return self._ticker({}), 200
        except Exception:  # noqa: BLE001 - it is logged, and Google counts the answer
            return {"error": "the tick failed; its log says why"}, 500
