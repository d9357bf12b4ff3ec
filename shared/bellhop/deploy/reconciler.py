"""Reconciles one profile in one cluster.

    read ─► gates ─► plan, apply (`attempt`) ─► status
      ▲                                           │
      └─────────────── read again ◄───────────────┘

Every attempt starts from the records, and holds the lease of the inventory while it writes. A slow
worker may have applied inputs that are no longer current: so it reads them again at its end. Each
feature plans and applies in its own way: see `features`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bellhop.catalog.cache import Catalogs
from bellhop.clusters.circuit_breaker import Circuits
from bellhop.clusters.management_cluster import list_target_clusters
from bellhop.core.digest import digest
from bellhop.core.gvk import Identity
from bellhop.deploy.attempt import Deployer
from bellhop.deploy.context import Lease, Progress, ReconcileContext, is_done_once
from bellhop.deploy.dependencies import TemplateDependencies
from bellhop.deploy.features.charts.executor import Releases
from bellhop.deploy.features.feature import Feature
from bellhop.deploy.features.resources.executor import Executor
from bellhop.deploy.gates.check_metrics import MetricReader
from bellhop.deploy.gates.checks import Checks
from bellhop.deploy.gates.sequence import Gates
from bellhop.deploy.lease import UNKNOWN, Leases, Peers
from bellhop.deploy.status import StatusWriter
from bellhop.errors import (
    AwayError,
    BellhopError,
    BusyError,
    MissingError,
    PausedError,
    StaleError,
    UnmetError,
    WaitingError,
)
from bellhop.logs import Log
from bellhop.ports.kube import Access
from bellhop.ports.metrics import Metrics
from bellhop.ports.store import ABSENT
from bellhop.ports.tools import NONE, Tools
from bellhop.profiles.names import NameReservations
from bellhop.settings import Settings
from bellhop.state.chart import release_key
from bellhop.state.cluster import Cluster
from bellhop.state.concurrency import until_settled
from bellhop.state.delays import counting_timer
from bellhop.state.deployment import Held, Inventory
from bellhop.state.event_recorder import Note, noting
from bellhop.state.messages import CHARTS, Apply, Promote, Publisher
from bellhop.state.profile import AddonPolicy, Profile
from bellhop.state.table import Stored
from bellhop.state.worker_pool import SEQUENTIAL, WorkerPool

_ROUNDS = 4


def make_features(
    catalogs: Catalogs,
    access: Access,
    publisher: Publisher,
    settings: Settings,
    *,
    pool: WorkerPool,
    tools: Tools,
    check_removal: Callable[[ReconcileContext], None] = lambda _: None,
) -> tuple[Feature[Any], ...]:
    """Return all features, in the order in which they are planned and executed.

    `check_removal` raises the error because of which a release may not be removed yet from a
    cluster that keeps the profile.
    """
    resources = Executor(catalogs.records, access, publisher, settings, pool, tools)
    charts = Releases(catalogs, access, publisher, settings, tools, pool, check_removal)
    return resources, charts, resources.named("Kustomize")


class ProfileReconciler:
    """Deploys profiles to clusters, and withdraws them."""

    def __init__(  # noqa: PLR0913 - one for each port
        self,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        *,
        metrics: Metrics,
        peers: Peers = UNKNOWN,
        pool: WorkerPool = SEQUENTIAL,
        tools: Tools = NONE,
    ) -> None:
        """Reconcile with the tools that this process has; others are those of other workers."""
        self._records = records = catalogs.records
        self._publisher = publisher
        self._gates = Gates(
            catalogs, publisher, Circuits(records, access, publisher, settings, log)
        )
        self._leases = Leases(records, settings, peers)
        self._statuses = StatusWriter(records, settings, single=peers.is_single)
        self._dependencies = TemplateDependencies(records, publisher, settings)
        reader = MetricReader(NameReservations(records, publisher), metrics, settings)
        checks = Checks(records, access, reader, settings)
        self._features = make_features(
            catalogs,
            access,
            publisher,
            settings,
            pool=pool,
            tools=tools,
            check_removal=checks.before_removal,
        )
        self._deployer = Deployer(
            records,
            publisher,
            checks=checks,
            dependencies=self._dependencies,
            leases=self._leases,
            statuses=self._statuses,
            gates=self._gates,
            features=self._features,
            builds=tools.kustomizations is not None,
        )

    def handle(self, message: Apply) -> None:
        """Reconcile the profile of a message in its cluster.

        Raises:
            BusyError: another worker holds the lease.
            TemporaryError: the attempt failed, and the next one is so soon that the queue keeps the
                message.
        """
        self._handle_once(message)

    @until_settled("apply '{message.profile}'", _ROUNDS)
    def _handle_once(self, message: Apply) -> bool:
        """Reconcile once; False if another worker was quicker, or the inputs have changed since."""
        name, cluster = message.profile, message.destination
        # Before all else: a worker that writes another one from now on may have read newer inputs.
        status = self._records.outcomes.get(cluster, name)
        kept = self._records.inventories.get(cluster, name)
        inventory = kept.value if kept else Inventory(cluster, name, {})
        if self._requeue_for_helm(message, inventory):
            return True
        found = self._read_profile(message)
        if found and (found.value.paused or is_done_once(found.value, status, inventory)):
            if not found.value.paused:
                self._gates.release(found.value, cluster, status)
                if status and status.value.reads:
                    self._dependencies.forget(name, cluster)
            return True
        record = self._records.clusters.get(cluster)
        profile = found.value if found else _empty_profile(message)
        hosted = list_target_clusters(self._records, profile, cluster)
        inputs = _inputs(message, found, record.token if record else ABSENT, hosted)
        try:
            if record is None or (found is None and not inventory.held):
                self._deployer.leave(profile, cluster, status)
            else:
                context = ReconcileContext(
                    message=message,
                    profile=profile,
                    cluster=record.value,
                    status=status,
                    lease=Lease(kept.token if kept else ABSENT, self._records.clock.now()),
                    progress=Progress(
                        dict(inventory.held), targets=tuple(each.value for each in hosted)
                    ),
                    made_of=" ".join(inputs),
                    features=self._names(_features_of(profile, inventory.held)),
                )
                if self._remains_failed(context):
                    return True
                if _is_of_failed_release(context, inventory) and self._statuses.is_left_to_retry(
                    context
                ):
                    return True
                self._reconcile(context)
                if self._has_changed(context):
                    return False
        except StaleError:
            return False
        return self._inputs(message) == inputs

    def _names(self, names: frozenset[str]) -> tuple[str, ...]:
        return tuple(each.name for each in self._features if each.name in names)

    def _requeue_for_helm(self, message: Apply, inventory: Inventory) -> bool:
        """Publish a message that meets a lease to Helm's workers, if the lease may be theirs.

        Helm's own writes send events while it runs. In its inbox they wait only until it ends, and
        no other change waits behind them here.

        Raises:
            BusyError: another worker holds the lease.
        """
        try:
            self._leases.check_free(inventory)
        except BusyError:
            charts = any(each.release for each in inventory.held.values())
            if not charts or not self._deployer.hand_over(message, CHARTS):
                raise
            return True
        return False

    def _remains_failed(self, context: ReconcileContext) -> bool:
        """Say whether it has failed permanently, and no input has changed since.

        An object that changed owners is a reason to try again: no other message reports it.
        """
        if not context.has_failed_permanently or context.message.contested or not context.status:
            return False
        context.progress.read = context.status.value.read
        return not self._has_changed(context)

    def _has_changed(self, context: ReconcileContext) -> bool:
        """Say whether objects that templates read have changed since they were read."""
        return any(each.has_changed(context) for each in self._features if not each.inbox)

    def _inputs(self, message: Apply) -> tuple[str, ...]:
        """Name the versions of the current inputs."""
        found = self._records.profiles.head(message.trigger, message.cluster, message.profile)
        hosted = list_target_clusters(
            self._records, found.value if found else None, message.destination
        )
        return _inputs(message, found, self._records.clusters.token(message.destination), hosted)

    def _reconcile(self, context: ReconcileContext) -> None:
        """Check the gates and deploy; log the changes, and why the attempt failed.

        After a failure the next attempt finds nothing to change, and logs nothing.
        """
        message, profile = context.message, context.profile
        place = self._records, message, context.cluster.key, profile.object
        with noting(*place) as note, noting(*place) as done:
            note.context = done.context = {"profile": profile.shown, "trigger": profile.trigger}
            try:
                self._gates.check(context)
                with self._gates.circuit.report(context):
                    self._deployer.deploy(context)
            except StaleError:
                raise
            except (AwayError, PausedError, WaitingError) as error:
                self._record_wait(context, error, note)
            except BellhopError as error:
                if not isinstance(error, UnmetError):
                    note.fail("apply", error)
                elif not context.progress.changed:
                    note.what, note.detail = "waits", str(error)
                self._statuses.record_failure(context, error)
            finally:
                if profile.rollout.promotion:
                    self._notify_promotion(context)
                if context.progress.changed:
                    done.what = "applied" if context.is_destination else "removed"
                    done.detail = ", ".join(context.progress.changed)

    def _notify_promotion(self, context: ReconcileContext) -> None:
        """Have a stage counted at once if it waits for this cluster.

        It is counted soon after a failure, and after a recovery, which no stage waits for by name.
        The stage names the cluster before it reads its status again, and the status is written
        before this is asked: so one of the two sees the other.
        """
        name, cluster = context.profile.rollout.promotion, context.cluster.key
        kept = self._records.promotions.get(name)
        if kept and kept.value.is_witness(context.profile.name, cluster):
            self._publisher.publish([Promote(name)])
            return
        status = self._records.outcomes.get(cluster, context.profile.name)
        failed = context.status is not None and context.status.value.phase.startswith("Failed")
        if failed or status is None or status.value.phase != "Provisioned":
            self._records.timers.gather(counting_timer(name), Promote(name).message().body)

    def _record_wait(
        self, context: ReconcileContext, error: AwayError | PausedError | WaitingError, note: Note
    ) -> None:
        """Record that the profile waits, so that the worker that ends its wait can read that.

        Raises:
            StaleError: the cause of the wait has ended; the attempt begins again.
            TemporaryError: it has ended, or will very soon.
        """
        if self._statuses.record_wait(context, error):
            note.what, note.detail = "waits", str(error)
        if not isinstance(error, AwayError):
            self._deployer.record_uncertain(context)
        if not isinstance(error, WaitingError):
            self._gates.recheck(context, error)

    def _read_profile(self, message: Apply) -> Stored[Profile] | None:
        """Read the profile; its contents may be lost if it leaves the cluster."""
        place = (message.trigger, message.cluster, message.profile)
        try:
            return self._records.profiles.get(*place)
        except MissingError:
            head = self._records.profiles.head(*place)
            if head and message.destination in head.value.destinations:
                raise
            return head


def _is_of_failed_release(context: ReconcileContext, inventory: Inventory) -> bool:
    """Say whether an event is about a release that the next attempt deploys again anyway.

    Helm's own writes send such events, also those of an attempt that fails. A release that Helm was
    killed at is not one of these.
    """
    touched = context.message.touched
    part = context.progress.held.get(Identity.parse(touched)) if touched else None
    if part is None or not part.part_of or context.message.contested or inventory.worker:
        return False
    namespace, _, name = part.part_of.partition("/")
    release = context.progress.held.get(release_key(namespace, name))
    return release is not None and not release.digest


def _features_of(profile: Profile, held: Mapping[Identity, Held]) -> frozenset[str]:
    """Name the features that a profile has, or had in a cluster; one without contents has one."""
    contents = [each.feature for each in profile.contents] or ["Resources"]
    return frozenset((*contents, *(each.feature for each in held.values())))


def _inputs(
    message: Apply,
    profile: Stored[Profile] | None,
    cluster: str,
    hosted: Sequence[Stored[Cluster]],
) -> tuple[str, ...]:
    """Name the versions of the inputs; a removal has none.

    The cluster is one of them: templates read its labels, and another may have taken its place.
    """
    if profile is None or message.destination not in profile.value.destinations:
        return ()
    others = [digest([each.token for each in hosted])] if hosted else []
    return (profile.value.revision, cluster, *others)


def _empty_profile(message: Apply) -> Profile:
    """Return an empty profile in place of one that is deleted, to remove what may be left."""
    policy = AddonPolicy(tier=0)
    return Profile.draft(policy, message.profile, trigger=message.trigger, cluster=message.cluster)
