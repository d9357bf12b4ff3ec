"""Subscription of a cluster: kinds that its API server reports for sources, drift and templates.

Each resync renews it before it lists the kinds, so that no change falls between the two: the
ingest policy, the forwarder's role and the webhook configuration name the same kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec.structs import replace

from bellhop.api.kinds import CONFIGURED_KINDS, EVENT_REPORT
from bellhop.clusters.installation_mark import marked, other
from bellhop.core.gvk import GVK, Resource
from bellhop.deploy.dependencies import TemplateDependencies
from bellhop.deploy.records import Kind
from bellhop.deploy.watches import DriftWatches
from bellhop.errors import MissingError, PermanentError, TemporaryError, UnauthorizedError
from bellhop.logs import Log
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import (
    MESSAGING_NAMESPACE,
    forwarder_role,
    is_audited,
    is_callable,
    is_direct,
    make_direct_record,
    messaging_rights,
    redact_paths,
    webhook_configuration,
)
from bellhop.registration.holder_namespaces import find_namespaces
from bellhop.resync.hooks import Subscribed
from bellhop.resync.progress import ResyncSession, limit_problems
from bellhop.settings import Settings
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.delays import RENEWAL_PAUSE, renewal_timer
from bellhop.state.ingest_policy import WatchedKind
from bellhop.state.messages import Publisher, Renew, Resync
from bellhop.state.records import Records

T = TypeVar("T")

_REGISTERING = timedelta(minutes=1)
"""Time for a registration that has begun to store the webhook's token."""

_NAMESPACE = GVK("", "v1", "Namespace")

_UNCALLABLE = (
    "its webhook has a path of an earlier version, at which no API server calls a Service; it is"
    " being renewed, and until then only resyncs find changes"
)

_TOKENLESS = (
    "the API server's token is missing, and only resyncs find events;"
    " `bellhop rotate` gives it another"
)

_TAKEN = (
    "it was taken over by {taken}, and only resyncs find events: deregister it here, or register it"
    " again with --take-over"
)


