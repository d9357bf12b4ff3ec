"""Handler of what is written into the configuration cluster; the hooks are a `StatusNotifier`."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

from bellhop.catalog.cache import Catalogs
from bellhop.configuration.write_limiter import LimitedAccess, WriteLimiter
from bellhop.logs import Log
from bellhop.ports.kube import Access
from bellhop.runtime.handlers import Handler
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.messages import WriteStatus
from bellhop.state.records import Records

ONE_PROCESS, CLOUD = timedelta(seconds=1), timedelta(seconds=5)
"""The shortest time between two writes of one object."""


def make_status_handler(
    records: Records,
    catalogs: Catalogs,
    access: Access,
    settings: Settings,
    log: Log,
    *,
    pause: timedelta,
) -> Handler:
    """Return the handler of `WriteStatus`; what it needs is loaded by the first message."""
    limiter = WriteLimiter()

    @cache
    def make_writer() -> Handler:
        from bellhop.configuration import writer  # noqa: PLC0415 - it loads the models
        from bellhop.installation import InstallationView  # noqa: PLC0415

        def find_object(kind: str, namespace: str, name: str) -> writer.OwnObject | None:
            found = records.configured.get(kind, namespace, name)
            return writer.read_own(found.value) if found else None

        here = InstallationView(records=records, catalogs=catalogs)
        given = here, LimitedAccess(access, limiter), find_cluster, find_object, log
        sorts = frozenset(settings.mirrors.split(","))
        return writer.StatusMirrorWriter(*given, pause=pause, sorts=sorts).handle

    def find_cluster() -> Cluster | None:
        catalog = catalogs.known()
        found = catalog.clusters.get(catalog.configuration)
        return found if found and found.configuration != "preview" else None

    def handle(message: WriteStatus) -> None:
        limiter.admit(message.work)
        make_writer()(message)

    return handle
