"""Follow-ups of handled messages: the objects of the configuration cluster that may have changed.

    profile deployed in a cluster   its summary, the profile, its trigger, the cluster's content
    profile rendered                the profile, its trigger, the report that it was made of
    promotion computed              the promotion
    classifiers, health evaluated   the rules of that cluster and their reports
    cluster called again            the status of its SveltosCluster
    object of the hub read          its own status, or an Event that says why it is refused
    hub resynced                    all objects; after an outage or a loss, all that is written

They are published after the handler, and also if it fails: after a death between the two the
message comes again. Without a configuration cluster nothing is read or published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from bellhop.api.names import asker
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import profile_kind, profile_name, profile_place
from bellhop.profiles.records import Place, place
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.envelope import Envelope
from bellhop.state.messages import (
    Apply,
    CheckHealth,
    Instantiate,
    Probe,
    Promote,
    Publisher,
    ReadBack,
    Resolve,
    Resync,
    UpdateLabels,
    WriteStatus,
)
from bellhop.state.records import Records

_OWN = (
    "EventTrigger",
    "ClusterProfile",
    "Profile",
    "ClusterPromotion",
    "ClusterSet",
    "Set",
    "Classifier",
    "ClusterHealthCheck",
    "RoleRequest",
    "SveltosCluster",
)
"""Kinds with a status that is written here."""

_FRESH = timedelta(seconds=10)
"""Time in which a process that only deploys reads no catalog to find the configuration cluster."""

_SOURCES = ("EventSource", "HealthCheck")
"""Kinds without one, of which there are reports."""

_HOLDERS = ("ConfigMap", "Secret")
"""Kinds of which nothing is written but why an object is refused."""


class StatusNotifier:
    """Publishes what is to be written after a message was handled."""

    def __init__(self, records: Records, catalogs: Catalogs, publisher: Publisher) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._read_at = records.clock.now()
        self._changes: Mapping[type[Envelope], Callable[[Catalog, Any], Iterator[WriteStatus]]] = {
            Apply: self._list_of_deployment,
            Instantiate: _list_of_event,
            Resolve: _list_of_rendering,
            Promote: _list_of_promotion,
            CheckHealth: _list_of_health,
            UpdateLabels: _list_of_labels,
            ReadBack: self._list_of_reading,
            Resync: self._list_of_resync,
            Probe: _list_of_probe,
        }

    def follow(self, message: Envelope) -> None:
        """Publish the follow-ups of a message that was handled, or whose handler failed.

        Raises:
            TemporaryError: the store or the queue does not answer.
        """
        find = self._changes.get(type(message))
        if find is None:
            return
        has_read = not isinstance(message, Apply | Probe)
        catalog = self._catalogs.latest if has_read else self._read_catalog()
        if not catalog.configuration:
            return
        is_hub = isinstance(message, Resync) and message.cluster == catalog.configuration
        request = self._records.written.read_request() if is_hub else None
        self._publisher.publish(find(catalog, message))
        if request and not request.value.digest:
            self._publisher.publish(list_effects(self._records, catalog))
            self._records.written.note_published(request)

    def _read_catalog(self) -> Catalog:
        """Read the catalog now and then: most handlers have just read it."""
        now, latest = self._records.clock.now(), self._catalogs.latest
        if latest.clusters and abs(now - self._read_at) < _FRESH:
            return latest
        self._read_at = now
        return self._catalogs.known()

    def _list_of_deployment(self, _catalog: Catalog, message: Apply) -> Iterator[WriteStatus]:
        """Yield what shows a deployment: the summaries of other clusters show their Local parts."""
        which = Place(message.trigger, message.cluster, message.profile)
        guests: tuple[str, ...] = ()
        if message.destination == MANAGEMENT and (head := self._records.profiles.head(*which)):
            guests = head.value.guests(MANAGEMENT)
        for each in dict.fromkeys((message.destination, *guests)):
            yield from _list_of_profile(which, each)
        yield from _list_of_profile(which)
        if message.trigger:
            yield WriteStatus("EventTrigger", "", message.trigger)
        yield _of_cluster(message.destination)

    def _list_of_resync(self, catalog: Catalog, message: Resync) -> Iterator[WriteStatus]:
        """Yield all objects of the configuration cluster, since a set has no event of its own."""
        if message.cluster != catalog.configuration:
            return
        # It has the object of each cluster read anyway, of which their status follows.
        yield from (each for each in list_objects(self._records) if each.kind != "SveltosCluster")

    def _list_of_reading(self, catalog: Catalog, message: ReadBack) -> Iterator[WriteStatus]:
        if message.cluster != catalog.configuration:
            return
        key = ObjectKey.parse(message.object)
        what = key.gvk.kind, key.namespace, key.name
        if key.gvk.group.endswith(".projectsveltos.io") and key.gvk.kind in (*_OWN, *_SOURCES):
            yield WriteStatus(*what)
        elif not key.gvk.group and key.gvk.kind in _HOLDERS:
            kept = self._records.configured.get(*what)
            if kept and kept.value.is_refused:
                yield WriteStatus(*what)


def list_objects(records: Records) -> Iterator[WriteStatus]:
    """Yield the messages of all objects of the configuration cluster."""
    for kind in (*_OWN, *_SOURCES):
        for namespace, name, _ in records.configured.list_kind(kind):
            yield WriteStatus(kind, namespace, name)
    for kind in _HOLDERS:
        for namespace, name, kept in records.configured.list_kind(kind):
            if kept.value.is_refused:
                yield WriteStatus(kind, namespace, name)


def list_effects(records: Records, catalog: Catalog) -> Iterator[WriteStatus]:
    """Yield those of all profiles, in each of their clusters, and of the content of clusters."""
    for trigger in ("", *catalog.triggers):
        for head in records.profiles.heads(trigger):
            which = place(head)
            yield from _list_of_profile(which)
            for cluster in (*head.destinations, *head.leaving):
                yield from _list_of_profile(which, cluster)
    for source in catalog.sources:
        if not asker(source):
            yield WriteStatus("EventSource", "", source)
    for each in catalog.clusters.values():
        yield WriteStatus("SveltosCluster", each.namespace, each.name)


def _list_of_profile(which: Place, cluster: str = "") -> Iterator[WriteStatus]:
    """Yield the message of a profile, or of its mirrors in a cluster."""
    kind, where = profile_kind(which.name), profile_place(which.name)
    namespace, _, name = where.rpartition("/")
    if kind != "RoleRequest" or not cluster:
        yield WriteStatus(kind, namespace, name, cluster, which.trigger, which.cluster)


def _list_of_event(catalog: Catalog, message: Instantiate) -> Iterator[WriteStatus]:
    name = profile_name(message.trigger, message.cluster, message.object)
    yield from _list_of_profile(Place(message.trigger, message.cluster, name))
    yield WriteStatus("EventTrigger", "", message.trigger)
    trigger = catalog.triggers.get(message.trigger)
    source = catalog.source_of(trigger, message.cluster) if trigger else None
    if source:
        yield WriteStatus("EventSource", "", source.name, message.cluster)


def _list_of_rendering(_: Catalog, message: Resolve) -> Iterator[WriteStatus]:
    return _list_of_profile(Place("", "", message.profile))


def _list_of_promotion(_: Catalog, message: Promote) -> Iterator[WriteStatus]:
    yield WriteStatus("ClusterPromotion", "", message.promotion)


def _list_of_health(catalog: Catalog, message: CheckHealth) -> Iterator[WriteStatus]:
    for check in catalog.checks_of(message.cluster):
        yield WriteStatus("ClusterHealthCheck", "", check.name)
    for name in catalog.looking_at(message.cluster):
        yield WriteStatus("HealthCheck", "", name, message.cluster)


def _list_of_probe(_: Catalog, message: Probe) -> Iterator[WriteStatus]:
    # A call that fails, of whatever work, is followed by probes until one is answered.
    yield _of_cluster(message.cluster)


def _of_cluster(key: str) -> WriteStatus:
    namespace, _, name = key.partition("/")
    return WriteStatus("SveltosCluster", namespace, name)


def _list_of_labels(catalog: Catalog, _: UpdateLabels) -> Iterator[WriteStatus]:
    return (WriteStatus("Classifier", "", name) for name in catalog.classifiers)
