"""Deploy, second half, within one try: the plans of a profile's features, carried out.

each feature's plan ─► checks ─► lease ─► carried out ─► given up ─► checks ─► outcome
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.clusters.pause_gate import Pauses
from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext, ends
from bellhop.deploy.dependencies import TemplateDependencies
from bellhop.deploy.features.feature import Feature, Plan
from bellhop.deploy.gates.check_metrics import MetricReader
from bellhop.deploy.gates.checks import Checks
from bellhop.deploy.gates.dependencies import DependencyGate
from bellhop.deploy.gates.permissions import PermissionsGate
from bellhop.deploy.gates.rollout import RolloutGate
from bellhop.deploy.lease import Leases
from bellhop.deploy.status import StatusWriter, together
from bellhop.deploy.watches import DriftWatches
from bellhop.errors import (
    BellhopError,
    CloudDeniedError,
    PermanentError,
    StaleError,
    TemporaryError,
    UnauthorizedError,
    WaitingError,
)
from bellhop.extras.roles.retry import PermissionRetry
from bellhop.ports.access import Access
from bellhop.ports.metrics import Metrics
from bellhop.profiles.names import NameReservations
from bellhop.settings import Settings
from bellhop.state.messages import CHARTS, Apply, Publisher
from bellhop.state.record import DeploymentStatus, Profile
from bellhop.state.table import Stored


class Deployer:
    """Plans what the features of a profile want in one cluster, and executes the plans."""

    def __init__(  # noqa: PLR0913 - a stage has a port for each that it asks
        self,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        *,
        metrics: Metrics,
        leases: Leases,
        endings: StatusWriter,
        features: Sequence[Feature[Any]],
        builds: bool,
    ) -> None:
        """Make the deployer of a worker; it has kubectl if it `builds`."""
        self._records = records = catalogs.records
        self._publisher = publisher
        self._leases = leases
        self._features = features
        self._builds = builds
        self._endings = endings
        self._watching = DriftWatches(records, publisher)
        self._elsewhere = TemplateDependencies(records, publisher, settings)
        reader = MetricReader(NameReservations(records, publisher), metrics, settings)
        self._checks = Checks(records, access, reader, settings)
        self._order = DependencyGate(records, publisher)
        self._pauses = Pauses(records)
        self._turns = RolloutGate(records, publisher)
        self._granting = PermissionRetry(records, publisher)
        self._revoking = PermissionsGate(catalogs)

    def deploy(self, work: ReconcileContext) -> None:
        """Plan the features, execute the plans under the lease, and record success.

        Raises:
            BellhopError: it failed, or is to wait.
        """
        if self._lacks_kubectl(work) and self.hand_over(work.message, CHARTS):
            return
        self._elsewhere.note(work)
        plans = self._plans(work)
        if any(not plan.idle and self.hand_over(work.message, each.inbox) for each, plan in plans):
            return
        idle = all(plan.idle for _, plan in plans)
        if idle or work.dry:
            _refuse_unplanned(work)
        if work.dry:
            self._preview(work, plans)
            return
        stands = idle and self._checks.have_passed(work)
        if not stands:
            self._pauses.refuse(work)
        if not idle:
            self._check(work, self._checks.before)
            self._carry_out(work, plans)
        self._watching.keep(work)
        self._conclude(work, stands=stands)

    def _plans(self, work: ReconcileContext) -> list[tuple[Feature[Any], Plan]]:
        """Plan the features in order, up to one that cannot be planned now.

        By continueOnError the features after it are planned, too.

        Raises:
            BellhopError: nothing can be planned, or what is wrong concerns all features.
        """
        plans: list[tuple[Feature[Any], Plan]] = []
        for feature in self._each(work):
            try:
                plans.append((feature, feature.plan(work)))
            except BellhopError as error:
                continues = work.profile.rollout.continues
                if not (plans or continues) or not _is_of_one(error):
                    raise
                work.unplanned[feature.name] = error
                if not continues:
                    break
        return plans

    def _conclude(self, work: ReconcileContext, *, stands: bool) -> None:
        """Record how it ended; by `stands` the checks have passed already."""
        if work.failed:
            others = (*work.lacking, *work.unplanned.values(), *work.terminating)
            raise together((*work.failed, *others))
        if work.unfinished and (work.got_on or not work.lacking):
            self._endings.go_on(work)
            self._publisher.publish([replace(work.message, contested="", touched="")])
        elif work.lacking:
            raise together(work.lacking)
        elif work.unplanned:
            _refuse_unplanned(work)
        elif work.terminating:
            raise together(work.terminating)
        elif work.contests:
            self._endings.slow(work)
        else:
            if not stands:
                self._check(work, self._checks.after)
            self._end(work)
            if not stands:
                self._checks.tidy(work)

    def _lacks_kubectl(self, work: ReconcileContext) -> bool:
        """Say whether this worker cannot plan it, since a plan needs what kustomizations build."""
        builds = any(each.kustomization for each in work.profile.contents)
        return not self._builds and work.wanted and builds

    def hand_over(self, message: Apply, inbox: str) -> bool:
        """Publish a message to the inbox of other workers; say whether there are any.

        Where there are none, the feature says what is missing.
        """
        others = inbox not in ("", message.of) and self._publisher.reaches(inbox)
        if others:
            self._publisher.publish([replace(message, of=inbox)])
        return others

    def _end(self, work: ReconcileContext) -> None:
        if work.wanted:
            self._granting.tell(work)
            self._endings.settle(work)
            self.let_others(work.profile, work.cluster.key, work.outcome)
        else:
            self.leave(work.profile, work.cluster.key, work.outcome)

    def let_others(
        self, profile: Profile, cluster: str, outcome: Stored[DeploymentStatus] | None
    ) -> None:
        """Wake the profiles that wait until this one is deployed in a cluster."""
        self._order.tell(profile, cluster, outcome)
        if not profile.error:
            self._turns.end(profile, cluster, outcome)

    def leave(
        self, profile: Profile, cluster: str, outcome: Stored[DeploymentStatus] | None
    ) -> None:
        """Wake the profiles that wait until this one has left a cluster, and record that it has."""
        if outcome is None or outcome.value.reads:
            self._elsewhere.forget(profile.name, cluster)
        self._order.leave(profile, cluster, outcome)
        self._turns.end(profile, cluster, outcome)
        self._endings.leave(profile, cluster, outcome)

    def _check(self, work: ReconcileContext, checks: Callable[[ReconcileContext], None]) -> None:
        """Ask the checks of each feature.

        Raises:
            UnmetError: one does not pass yet.
        """
        for _ in self._each(work):
            checks(work)

    def _each(self, work: ReconcileContext) -> Iterator[Feature[Any]]:
        """Yield the features in order that were planned, and note at which one the work is."""
        for feature in self._features:
            if feature.name in work.unplanned:
                if not work.profile.rollout.continues:
                    break
                continue
            work.at = feature.name if feature.name in work.features else ""
            yield feature
        work.at = ""

    def _preview(self, work: ReconcileContext, plans: Sequence[tuple[Feature[Any], Plan]]) -> None:
        """Note what plans would change; of what we hold only that it may not be as it was."""
        changes = [each for feature, plan in plans for each in feature.preview(work, plan)]
        if work.message.contested:
            self.keep_doubts(work)
        self._endings.preview(work, changes)

    def keep_doubts(self, work: ReconcileContext) -> None:
        """Store which objects may have changed: only one message says so."""
        told = filter(None, (work.message.contested, work.message.touched))
        if keys := [Identity.parse(each) for each in told]:
            self._records.inventories.doubt(work.cluster.key, work.profile.name, None, keys)

    def _carry_out(
        self, work: ReconcileContext, plans: Sequence[tuple[Feature[Any], Plan]]
    ) -> None:
        """Carry plans out under the lease; the inventory keeps what was done."""
        begun = work.held
        for _, plan in plans:
            begun = plan.begun(begun)
        work.refuse_removal = partial(self._checks.before_removal, work)
        self._leases.take(work, begun)
        try:
            self._look_ahead(work)
            waiting = [plan for _, plan in plans]
            for feature in self._each(work):
                feature.carry_out(work, waiting.pop(0))
                if work.unfinished or any(ends(work.profile, each) for each in work.failed):
                    break
            for plan in waiting:
                work.take_back(plan.begun({}))
        finally:
            self._leases.give_up(work)

    def _look_ahead(self, work: ReconcileContext) -> None:
        """See once more whether what comes first stays: who withdraws it sees our lease, or we it.

        And whether it is our turn still, and what is new to the cluster not to leave it again.

        Raises:
            WaitingError: what comes first does not stay; nothing was begun.
            StaleError: our turn has ended, or it is to leave; the same.
        """
        try:
            if work.in_turn:
                self._order.refuse_early(work)
            self._turns.begin(work)
            self._revoking.look_ahead(work)
        except (StaleError, WaitingError):
            work.held = dict(work.before)
            raise


def _is_of_one(error: BellhopError) -> bool:
    """Say whether what keeps a feature from being planned says nothing about the others."""
    permanent = isinstance(error, PermanentError) and not isinstance(error, UnauthorizedError)
    return permanent or type(error) in (TemporaryError, CloudDeniedError)


def _refuse_unplanned(work: ReconcileContext) -> None:
    """Raise why features cannot be planned, if any cannot."""
    if work.unplanned:
        if not work.profile.rollout.continues:
            work.at, *_ = work.unplanned
        raise together([*work.unplanned.values()])
