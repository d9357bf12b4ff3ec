"""Executes plans of charts: one release after the other, each claimed before Helm is called.

A worker may die at any moment: operations that have begun are in the inventory, and Helm's own
record of the release says how far it came. Helm ends well before another worker gets the lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.core.gvk import Identity
from bellhop.deploy.context import ObjectResult, ReconcileContext, is_passed_over
from bellhop.deploy.drift import Drift
from bellhop.deploy.features.charts.cluster_releases import Caller
from bellhop.deploy.features.charts.desired import DesiredState
from bellhop.deploy.features.charts.drift_exclusions import excluded_of
from bellhop.deploy.features.charts.handover import ReleaseHandover
from bellhop.deploy.features.charts.inputs import DELETE, Archives, ReleaseInputs, open_cluster
from bellhop.deploy.features.charts.lane import Lane
from bellhop.deploy.features.charts.ownership import ReleaseOwnership
from bellhop.deploy.features.charts.planning import (
    Await,
    Claim,
    Deploy,
    Leave,
    Plan,
    Remove,
    plan,
)
from bellhop.deploy.features.charts.preflight import Preflight, leaves, settling
from bellhop.deploy.features.charts.preview import Preview
from bellhop.deploy.features.charts.readiness import (
    Readiness,
    holds,
    is_read,
    options_of,
    without_wait,
)
from bellhop.deploy.features.charts.recheck import Recheck
from bellhop.deploy.features.charts.removals import Removals, is_known
from bellhop.deploy.files import FilesReader
from bellhop.deploy.handover import Transfer
from bellhop.deploy.object_diff import uncompared
from bellhop.deploy.ownership import Ownership, Taken
from bellhop.deploy.references import Resources
from bellhop.errors import (
    BellhopError,
    ConflictError,
    MissingError,
    PermanentError,
    QueuedError,
    TemporaryError,
    UnmetError,
)
from bellhop.gotemplate import Limits
from bellhop.ports.charts import Archive, DesiredRelease, Release
from bellhop.ports.kube import Access
from bellhop.ports.tools import Tools
from bellhop.profiles.names import NameReservations
from bellhop.rendering.charts.releases import Desired
from bellhop.rendering.secrecy import withhold_quotes
from bellhop.settings import Settings
from bellhop.state.chart import HeldRelease
from bellhop.state.deployment import Change, Held
from bellhop.state.messages import CHARTS, Publisher
from bellhop.state.worker_pool import WorkerPool

_NOW = timedelta(0)

Check = Callable[[ReconcileContext], None]
"""Raises the error because of which a feature may not remove a release from its cluster yet."""


class Releases:
    """The feature `Helm`: plans, and carries plans out; without Helm it says what is missing."""

    name = "Helm"
    inbox = CHARTS

    def __init__(
        self,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        tools: Tools,
        pool: WorkerPool,
        check_removal: Check,
    ) -> None:
        self._check_removal = check_removal
        self._records = records = catalogs.records
        self._access = access
        self._settings = settings
        self._caller = caller = Caller(access, tools.helm)
        self._ownership = Ownership(records, publisher)
        transfer = Transfer(records, publisher, pool)
        limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        names = NameReservations(records, publisher)
        files = FilesReader(records, access, names, tools.files)
        archives = Archives(files)
        self._inputs = ReleaseInputs(access, settings, archives)
        resources = Resources(records, access, names, limits, files)
        pin = partial(archives.pin, tools.helm)
        self._desired_state = DesiredState(resources, limits, pin)
        self._parts = ReleaseOwnership(records.clock, access, self._ownership)
        self._lane = Lane(records.clock, publisher)
        self._removals = Removals(
            records.clock,
            access,
            caller,
            self._ownership,
            transfer=transfer,
            inputs=self._inputs,
            parts=self._parts,
            heirs=ReleaseHandover(catalogs, limits),
            lane=self._lane,
        )
        self._readiness = Readiness(records.clock, access, settings)
        self._preflight = Preflight(access, settings)
        self._preview = Preview(self._ownership, self._preflight)
        self._drift = Drift(access, records.clock)
        self._recheck = Recheck(access, self._ownership)

    def plan(self, context: ReconcileContext) -> Plan:
        """Decide what to do about the releases of a profile in a cluster."""
        if context.message.contested:
            self._recheck.mark_uncertain(context, Identity.parse(context.message.contested))
        if context.is_destination:
            if context.watches_drift:
                self._drift.mark_drifted_parts(context, excluded_of(context.profile))
            return plan(
                self._desired_state.render(context), context.progress.held, context.profile.tier
            )
        leaves = context.profile.leaves_unchanged or context.profile.leaves_policies
        return plan((), context.progress.held, context.profile.tier, releases_all=leaves)

    def has_changed(self, context: ReconcileContext) -> bool:
        """Say that nothing has changed: what templates read is what the first feature read."""
        del context
        return False

    def execute(self, context: ReconcileContext, plan: Plan) -> None:
        """Carry a plan out, for as long as a turn lasts."""
        for step in plan.steps:
            if not self._begins_another(context):
                return
            result = self._execute_step(context, step)
            context.record(result)
            if result.refused and context.profile.stops_at(result.refused):
                return
        if context.verdict.failed or context.verdict.skipped or context.verdict.unplanned:
            # A profile that could not be applied as a whole takes nothing away.
            return
        if plan.removals and context.is_destination:
            try:
                self._check_removal(context)
            except (UnmetError, MissingError) as error:
                context.restore(each.key for each in plan.removals)
                context.verdict.skipped.append(error)
                return
        for unwanted in plan.removals:
            if not self._begins_another(context):
                return
            context.record(self._removals.leave(context, unwanted))

    def preview(self, context: ReconcileContext, plan: Plan) -> Sequence[Change]:
        """Return the changes of a plan, by Helm's own dry run.

        Releases that stay as they are compared with the cluster if the work is `live`.
        """
        steps: list[Deploy | Remove | Leave] = []
        stay = list(plan.unchanged)
        for each in (*plan.steps, *plan.removals):
            if isinstance(each, Claim | Await):
                stay.append(each.key)
            else:
                steps.append(each)
        if not steps and not (context.live and stay):
            return [uncompared(key) for key in stay]
        helm, kubeconfig = self._caller.helm(context), self._caller.kubeconfig(context)
        changes: list[Change] = []
        for step in steps:
            if isinstance(step, Deploy):
                found = self._inputs.find(context, helm, step.desired, there=is_known(step.held))
                changes += self._preview.deploy(helm, context, kubeconfig, step, found)
            else:
                changes += self._preview.leave(helm, context, kubeconfig, step)
        if not context.live:
            return [*changes, *map(uncompared, stay)]
        kube = open_cluster(self._access, context)
        for key in stay:
            changes += self._preview.stay(helm, kube, context, kubeconfig, key)
        return changes

    def _begins_another(self, context: ReconcileContext) -> bool:
        """Say whether another release is begun before the turn of this attempt ends."""
        end = context.lease.begun_at + self._settings.turn
        return context.progress.begins_another(self._records.clock.now(), end)

    def _execute_step(
        self, context: ReconcileContext, step: Deploy | Await | Claim | Remove
    ) -> ObjectResult:
        """Take one step; where the profile goes on, a release that fails for now is passed over."""
        try:
            if isinstance(step, Claim):
                return self._claim(context, step)
            if isinstance(step, Await):
                return self._await(context, step)
            return (
                self._deploy(context, step)
                if isinstance(step, Deploy)
                else self._removals.uninstall(context, step)
            )
        except TemporaryError as error:
            if self._has_expired(context) or not is_passed_over(context.profile, error):
                raise
            return ObjectResult(step.key, context.progress.held.get(step.key), refused=error)

    def _claim(self, context: ReconcileContext, step: Claim) -> ObjectResult:
        """Claim a release, and what it consists of, for the tier of its profile."""
        key, release = step.key, step.held.release
        assert release
        try:
            self._ownership.claim(context.cluster.key, key, context.profile)
        except ConflictError as error:
            self._parts.drop(context, key)
            return ObjectResult(key, None, refused=error)
        self._parts.claim(context, key)
        known = replace(release, tier=context.profile.tier, kept_until=None)
        return ObjectResult(key, replace(step.held, release=known))

    def _await(self, context: ReconcileContext, step: Await) -> ObjectResult:
        """Read whether a release is ready, and claim it for the tier of its profile."""
        assert step.held.release
        result = ObjectResult(step.key, step.held)
        if step.held.release.tier != context.profile.tier or step.held.release.kept_until:
            result = self._claim(context, Claim(step.key, step.held))
        return result if result.refused else self._readiness.read(context, step.desired, result)

    def _deploy(self, context: ReconcileContext, step: Deploy) -> ObjectResult:
        """Claim a release, and have Helm install or upgrade it."""
        cluster, key, profile = context.cluster.key, step.key, context.profile
        taken: Taken | None = None
        begun = False
        try:
            helm, kubeconfig = self._caller.helm(context), self._caller.kubeconfig(context)
            taken = self._ownership.claim(cluster, key, profile, free=step.held is None)
            found = self._preflight.check(context, helm, kubeconfig, step.desired)
            there, again = found is not None, bool(found and found.failures)
            archive, request = self._inputs.find(
                context, helm, step.desired, there=there, again=again
            )
            request = replace(request, revision=found.revision if found else 0)
            hooks = self._inputs.hooks(helm, archive, request)
            reads, lasts = is_read(options_of(request), hooks), holds(options_of(request), hooks)
            request = without_wait(request) if reads else request
            self._check_lease(context)
            with self._lane.enter(context, holds=lasts):
                begun = True
                release = self._ask(context, step, kubeconfig, request, found)
            # Between the claim and the deployment another profile may have taken it.
            self._ownership.claim(cluster, key, profile)
        except (PermanentError, QueuedError) as error:
            return self._refused(context, step, taken, error, begun=begun)
        held = self._held(step.desired, archive, release, hooks, profile.tier)
        self._parts.note(context, release.manifest, step.desired)
        if not reads:
            return ObjectResult(key, held, changed=True)
        held = self._readiness.begin(held, step.desired)
        # A cluster that does not answer now must not have Helm called again.
        context.record(ObjectResult(key, held, changed=True))
        return self._readiness.read(context, step.desired, ObjectResult(key, held))

    def _ask(
        self,
        context: ReconcileContext,
        step: Deploy,
        kubeconfig: bytes,
        request: DesiredRelease,
        found: Release | None,
    ) -> Release:
        """Have Helm install or upgrade a release, for which all is known."""
        helm = self._caller.helm(context)
        quiet = partial(
            withhold_quotes,
            f"cannot deploy {_format_release(step.key)}",
            secret=step.desired.secret,
        )
        with quiet():
            self._preflight.clear(context, helm, kubeconfig, request, found)
        changed = self._preflight.define(context, helm, request)
        with settling(changed=changed), quiet():
            return helm.charts.deploy(kubeconfig, request, partial(leaves, self._records, context))

    def _check_lease(self, context: ReconcileContext) -> None:
        """Check that no other worker may have acquired the lease while this one prepared its call.

        Raises:
            TemporaryError: the lease is over.
        """
        if self._has_expired(context):
            raise TemporaryError("it took too long to find a chart; it is tried again", delay=_NOW)

    def _has_expired(self, context: ReconcileContext) -> bool:
        """Say whether the lease is over."""
        return self._records.clock.now() - context.lease.begun_at > self._settings.visibility

    def _refused(
        self,
        context: ReconcileContext,
        step: Deploy,
        taken: Taken | None,
        error: BellhopError,
        *,
        begun: bool,
    ) -> ObjectResult:
        """Say how a release is held that was refused; of what Helm had begun something is there."""
        if isinstance(error, ConflictError) and not begun:
            # Another profile has it, or somebody has put one of his own in its place.
            self._parts.drop(context, step.key)
            if taken:
                self._ownership.return_claim(
                    context.cluster.key, step.key, context.profile, taken.before
                )
            return ObjectResult(step.key, None, refused=error)
        if begun or (taken and not taken.new):
            return ObjectResult(step.key, context.progress.held[step.key], refused=error)
        if taken:
            self._ownership.return_claim(
                context.cluster.key, step.key, context.profile, taken.before
            )
        return ObjectResult(step.key, step.held, refused=error)

    def _held(
        self, desired: Desired, archive: Archive, release: Release, hooks: frozenset[str], tier: int
    ) -> Held:
        known = HeldRelease(
            archive.chart,
            archive.version,
            desired.place.repository,
            release.revision,
            desired.chart.removal,
            tier=tier,
            delete_hooks=bool(hooks & DELETE),
        )
        now = self._records.clock.now()
        return Held(
            desired.digest, desired.ref, applied_at=now, release=known, secret=desired.secret
        )


def _format_release(key: Identity) -> str:
    return f"the release '{key.namespace}/{key.name}'"
