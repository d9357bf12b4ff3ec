"""Handlers of the stage `sweep`; the resync gets the steps of other features as hooks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bellhop.api.kinds import EVENT_REPORT
from bellhop.catalog.cache import Catalogs
from bellhop.clusters.circuit_breaker import Circuits
from bellhop.clusters.maintenance import Maintenance
from bellhop.configuration.admission import Admission
from bellhop.configuration.cluster_objects import ClusterObjects
from bellhop.configuration.comparison import Comparison
from bellhop.configuration.report_inbox import ReportInbox
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.declarations.cluster_selection import SetSelector
from bellhop.declarations.deletion_guard import RemovalGuard
from bellhop.declarations.fan_out import ChangeFanOut
from bellhop.deploy.drift import has_drifted
from bellhop.deploy.release_records import is_superseded
from bellhop.errors import AwayError, TemporaryError
from bellhop.events.access_reviews import AccessReviewer
from bellhop.events.deletion_guard import DeletionGuard
from bellhop.events.lost_messages import LostMessages
from bellhop.extras.classifiers.classifier import LabelClassifier
from bellhop.extras.health.notifier import HealthNotifier
from bellhop.extras.promotions.notifier import PromotionNotifier
from bellhop.ingest.read_back import HintReader
from bellhop.ingest.service_accounts import learn, refresh_keys
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.ports.kube import Access, Manifest
from bellhop.registration.due_renewals import Renewals
from bellhop.registration.managed_clusters import ManagedClusters
from bellhop.registration.subscription import Subscription
from bellhop.resync.hooks import Hooks, Subscribed
from bellhop.resync.owned_kinds import OwnedKinds
from bellhop.resync.progress import ResyncSession
from bellhop.resync.resync import Resyncer
from bellhop.runtime.handlers import Handler, HandlerTable
from bellhop.settings import Settings
from bellhop.state.messages import (
    CheckHealth,
    CollectGarbage,
    NotifyPromotion,
    Probe,
    Publisher,
    PurgeCluster,
    ReadBack,
    RefreshTokenKeys,
    Renew,
    Resync,
    ReviewAccess,
    ScanDrift,
    UpdateLabels,
)
from bellhop.state.records import Records


def make_sweep_table(
    here: Installation, log: Log, managed: ManagedClusters | None = None
) -> HandlerTable:
    """Return the handlers of all messages of the stage `sweep`.

    Without `managed`, no SveltosCluster registers a cluster of a cloud.
    """
    return {
        **make_resync_table(
            *(here.records, here.catalogs, here.access, here.publisher, here.settings, log),
            clusters=ClusterObjects(here, managed),
        ),
        Renew: Renewals(here, log).handle,
        CheckHealth: HealthNotifier(here, log).handle,
        NotifyPromotion: PromotionNotifier(here, log).handle,
    }


def make_resync_table(
    records: Records,
    catalogs: Catalogs,
    access: Access,
    publisher: Publisher,
    settings: Settings,
    log: Log,
    clusters: ClusterObjects | None = None,
) -> HandlerTable:
    """Return the handlers of those messages that need no whole installation.

    Without `clusters`, no object of the configuration registers a cluster.
    """
    circuits = Circuits(records, access, publisher, settings, log)
    reviewer = AccessReviewer(records, catalogs, access, publisher)
    fan_out, removals = ChangeFanOut(records, publisher, settings), RemovalGuard(records, settings)
    selector = SetSelector(records, catalogs, fan_out, removals)
    classifier = LabelClassifier(records, catalogs, fan_out, selector, removals)
    scan = OwnedKinds(
        *(records, access, publisher, settings, log),
        has_drifted=has_drifted,
        is_superseded=is_superseded,
    )
    maintenance = Maintenance(records, settings)

    admission = Admission(records, catalogs, access, publisher, settings, log, clusters)
    comparison = Comparison(records, publisher, log)
    inbox = ReportInbox(records, catalogs, access, publisher, log)
    takes_reports = settings.report_inbox == "on"
    subscription = Subscription(records, publisher, settings, log)

    def begin(session: ResyncSession) -> None:
        reviewer.ask_again(session.catalog, session.name)
        with suppress(TemporaryError):
            # A sender can prove itself in other ways, and the next resync reads the keys again.
            learn(records, session.kube, session.cluster)

    def subscribe(session: ResyncSession, followed: tuple[GVK, ...]) -> Subscribed:
        done = subscription.renew(session, followed)
        # What changes from here on is reported.
        comparison.compare(session)
        if takes_reports:
            inbox.find(session)
        return done

    def admit(cluster: str, key: ObjectKey, read: Callable[[], Manifest | None]) -> None:
        if key.gvk == EVENT_REPORT and takes_reports:
            inbox.take(cluster, read)
        else:
            admission.admit(cluster, key, read)

    def probe(message: Probe) -> None:
        circuits.probe(message)
        selector.reselect(message.cluster)

    def guard(handler: Handler, if_away: Handler = lambda _: None) -> Handler:
        """Have a handler call its cluster only if that answers; once it does, it is resynced."""

        def handle(message: Any) -> None:
            try:
                circuits.call(message.cluster, lambda: handler(message))
            except AwayError:
                if_away(message)

        return handle

    hooks = Hooks(
        begin=begin,
        subscribe=subscribe,
        retain=DeletionGuard(records, catalogs, publisher, settings, log).retain,
        find_lost=lambda session: (
            LostMessages(records, session.catalog, session.name, session.checked).find
        ),
        end=selector.reselect,
    )
    reader = HintReader(records, catalogs, access, publisher, admit)
    resync = Resyncer(records, catalogs, access, publisher, settings, log, hooks)
    return {
        # A resync may have been requested by a person: find out now whether the cluster answers.
        Resync: guard(resync.handle, lambda message: publisher.publish([Probe(message.cluster)])),
        ScanDrift: guard(scan.handle),
        ReadBack: guard(reader.handle),
        ReviewAccess: guard(reviewer.handle, reviewer.owe),
        RefreshTokenKeys: guard(lambda message: refresh_keys(records, access, message.cluster)),
        Probe: probe,
        UpdateLabels: lambda message: classifier.settle(message.cluster),
        PurgeCluster: maintenance.purge,
        CollectGarbage: maintenance.collect,
    }
