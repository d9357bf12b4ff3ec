"""Inbox of CloudEvents: those that somebody writes into EventReports of the configuration cluster.

    spec.cloudEvents ─► stored for the report's EventSource ─► evaluated
                    └─► two seconds later the field is emptied, if it is still as it was read

An event counts once for an EventSource, by its source and id: the field may be read again after a
death, by a second worker, or because its writer has changed the report meanwhile.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from bellhop.api.kinds import EVENT_REPORT, DeclarationKey
from bellhop.catalog.cache import Catalogs
from bellhop.configuration.references import make_read_back
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import MANAGER
from bellhop.documents.json import read_json
from bellhop.errors import InvalidError, MissingError, PermanentError, TemporaryError
from bellhop.ingest.batch import CloudEventArrivals
from bellhop.ingest.recorder import Recorder
from bellhop.logs import Log
from bellhop.ports.kube import Access, Kube, Manifest
from bellhop.rendering.cloud_events import CloudEvent, parse
from bellhop.resync.progress import ResyncSession
from bellhop.state.messages import Publisher
from bellhop.state.records import Records

_PAGE = 500

SETTLE = timedelta(seconds=2)
"""Time in which a writer of a report may write its status, too, as Sveltos' clients do: a version
between the two would have the second write refused."""


class ReportInbox:
    """Takes the CloudEvents of reports, and empties the field."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        log: Log,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._publisher = publisher
        self._log = log
        self._arrivals = CloudEventArrivals(records)
        self._recorder = Recorder(records, publisher)

    def take(self, cluster: str, read: Callable[[], Manifest | None]) -> None:
        """Take the events of a report, if its cluster holds the configuration.

        Raises:
            StaleError: the report has changed since it was read.
            TemporaryError: it was written just now, or its cluster does not answer.
        """
        catalog = self._catalogs.current()
        hub = catalog.clusters.get(cluster)
        if cluster != catalog.configuration or hub is None or hub.configuration != "on":
            return
        try:
            found = read()
        except MissingError:
            return
        if not found or not _list_written(found):
            return
        self._accept(found)
        kube = self._access.open(cluster, version=hub.credentials)
        self._refuse_soon(found, kube)
        metadata = found["metadata"]
        version = {"resourceVersion": metadata["resourceVersion"]}
        change = {"metadata": version, "spec": {"cloudEvents": None}}
        kube.merge(EVENT_REPORT, metadata["namespace"], metadata["name"], change)

    def find(self, session: ResyncSession) -> None:
        """Publish the reports with events of which no hint came.

        Raises:
            TemporaryError: the cluster does not answer.
        """
        if session.name != session.catalog.configuration:
            return
        try:
            self._publisher.publish(
                make_read_back(session.name, EVENT_REPORT, key) for key in _list(session.kube)
            )
        except PermanentError as error:
            self._log.warning("Cannot list EventReports", error=str(error))

    def _accept(self, found: Manifest) -> None:
        """Store the events of a report; those that no EventSource takes are dropped."""
        now, key = self._records.clock.now(), ObjectKey.of(found)
        named = ("clusterNamespace", "clusterName", "eventSourceName")
        namespace, name, source = (str(found["spec"].get(each, "")) for each in named)
        cluster = f"{namespace}/{name}"
        listeners = {each.source for each in self._catalogs.current().listeners_in(cluster)}
        if namespace != key.namespace or source not in listeners:
            reason = f"EventSource '{source}' takes no CloudEvents in cluster '{cluster}'"
            if namespace != key.namespace:
                reason = f"the report is not in the namespace of cluster '{cluster}'"
            self._log.warning("Dropped CloudEvents", object=str(key), reason=reason)
            return
        events = [(each, [source]) for each in self._read(found)]
        seen = self._arrivals.observe(cluster, events, now)
        self._recorder.store((each, now.isoformat()) for each in seen)

    def _read(self, found: Manifest) -> Iterator[CloudEvent]:
        for number, text in enumerate(_list_written(found)):
            try:
                yield replace(parse(_decode(text)), accepted=True)
            except InvalidError as error:
                key, field = ObjectKey.of(found), f"spec.cloudEvents[{number}]"
                self._log.warning(
                    "Dropped CloudEvents", object=str(key), field=field, reason=str(error)
                )

    def _refuse_soon(self, found: Manifest, kube: Kube) -> None:
        """Raise a TemporaryError while the writer of a report may write it once more.

        A time that is far from ours is of a clock that is wrong.
        """
        now = self._records.clock.now() + (kube.skew or timedelta(0))
        for at in _list_times(found):
            age = abs(now - at)
            if age < SETTLE:
                raise TemporaryError(
                    "cannot empty spec.cloudEvents yet: it was written just now",
                    delay=SETTLE - age,
                )


def _list_written(report: Manifest) -> list[Any]:
    return list((report.get("spec") or {}).get("cloudEvents") or ())


def _list_times(report: Mapping[str, Any]) -> Iterator[datetime]:
    """Yield when others wrote a report last."""
    for each in report["metadata"].get("managedFields") or ():
        if each.get("manager") != MANAGER and each.get("time"):
            yield datetime.fromisoformat(each["time"])


def _decode(text: Any) -> Any:
    try:
        return read_json(base64.b64decode(text, validate=True))
    except (TypeError, ValueError, binascii.Error) as error:
        raise InvalidError("cannot take a CloudEvent: it is not JSON in base64") from error


def _list(kube: Kube) -> Iterator[DeclarationKey]:
    """Yield the reports that have events."""
    after = ""
    while True:
        page = kube.page(EVENT_REPORT, limit=_PAGE, after=after)
        for each in page.items:
            if _list_written(each):
                metadata = each["metadata"]
                yield DeclarationKey(EVENT_REPORT.kind, metadata["namespace"], metadata["name"])
        if not page.after:
            return
        after = page.after
