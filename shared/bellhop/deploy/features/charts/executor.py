"""Carries plans out: one release after the other, each claimed before Helm is asked.

A worker may die at any moment of it: what had begun is in the inventory, and Helm's own record of
the release says how far it came. Helm is told to stop well before anybody else takes the work over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.core.gvk import Identity
from bellhop.deploy.context import ObjectResult, ReconcileContext, ends, is_passed_over
from bellhop.deploy.drift import Drift
from bellhop.deploy.features.charts.archives import Archives
from bellhop.deploy.features.charts.caller import Caller
from bellhop.deploy.features.charts.definitions import settling
from bellhop.deploy.features.charts.desired import DesiredState
from bellhop.deploy.features.charts.drift_exclusions import excluded_of
from bellhop.deploy.features.charts.handover import ReleaseHandover
from bellhop.deploy.features.charts.hooks import DELETE
from bellhop.deploy.features.charts.inputs import ReleaseInputs, open_cluster
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
from bellhop.deploy.features.charts.preflight import Preflight, leaves
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
from bellhop.ports.access import Access
from bellhop.ports.charts import Archive, Release, Wanted
from bellhop.ports.tools import Tools
from bellhop.profiles.names import NameReservations
from bellhop.rendering.charts.releases import Desired
from bellhop.rendering.secrecy import unquoted
from bellhop.settings import Settings
from bellhop.state.chart import HeldRelease
from bellhop.state.messages import CHARTS, Publisher
from bellhop.state.record import Change, Held, Profile
from bellhop.state.worker_pool import WorkerPool

_NOW = timedelta(0)


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
        hands: WorkerPool,
    ) -> None:
        self._records = records = catalogs.records
        self._access = access
        self._settings = settings
        self._caller = caller = Caller(access, tools.helm)
        self._claims = Ownership(records, publisher)
        transfer = Transfer(records, publisher, hands)
        limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        titles = NameReservations(records, publisher)
        files = FilesReader(records, access, titles, tools.files, limits)
        self._inputs = ReleaseInputs(access, settings, Archives(files))
        resources = Resources(records, access, titles, limits, files)
        self._wants = DesiredState(resources, limits)
        self._parts = ReleaseOwnership(records.clock, access, self._claims)
        self._lane = Lane(records.clock, publisher)
        self._removals = Removals(
            records.clock,
            access,
            caller,
            self._claims,
            transfer=transfer,
            inputs=self._inputs,
            parts=self._parts,
            heirs=ReleaseHandover(catalogs, limits),
            lane=self._lane,
        )
        self._readiness = Readiness(records.clock, access, settings)
        self._preflight = Preflight(access, settings)
        self._preview = Preview(self._claims, self._preflight)
        self._drift = Drift(access, records.clock)
        self._recheck = Recheck(access, self._claims)

    def concerns(self, profile: Profile, held: Mapping[Identity, Held]) -> bool:
        """Say whether a profile has any chart, or had one in a cluster."""
        charts = any(each.chart for each in profile.contents)
        return charts or any(each.of_chart for each in held.values())

    def plan(self, work: ReconcileContext) -> Plan:
        """Decide what to do about the releases of a profile in a cluster."""
        if not self.concerns(work.profile, work.held):
            return Plan()
        if work.message.contested:
            self._recheck.look(work, Identity.parse(work.message.contested))
        if work.wanted:
            if work.watches:
                self._drift.look_inside(work, excluded_of(work.profile))
            return plan(self._wants.of(work), work.held, work.profile.tier)
        leaves = work.profile.leaves_unchanged or work.profile.leaves_policies
        return plan((), work.held, work.profile.tier, releases_all=leaves)

    def reads_otherwise(self, work: ReconcileContext) -> bool:
        """Say that nothing has changed: what templates read is what the first feature read."""
        del work
        return False

    def carry_out(self, work: ReconcileContext, plan: Plan) -> None:
        """Carry a plan out, for as long as a turn lasts."""
        for step in plan.forth:
            if not self._goes_on(work):
                return
            upshot = self._take(work, step)
            work.note(upshot)
            if upshot.refused and ends(work.profile, upshot.refused):
                return
        if work.failed or work.lacking or work.unplanned:
            # A profile that could not be applied as a whole takes nothing away.
            return
        if plan.back and work.wanted:
            try:
                work.refuse_removal()
            except (UnmetError, MissingError) as error:
                work.take_back(each.key for each in plan.back)
                work.lacking.append(error)
                return
        for unwanted in plan.back:
            if not self._goes_on(work):
                return
            work.note(self._removals.leave(work, unwanted))

    def preview(self, work: ReconcileContext, plan: Plan) -> Sequence[Change]:
        """Tell what a plan would change, by Helm's own dry run.

        Releases that stay as they are compared with the cluster if the work is `live`.
        """
        steps: list[Deploy | Remove | Leave] = []
        stay = list(plan.unchanged)
        for each in (*plan.forth, *plan.back):
            if isinstance(each, Claim | Await):
                stay.append(each.key)
            else:
                steps.append(each)
        if not steps and not (work.live and stay):
            return [uncompared(key) for key in stay]
        helm, kubeconfig = self._caller.helm(work), self._caller.kubeconfig(work)
        changes: list[Change] = []
        for step in steps:
            if isinstance(step, Deploy):
                found = self._inputs.find(work, helm, step.wanted, there=is_known(step.held))
                changes += self._preview.deploy(helm, work, kubeconfig, step, found)
            else:
                changes += self._preview.leave(helm, work, kubeconfig, step)
        if not work.live:
            return [*changes, *map(uncompared, stay)]
        kube = open_cluster(self._access, work)
        for key in stay:
            changes += self._preview.stay(helm, kube, work, kubeconfig, key)
        return changes

    def _goes_on(self, work: ReconcileContext) -> bool:
        """Say whether another release is begun before others have their turn; the first one is."""
        used = self._records.clock.now() - work.begun_at
        work.unfinished = work.under_way and used > self._settings.turn
        work.under_way = True
        return not work.unfinished

    def _take(self, work: ReconcileContext, step: Deploy | Await | Claim | Remove) -> ObjectResult:
        """Take one step; where the profile goes on, a release that fails for now is passed over."""
        try:
            if isinstance(step, Claim):
                return self._claim(work, step)
            if isinstance(step, Await):
                return self._await(work, step)
            return (
                self._deploy(work, step)
                if isinstance(step, Deploy)
                else self._removals.remove_wanted(work, step)
            )
        except TemporaryError as error:
            if self._is_late(work) or not is_passed_over(work.profile, error):
                raise
            return ObjectResult(step.key, work.held.get(step.key), refused=error)

    def _claim(self, work: ReconcileContext, step: Claim) -> ObjectResult:
        """Claim a release, and what it consists of, for the tier of its profile."""
        key, release = step.key, step.held.release
        assert release
        try:
            self._claims.take(work.cluster.key, key, work.profile)
        except ConflictError as error:
            self._parts.drop(work, key)
            return ObjectResult(key, None, refused=error)
        self._parts.claim(work, key)
        known = replace(release, tier=work.profile.tier, kept_until=None)
        return ObjectResult(key, replace(step.held, release=known))

    def _await(self, work: ReconcileContext, step: Await) -> ObjectResult:
        """Read whether a release is ready, and claim it for the tier of its profile."""
        assert step.held.release
        upshot = ObjectResult(step.key, step.held)
        if step.held.release.tier != work.profile.tier or step.held.release.kept_until:
            upshot = self._claim(work, Claim(step.key, step.held))
        return upshot if upshot.refused else self._readiness.read(work, step.wanted, upshot)

    def _deploy(self, work: ReconcileContext, step: Deploy) -> ObjectResult:
        """Claim a release, and have Helm install or upgrade it."""
        cluster, key, profile = work.cluster.key, step.key, work.profile
        taken: Taken | None = None
        begun = False
        try:
            helm, kubeconfig = self._caller.helm(work), self._caller.kubeconfig(work)
            taken = self._claims.take(cluster, key, profile, free=step.held is None)
            found = self._preflight.check(work, helm, kubeconfig, step.wanted)
            there, again = found is not None, bool(found and found.failures)
            archive, wanted = self._inputs.find(work, helm, step.wanted, there=there, again=again)
            wanted = replace(wanted, revision=found.revision if found else 0)
            hooks = self._inputs.hooks(helm, archive, wanted)
            reads, lasts = is_read(options_of(wanted), hooks), holds(options_of(wanted), hooks)
            wanted = without_wait(wanted) if reads else wanted
            self._refuse_late(work)
            with self._lane.enter(work, holds=lasts):
                begun = True
                release = self._ask(work, step, kubeconfig, wanted, found)
            # Between the claim and the deployment another profile may have taken it.
            self._claims.take(cluster, key, profile)
        except (PermanentError, QueuedError) as error:
            return self._refused(work, step, taken, error, begun=begun)
        held = self._held(step.wanted, archive, release, hooks, profile.tier)
        self._parts.note(work, release.manifest, step.wanted)
        if not reads:
            return ObjectResult(key, held, changed=True)
        held = self._readiness.begin(held, step.wanted)
        # A cluster that does not answer now must not have Helm called again.
        work.note(ObjectResult(key, held, changed=True))
        return self._readiness.read(work, step.wanted, ObjectResult(key, held))

    def _ask(
        self,
        work: ReconcileContext,
        step: Deploy,
        kubeconfig: bytes,
        wanted: Wanted,
        found: Release | None,
    ) -> Release:
        """Have Helm install or upgrade a release, for which all is known."""
        helm = self._caller.helm(work)
        quiet = partial(unquoted, f"cannot deploy {_named(step.key)}", secret=step.wanted.secret)
        with quiet():
            self._preflight.clear(work, helm, kubeconfig, wanted, found)
        changed = self._preflight.define(work, helm, wanted)
        with settling(changed=changed), quiet():
            return helm.charts.deploy(kubeconfig, wanted, partial(leaves, self._records, work))

    def _refuse_late(self, work: ReconcileContext) -> None:
        """Begin nothing where another worker may be at it by now, however long finding out took.

        Raises:
            TemporaryError: the lease is over.
        """
        if self._is_late(work):
            raise TemporaryError("it took too long to find a chart; it is tried again", delay=_NOW)

    def _is_late(self, work: ReconcileContext) -> bool:
        """Say whether the lease is over."""
        return self._records.clock.now() - work.begun_at > self._settings.visibility

    def _refused(
        self,
        work: ReconcileContext,
        step: Deploy,
        taken: Taken | None,
        error: BellhopError,
        *,
        begun: bool,
    ) -> ObjectResult:
        """Say how a release is held that was refused; of what Helm had begun something is there."""
        if isinstance(error, ConflictError) and not begun:
            # Another profile has it, or somebody has put one of his own in its place.
            self._parts.drop(work, step.key)
            if taken:
                self._claims.give_back(work.cluster.key, step.key, work.profile, taken.before)
            return ObjectResult(step.key, None, refused=error)
        if begun or (taken and not taken.new):
            return ObjectResult(step.key, work.held[step.key], refused=error)
        if taken:
            self._claims.give_back(work.cluster.key, step.key, work.profile, taken.before)
        return ObjectResult(step.key, step.held, refused=error)

    def _held(
        self, wanted: Desired, archive: Archive, release: Release, hooks: frozenset[str], tier: int
    ) -> Held:
        known = HeldRelease(
            archive.chart,
            archive.version,
            wanted.place.repository,
            release.revision,
            wanted.chart.removal,
            tier=tier,
            delete_hooks=bool(hooks & DELETE),
        )
        now = self._records.clock.now()
        return Held(wanted.digest, wanted.ref, applied_at=now, release=known, secret=wanted.secret)


def _named(key: Identity) -> str:
    return f"the release '{key.namespace}/{key.name}'"
