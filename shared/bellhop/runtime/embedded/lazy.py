"""Lazy imports: a command loads and makes only what it uses.

`bellhop get clusters` needs neither the Kubernetes client nor the types of what users declare,
and loading these takes longer than all else that it does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from bellhop.core.address_policy import LOCAL

if TYPE_CHECKING:
    from pathlib import Path

    from bellhop.catalog.cache import Catalogs
    from bellhop.declarations.apply import ManifestWriter
    from bellhop.logs import Log
    from bellhop.ports.charts import Helm
    from bellhop.ports.clock import Clock
    from bellhop.ports.kube import Access
    from bellhop.ports.queue import Queue
    from bellhop.ports.store import Secrets
    from bellhop.ports.tools import Tools
    from bellhop.runtime.embedded.consumer import Scraping
    from bellhop.runtime.embedded.metrics import Exporter
    from bellhop.runtime.embedded.state import Embedded
    from bellhop.settings import Settings
    from bellhop.state.messages import Publisher
    from bellhop.state.records import Records

T = TypeVar("T")


class Make(Protocol):
    """Makes something, at once or late."""

    def __call__(self, make: Callable[[], T], /) -> T:
        """Return it, or what stands for it."""
        ...


def at_once(make: Callable[[], T]) -> T:
    return make()


def late(make: Callable[[], T]) -> T:
    """Return what stands for what `make` returns, which is called once, when it must be."""
    return cast("T", _Late(make))


class _Late:
    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        # Asked only for what this object has not.
        with self._lock:
            if "_made" not in vars(self):
                self._made = self._make()
        return getattr(self._made, name)


# What takes long to load ------------------------------------------------------------------------


def vault(state: Path, key: bytes, records: Records, *, still: bool) -> Secrets:
    """Make the secrets of a state folder, or what reads them if it is to be left as it is."""
    from bellhop.adapters.local.secrets import FileSecrets
    from bellhop.runtime.embedded.own_account import with_own_account

    return with_own_account(FileSecrets(state / "secrets", key, still=still), records)


def catalogs(records: Records) -> Catalogs:
    from bellhop.catalog.cache import Catalogs

    return Catalogs(records)


def publisher(queues: Mapping[str, Queue]) -> Publisher:
    from bellhop.state.messages import Publisher

    return Publisher(queues)


def declare(
    records: Records, catalogs: Catalogs, publisher: Publisher, settings: Settings
) -> ManifestWriter:
    """Make what changes what users declared."""
    from bellhop.declarations.apply import ManifestWriter

    return ManifestWriter(records, catalogs, publisher, settings)


def tools(state: Path | None, settings: Settings, clock: Clock) -> Tools:
    """Make what deploys charts, builds kustomizations and downloads files."""
    from bellhop.adapters.kustomize.kustomizations import KubectlKustomizations
    from bellhop.adapters.sources.files.downloads import FileDownloads
    from bellhop.ports.tools import Tools

    files = FileDownloads(LOCAL.within(settings.egress_allow), clock)
    return Tools(helm(state, settings, clock), KubectlKustomizations(), files)


def helm(state: Path | None, settings: Settings, clock: Clock) -> Helm:
    """Make what deploys charts; without a state archives lie where programs do."""
    from bellhop.adapters.programs.program import cache
    from bellhop.runtime import helm as charts

    return charts.helm((state or cache()) / "charts", LOCAL, settings, clock)


def access(vault: Secrets) -> Access:
    """Make what opens clusters."""
    from bellhop.adapters.kube.access import KubeAccess

    return KubeAccess(vault, reach=LOCAL)


def exporter(embedded: Embedded, scraping: Scraping, log: Log) -> Exporter:
    """Serve the metrics of an installation."""
    from bellhop.runtime.embedded.metrics import Exporter

    return Exporter(embedded, scraping, log)