class Subscription:
    """Subscribes to the kinds of a cluster that sources select, profiles own, or templates read."""

    def __init__(
        self, records: Records, publisher: Publisher, settings: Settings, log: Log
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._log = log
        reports = [EVENT_REPORT] if settings.report_inbox == "on" else []
        self._configured_kinds = (*CONFIGURED_KINDS, *reports)
        self._watches = DriftWatches(records, publisher)
        self._dependencies = TemplateDependencies(records, publisher, settings)

    def renew(self, session: ResyncSession, followed: tuple[GVK, ...]) -> Subscribed:
        """Subscribe to the kinds that are served now.

        Of the `followed` kinds templates were rendered again since the cluster reports them.
        """
        lacking: list[str] = []
        serves, read = session.kube.resource, self._list_read_kinds(session)
        selected = _list_served(serves, session.catalog.kinds_in(session.name), lacking)
        watched, charts = self._watches.kinds(session.name)
        owned = _list_served(serves, watched, lacking)
        of_templates = _list_served(lambda kind: session.kube.served(*kind), read, lacking)
        configured = self._list_configured(session, lacking)
        kinds = selected, owned, of_templates, configured
        mute = [] if lacking else self._install(session, *kinds, charts)
        if mute:
            followed = ()
        if session.name == MANAGEMENT and not lacking and not mute:
            reported = tuple(each.gvk for each in of_templates)
            followed = self._follow(session, read, reported, followed)
        said = limit_problems([*lacking, *mute])
        return Subscribed(said, mute=bool(mute), owned=bool(owned), followed=followed)

    def _list_configured(self, session: ResyncSession, lacking: list[str]) -> list[Resource]:
        """Return the kinds of the configuration, if this cluster holds it: without subresources."""
        if session.name != session.catalog.configuration:
            return []
        found = _list_served(session.kube.resource, self._configured_kinds, lacking)
        return [replace(each, subresources=()) for each in found]

    def _list_read_kinds(self, session: ResyncSession) -> list[Kind]:
        return self._dependencies.kinds() if session.name == MANAGEMENT else []

    def _follow(
        self,
        session: ResyncSession,
        read: list[Kind],
        reported: tuple[GVK, ...],
        followed: tuple[GVK, ...],
    ) -> tuple[GVK, ...]:
        """Have templates rendered again that read a kind which is reported from now on.

        A worker that noted a kind just before it was dropped may have found it reported; and a
        worker with a later catalog may have written the ingest policy as it was before.
        """
        gate = self._records.gates.get_or_none(session.name)
        admitted = {each.gvk for each in gate.value.followed} if gate else set()
        if set(self._list_read_kinds(session)) - set(read) or set(reported) != admitted:
            self._publisher.publish([Resync(session.name)])
        if not session.cluster.forwarder:
            return ()
        self._dependencies.publish_kinds(each[::2] for each in reported if each not in followed)
        return reported

    def _install(
        self,
        session: ResyncSession,
        selected: list[Resource],
        owned: list[Resource],
        read: list[Resource],
        configured: list[Resource],
        charts: Collection[GVK],
    ) -> list[str]:
        """Write the ingest policy and the webhook configuration; return what prevents the latter.

        All objects of selected and read kinds are reported; of the others those that are ours.
        """
        self._write_ingest_policy(session, selected, owned, read, configured)
        cluster, forwarder = session.cluster, session.cluster.forwarder
        if not forwarder or is_audited(forwarder):
            return []
        if is_direct(forwarder):
            token = self._records.callers.get(cluster.key)
            if not token:
                return [] if self._is_registering(cluster) else [_TOKENLESS]
            forwarder = make_direct_record(forwarder, token)
        if taken := other(self._records.installations, session.kube):
            # Two installations that write one webhook configuration would each lose events.
            return [_TAKEN.format(taken=taken)]
        if not is_callable(forwarder):
            self._hasten_renewal(cluster.key)
            return [_UNCALLABLE]
        if session.catalog.listeners_in(session.name) and not is_direct(forwarder):
            _allow_messaging(session.kube, session.name, self._log)
        everything = [*selected, *_list_others(selected, read)]
        rest = _list_others(everything, owned)
        try:
            if not is_direct(forwarder):
                session.kube.apply(forwarder_role([*everything, *rest]))
            of_charts = [each for each in rest if each.gvk in charts]
            namespaces = find_namespaces(self._records, session.catalog) if configured else None
            webhooks = webhook_configuration(
                *(everything, forwarder, rest, of_charts, configured), namespaces
            )
            session.kube.apply(marked(webhooks, self._records.installations.get()))
        except UnauthorizedError:
            raise
        except PermanentError as error:
            # Resyncs work without events; the cluster's health says what is missing.
            said = redact_paths(str(error), forwarder)
            self._log.warning(
                "Cannot install the webhook configuration", cluster=session.name, error=said
            )
            what = "its webhook configuration cannot be installed, and only resyncs find events"
            return [f"{what}: {said}"]
        return []

    def _write_ingest_policy(
        self,
        session: ResyncSession,
        selected: list[Resource],
        owned: list[Resource],
        read: list[Resource],
        configured: list[Resource],
    ) -> None:
        catalog, cluster = session.catalog, session.cluster
        own, listeners = catalog.own_kinds_in(session.name), catalog.listeners_in(session.name)
        kinds = [WatchedKind(each.gvk, each.plural, each.gvk in own) for each in selected]
        more = (
            [WatchedKind(each.gvk, each.plural) for each in some]
            for some in (owned, read, configured)
        )
        gate = cluster.gate(kinds, catalog.revision, listeners, *more)
        self._records.gates.put(cluster.key, gate)

    def _is_registering(self, cluster: Cluster) -> bool:
        """Return whether a registration is in progress, which stores the token after the record."""
        begun = cluster.forwarder.get("begun")
        if not begun:
            return False
        return abs(self._records.clock.now() - datetime.fromisoformat(begun)) < _REGISTERING

    def _hasten_renewal(self, cluster: str) -> None:
        """Have a cluster renewed now, unless a renewal is due soon anyway."""
        name, now = renewal_timer(cluster), self._records.clock.now()
        timer = self._records.timers.get(name)
        if timer is None or timer.value.at > now + RENEWAL_PAUSE:
            self._records.timers.set(name, now, Renew(cluster).message().body)


def _allow_messaging(kube: Kube, cluster: str, log: Log) -> None:
    """Let the forwarder read the Secret that names its NATS server, if its namespace exists.

    It is not installed with the forwarder's other rights: the namespace is of Sveltos, may be
    created later or never, and most clusters do not need it.

    Raises:
        TemporaryError: the cluster does not answer.
    """
    try:
        if kube.get(_NAMESPACE, "", MESSAGING_NAMESPACE) is None:
            return
        for manifest in messaging_rights():
            kube.apply(manifest)
    except MissingError:
        # The namespace was deleted just now.
        return
    except PermanentError as error:
        # Clusters that send CloudEvents only by HTTP do not need the right.
        log.warning("Cannot let the forwarder subscribe to NATS", cluster=cluster, error=str(error))


def _list_served(
    serves: Callable[[T], Resource | None], kinds: Iterable[T], lacking: list[str]
) -> list[Resource]:
    """Return the resources of served kinds; add an error to `lacking` for each unavailable API."""
    found = []
    for kind in kinds:
        try:
            resource = serves(kind)
        except TemporaryError as error:
            # An API that is unavailable for a while is not deleted: leave everything unchanged.
            lacking.append(str(error))
            continue
        if resource is not None:
            found.append(resource)
    return found


def _list_others(known: Iterable[Resource], more: Iterable[Resource]) -> list[Resource]:
    """Return the resources of kinds that are not among the known, in any version."""
    kinds = {each.gvk[::2] for each in known}
    return [each for each in more if each.gvk[::2] not in kinds]
