"""One attempt: the plans of a profile's features are executed under the lease.

plan of each feature ─► checks ─► lease acquired ─► executed ─► released ─► checks ─► status
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.dependencies import TemplateDependencies
from bellhop.deploy.features.feature import Feature, Plan
from bellhop.deploy.gates.checks import Checks
from bellhop.deploy.gates.sequence import Gates
from bellhop.deploy.lease import Leases
from bellhop.deploy.status import StatusWriter
from bellhop.deploy.status_messages import join_errors
from bellhop.deploy.watches import DriftWatches
from bellhop.errors import (
    BellhopError,
    CloudDeniedError,
    PermanentError,
    TemporaryError,
    UnauthorizedError,
)
from bellhop.extras.roles.retry import PermissionRetry
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.messages import CHARTS, Apply, Publisher
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored


class Deployer:
    """Plans the features of a profile in one cluster, and executes the plans."""

    def __init__(  # noqa: PLR0913 - one for each collaborator
        self,
        records: Records,
        publisher: Publisher,
        *,
        checks: Checks,
        dependencies: TemplateDependencies,
        leases: Leases,
        statuses: StatusWriter,
        gates: Gates,
        features: Sequence[Feature[Any]],
        builds: bool,
    ) -> None:
        """Make the deployer of a worker; it has kubectl if it `builds`."""
        self._records = records
        self._publisher = publisher
        self._leases = leases
        self._features = features
        self._builds = builds
        self._statuses = statuses
        self._watches = DriftWatches(records, publisher)
        self._dependencies = dependencies
        self._checks = checks
        self._gates = gates
        self._permission_retry = PermissionRetry(records, publisher)

    def deploy(self, context: ReconcileContext) -> None:
        """Plan the features, execute the plans under the lease, and record success.

        Raises:
            BellhopError: it failed, or must wait.
        """
        if self._lacks_kubectl(context) and self.hand_over(context.message, CHARTS):
            return
        reads = context.profile.reads or (context.status and context.status.value.reads)
        if reads:
            self._dependencies.note(context)
        plans = self._plans(context)
        if any(
            not plan.idle and self.hand_over(context.message, each.inbox) for each, plan in plans
        ):
            return
        idle = all(plan.idle for _, plan in plans)
        if idle or context.dry_run:
            _refuse_unplanned(context)
        if context.dry_run:
            self._preview(context, plans)
            return
        checked = context.profile.checked and not context.only_hosts
        stands = idle and (not checked or self._checks.have_passed(context))
        if not stands:
            self._gates.check_pause(context)
        if not idle:
            self._check(context, self._checks.before)
            self._execute(context, plans)
        self._watches.update(context)
        self._conclude(context, stands=stands)

    def _plans(self, context: ReconcileContext) -> list[tuple[Feature[Any], Plan]]:
        """Plan the features in order, up to one that cannot be planned now.

        By continueOnError the features after it are planned, too.

        Raises:
            BellhopError: nothing can be planned, or the error concerns all features.
        """
        plans: list[tuple[Feature[Any], Plan]] = []
        for feature in self._each(context):
            if feature.inbox and feature.name not in context.features:
                continue
            try:
                plans.append((feature, feature.plan(context)))
            except BellhopError as error:
                continues = context.profile.rollout.continues
                if not (plans or continues) or not _is_of_one(error):
                    raise
                context.verdict.unplanned[feature.name] = error
                if not continues:
                    break
        return plans

    def _conclude(self, context: ReconcileContext, *, stands: bool) -> None:
        """Record success, or raise the errors; by `stands` the checks have passed already."""
        if context.verdict.failed:
            others = (
                *context.verdict.skipped,
                *context.verdict.unplanned.values(),
                *context.verdict.terminating,
            )
            raise join_errors((*context.verdict.failed, *others))
        if context.progress.unfinished and (
            context.progress.has_progressed or not context.verdict.skipped
        ):
            self._statuses.record_progress(context)
            self._publisher.publish([replace(context.message, contested="", touched="")])
        elif context.verdict.skipped:
            raise join_errors(context.verdict.skipped)
        elif context.verdict.unplanned:
            _refuse_unplanned(context)
        elif context.verdict.terminating:
            raise join_errors(context.verdict.terminating)
        elif context.verdict.contests:
            self._statuses.record_contests(context)
        else:
            if not stands:
                self._check(context, self._checks.after)
            self._finish(context)
            if not stands and context.profile.checks:
                self._checks.tidy(context)

    def _lacks_kubectl(self, context: ReconcileContext) -> bool:
        """Say whether this worker lacks the program that builds kustomizations, to plan."""
        builds = any(each.kustomization for each in context.profile.contents)
        return not self._builds and context.is_destination and builds

    def hand_over(self, message: Apply, inbox: str) -> bool:
        """Publish a message to the inbox of other workers; say whether there are any."""
        others = inbox not in ("", message.of) and self._publisher.reaches(inbox)
        if others:
            self._publisher.publish([replace(message, of=inbox)])
        return others

    def _finish(self, context: ReconcileContext) -> None:
        if context.is_destination:
            if context.profile.grants:
                self._permission_retry.retry_denied(context)
            self._statuses.record_success(context)
            self._gates.release(context.profile, context.cluster.key, context.status)
        else:
            self.leave(context.profile, context.cluster.key, context.status)

    def leave(
        self, profile: Profile, cluster: str, status: Stored[DeploymentStatus] | None
    ) -> None:
        """Record that a profile has left a cluster, and release the profiles that wait for that."""
        if status is None or status.value.reads:
            self._dependencies.forget(profile.name, cluster)
        self._gates.release(profile, cluster, status, left=True)
        self._statuses.record_removal(profile, cluster, status)

    def _check(self, context: ReconcileContext, checks: Callable[[ReconcileContext], None]) -> None:
        """Run the checks of each feature.

        Raises:
            UnmetError: one does not pass yet.
        """
        if context.profile.checked:
            for _ in self._each(context):
                checks(context)

    def _each(self, context: ReconcileContext) -> Iterator[Feature[Any]]:
        """Yield the features that were planned in order, and enter each of them."""
        for feature in self._features:
            if feature.name in context.verdict.unplanned:
                if not context.profile.rollout.continues:
                    break
                continue
            context.enter(feature.name)
            yield feature
        context.enter("")

    def _preview(
        self, context: ReconcileContext, plans: Sequence[tuple[Feature[Any], Plan]]
    ) -> None:
        """Record the changes that plans would make, and the objects that are uncertain."""
        changes = [each for feature, plan in plans for each in feature.preview(context, plan)]
        if context.message.contested:
            self.record_uncertain(context)
        self._statuses.record_preview(context, changes)

    def record_uncertain(self, context: ReconcileContext) -> None:
        """Store which objects may have changed: no other message reports it."""
        objects = filter(None, (context.message.contested, context.message.touched))
        if keys := [Identity.parse(each) for each in objects]:
            self._records.inventories.doubt(context.cluster.key, context.profile.name, None, keys)

    def _execute(
        self, context: ReconcileContext, plans: Sequence[tuple[Feature[Any], Plan]]
    ) -> None:
        """Execute plans under the lease; the inventory stores what was done."""
        begun = context.progress.held
        for _, plan in plans:
            begun = plan.uncertain(begun)
        self._leases.acquire(context, begun)
        try:
            self._gates.confirm(context)
            for number, (feature, plan) in enumerate(plans, start=1):
                context.enter(feature.name)
                feature.execute(context, plan)
                failed = any(context.profile.stops_at(each) for each in context.verdict.failed)
                if context.progress.unfinished or failed:
                    for _, rest in plans[number:]:
                        context.restore(rest.uncertain({}))
                    break
            else:
                context.enter("")
        finally:
            self._leases.release(context)


def _is_of_one(error: BellhopError) -> bool:
    """Say whether the error of a feature that cannot be planned concerns no other feature."""
    permanent = isinstance(error, PermanentError) and not isinstance(error, UnauthorizedError)
    return permanent or type(error) in (TemporaryError, CloudDeniedError)


def _refuse_unplanned(context: ReconcileContext) -> None:
    """Raise why features cannot be planned, if any cannot."""
    if context.verdict.unplanned:
        if not context.profile.rollout.continues:
            context.progress.feature, *_ = context.verdict.unplanned
        raise join_errors([*context.verdict.unplanned.values()])
