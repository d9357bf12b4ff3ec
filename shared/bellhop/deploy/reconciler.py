"""Deploy, second half: one profile to one cluster, from plan to inventory.

    read ─► may it begin? ─► plans, carried out (`attempt`) ─► status
      ▲                                                          │
      └──────────────────── read again ◄─────────────────────────┘

Every try starts from the records, and holds the lease of the inventory while it works. Since a
worker that was slow may have carried out what is wanted no more, it looks again at what it began
with when it has ended. What there is to plan, and how it is done, is a feature's: see `features`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from bellhop.catalog.cache import Catalogs
from bellhop.clusters.circuit_breaker import Circuits
from bellhop.clusters.management_cluster import guests
from bellhop.clusters.pause_gate import Pauses
from bellhop.core.digest import digest
from bellhop.core.gvk import Identity
from bellhop.deploy.attempt import Deployer
from bellhop.deploy.context import ReconcileContext, is_done_once
from bellhop.deploy.dependencies import TemplateDependencies
from bellhop.deploy.features.charts.executor import Releases
from bellhop.deploy.features.feature import Feature
from bellhop.deploy.features.resources.executor import Executor
from bellhop.deploy.gates.dependencies import DependencyGate
from bellhop.deploy.gates.permissions import PermissionsGate
from bellhop.deploy.gates.rollout import RolloutGate
from bellhop.deploy.gates.transition import TransitionGate
from bellhop.deploy.lease import UNKNOWN, Leases, Peers
from bellhop.deploy.status import StatusWriter
from bellhop.errors import (
    AwayError,
    BellhopError,
    BusyError,
    MissingError,
    PausedError,
    StaleError,
    TemporaryError,
    UnauthorizedError,
    UnmetError,
    UnreachableError,
    WaitingError,
)
from bellhop.logs import Log
from bellhop.ports.access import Access
from bellhop.ports.metrics import Metrics
from bellhop.ports.store import ABSENT
from bellhop.ports.tools import NONE, Tools
from bellhop.settings import Settings
from bellhop.state.chart import release_key
from bellhop.state.concurrency import until_settled
from bellhop.state.event_recorder import Note, noting
from bellhop.state.messages import CHARTS, Apply, Publisher
from bellhop.state.record import Cluster, Inventory, Profile
from bellhop.state.table import Stored
from bellhop.state.worker_pool import SEQUENTIAL, WorkerPool

_ROUNDS = 4


def make_features(
    catalogs: Catalogs,
    access: Access,
    publisher: Publisher,
    settings: Settings,
    *,
    hands: WorkerPool,
    tools: Tools,
) -> tuple[Feature[Any], ...]:
    """Return all features, in the order in which they are planned and carried out."""
    resources = Executor(catalogs.records, access, publisher, settings, hands, tools)
    charts = Releases(catalogs, access, publisher, settings, tools, hands)
    return resources, charts, resources.named("Kustomize")


class ProfileReconciler:
    """Applies profiles to clusters and withdraws them."""

    def __init__(  # noqa: PLR0913 - a stage has a port for each that it asks
        self,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        *,
        metrics: Metrics,
        peers: Peers = UNKNOWN,
        hands: WorkerPool = SEQUENTIAL,
        tools: Tools = NONE,
    ) -> None:
        """Make the stage of one process, which deploys what it has the tools for."""
        self._records = records = catalogs.records
        self._publisher = publisher
        self._circuits = Circuits(records, access, publisher, settings, log)
        self._leases = Leases(records, settings, peers)
        self._endings = StatusWriter(records, settings, alone=peers.alone)
        self._elsewhere = TemplateDependencies(records, publisher, settings)
        self._order = DependencyGate(records, publisher)
        self._pauses = Pauses(records)
        self._turns = RolloutGate(records, publisher)
        self._revoking = PermissionsGate(catalogs)
        self._transitions = TransitionGate(catalogs, publisher)
        self._features = make_features(
            catalogs, access, publisher, settings, hands=hands, tools=tools
        )
        self._deployer = Deployer(
            catalogs,
            access,
            publisher,
            settings,
            metrics=metrics,
            leases=self._leases,
            endings=self._endings,
            features=self._features,
            builds=tools.kustomizations is not None,
        )

    def handle(self, message: Apply) -> None:
        """Bring one cluster to what one profile wants there; every try starts from the records.

        Raises:
            BusyError: another worker is at it.
            TemporaryError: it failed, and is to be tried again soon.
        """
        self._once(message)

    @until_settled("apply '{message.profile}'", _ROUNDS)
    def _once(self, message: Apply) -> bool:
        """Do it once; False if another worker was quicker, or what it was made of has changed."""
        name, cluster = message.profile, message.destination
        # Before all else: whoever notes another from now on may know more than we do.
        outcome = self._records.outcomes.get(cluster, name)
        kept = self._records.inventories.get(cluster, name)
        inventory = kept.value if kept else Inventory(cluster, name, {})
        if self._waits_for_helm(message, inventory):
            return True
        found = self._found(message)
        if found and (found.value.paused or is_done_once(found.value, outcome, inventory)):
            if not found.value.paused:
                self._deployer.let_others(found.value, cluster, outcome)
                if outcome and outcome.value.reads:
                    self._elsewhere.forget(name, cluster)
            return True
        record = self._records.clusters.get(cluster)
        profile = found.value if found else _closed(message)
        hosted = guests(self._records, profile, cluster)
        inputs = _inputs(message, found, record.token if record else ABSENT, hosted)
        try:
            if record is None or (found is None and not inventory.held):
                self._deployer.leave(profile, cluster, outcome)
            else:
                work = ReconcileContext(
                    message=message,
                    profile=profile,
                    cluster=record.value,
                    outcome=outcome,
                    held=dict(inventory.held),
                    token=kept.token if kept else ABSENT,
                    begun_at=self._records.clock.now(),
                    made_of=" ".join(inputs),
                    guests=tuple(each.value for each in hosted),
                    features=tuple(
                        feature.name
                        for feature in self._features
                        if feature.concerns(profile, inventory.held)
                    ),
                )
                if self._stays_given_up(work):
                    return True
                if _is_of_failed_release(work, inventory) and self._endings.leaves(work):
                    return True
                self._try(work)
                if any(feature.reads_otherwise(work) for feature in self._features):
                    return False
        except StaleError:
            return False
        return self._inputs(message) == inputs

    def _waits_for_helm(self, message: Apply, inventory: Inventory) -> bool:
        """Queue a message that meets a lease behind the one that Helm works on, if it may be Helm.

        Helm's own writes send events while it runs. In its inbox they wait only until it ends, and
        no change waits behind them here.

        Raises:
            BusyError: another worker holds the lease.
        """
        try:
            self._leases.refuse_busy(inventory)
        except BusyError:
            charts = any(each.release for each in inventory.held.values())
            if not charts or not self._deployer.hand_over(message, CHARTS):
                raise
            return True
        return False

    def _stays_given_up(self, work: ReconcileContext) -> bool:
        """Say whether it was given up, and nothing that it is made of has changed since.

        An object that changed hands is a reason to try: nobody tells of it again.
        """
        if not work.given_up or work.message.contested or not work.outcome:
            return False
        work.read = work.outcome.value.read
        return not any(feature.reads_otherwise(work) for feature in self._features)

    def _inputs(self, message: Apply) -> tuple[str, ...]:
        """Name what it would be made of now."""
        found = self._records.profiles.head(message.trigger, message.cluster, message.profile)
        hosted = guests(self._records, found.value if found else None, message.destination)
        return _inputs(message, found, self._records.clusters.token(message.destination), hosted)

    def _try(self, work: ReconcileContext) -> None:
        """Deploy it, and write to the event log what was changed and why the attempt failed.

        After a failure the next attempt finds nothing to change, and logs nothing.
        """
        message, profile = work.message, work.profile
        place = self._records, message, work.cluster.key, profile.object
        with noting(*place) as note, noting(*place) as done:
            note.context = done.context = {"profile": profile.shown, "trigger": profile.trigger}
            try:
                self._revoking.refuse_early(work)
                self._transitions.refuse_early(work)
                if not work.only_hosts:
                    self._order.refuse_early(work)
                    self._turns.refuse_early(work)
                self._call(work)
            except StaleError:
                raise
            except (AwayError, PausedError, WaitingError) as error:
                self._wait(work, error, note)
            except BellhopError as error:
                if not isinstance(error, UnmetError):
                    note.fail("apply", error)
                elif not work.changed:
                    note.what, note.detail = "waits", str(error)
                self._endings.fail(work, error)
            finally:
                if work.changed:
                    done.what = "applied" if work.wanted else "removed"
                    done.detail = ", ".join(work.changed)

    def _wait(
        self, work: ReconcileContext, error: AwayError | PausedError | WaitingError, note: Note
    ) -> None:
        """Note that it waits, and for whom; who tells it to go on must be able to see that.

        Raises:
            StaleError: it waits for nothing any more, and is to begin anew.
            TemporaryError: the same, or it will very soon.
        """
        if self._endings.wait(work, error):
            note.what, note.detail = "waits", str(error)
        if isinstance(error, AwayError):
            self._look_again(work)
            return
        self._deployer.keep_doubts(work)
        if isinstance(error, PausedError):
            self._pauses.look_again(work, error)
            self._turns.step_aside(work)

    def _call(self, work: ReconcileContext) -> None:
        """Bring it about, where the cluster answers.

        Raises:
            AwayError: it does not, to nobody.
        """
        self._circuits.refuse_away(work.cluster.key)
        try:
            self._deployer.deploy(work)
        except UnreachableError:
            self._circuits.doubt(work.cluster.key)
            raise
        except UnauthorizedError as error:
            self._circuits.note_refusal(work.cluster.key, error)
            raise

    def _look_again(self, work: ReconcileContext) -> None:
        """See whether who tells those that wait could see by now that we do.

        Raises:
            TemporaryError: the cluster answers again.
        """
        try:
            self._circuits.refuse_away(work.cluster.key)
        except AwayError:
            return
        text = f"cannot apply '{work.profile.shown}' yet: '{work.cluster.key}' was away until now"
        raise TemporaryError(text, delay=timedelta(0))

    def _found(self, message: Apply) -> Stored[Profile] | None:
        """Read the profile; to leave a cluster, its contents need not be there."""
        place = (message.trigger, message.cluster, message.profile)
        try:
            return self._records.profiles.get(*place)
        except MissingError:
            head = self._records.profiles.head(*place)
            if head and message.destination in head.value.destinations:
                raise
            return head


def _is_of_failed_release(work: ReconcileContext, inventory: Inventory) -> bool:
    """Say whether an event tells of a release that the next try deploys again anyway.

    Helm's own writes send such events, also those of a try that fails. What a process was killed
    at is no such release.
    """
    touched = work.message.touched
    part = work.held.get(Identity.parse(touched)) if touched else None
    if part is None or not part.part_of or work.message.contested or inventory.worker:
        return False
    namespace, _, name = part.part_of.partition("/")
    release = work.held.get(release_key(namespace, name))
    return release is not None and not release.digest


def _inputs(
    message: Apply,
    profile: Stored[Profile] | None,
    cluster: str,
    hosted: Sequence[Stored[Cluster]],
) -> tuple[str, ...]:
    """Name what an execution is made of, its cluster by the token; of what is to go nothing.

    Templates read the labels of the cluster, and another one may have come in its place.
    """
    if profile is None or message.destination not in profile.value.destinations:
        return ()
    others = [digest([each.token for each in hosted])] if hosted else []
    return (profile.value.revision, cluster, *others)


def _closed(message: Apply) -> Profile:
    """Return a profile that is no more as one that wants nothing, for what may be left of it."""
    return Profile(
        name=message.profile,
        trigger=message.trigger,
        cluster=message.cluster,
        object="",
        contents=(),
        destinations=(),
        tier=0,
        leaves_policies=False,
        continue_on_conflict=False,
        digest="",
    )
