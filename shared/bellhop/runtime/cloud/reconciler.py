"""The reconciler of a function, and the files that its profiles download."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from bellhop.adapters.metrics import Prometheus
from bellhop.catalog.cache import Catalogs
from bellhop.core.address_policy import AddressPolicy
from bellhop.deploy.reconciler import ProfileReconciler
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Access, Kube
from bellhop.ports.tools import Downloaded, Files, Tools
from bellhop.runtime.cloud.resources import Resources
from bellhop.state.content import Remote
from bellhop.state.worker_pool import HELPERS, WorkerPool

if TYPE_CHECKING:
    from bellhop.documents.tarball import Folder


class LateDownloads:
    """The port `Files`, which a function that starts cold does not wait for."""

    def __init__(self, reach: AddressPolicy, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock
        self._lock = threading.Lock()
        self._made: Files | None = None

    def remote(self, place: Remote) -> Downloaded:
        return self._files().remote(place)

    def artifact(self, kube: Kube, url: str, digest: str) -> Folder:
        return self._files().artifact(kube, url, digest)

    def _files(self) -> Files:
        with self._lock:
            if self._made is None:
                from bellhop.adapters.sources.files import FileDownloads  # noqa: PLC0415 - 45 ms

                self._made = FileDownloads(self._reach, self._clock)
            return self._made


def make_reconciler(
    here: Resources, catalogs: Catalogs, access: Access, tools: Tools
) -> ProfileReconciler:
    """Return what deploys profiles in the clusters that `access` opens."""
    return ProfileReconciler(
        catalogs,
        access,
        here.publisher,
        here.settings,
        here.log,
        metrics=Prometheus(here.contents),
        pool=WorkerPool(HELPERS),
        tools=tools,
    )
