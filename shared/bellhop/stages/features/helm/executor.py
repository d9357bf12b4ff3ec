"""Carries plans out: one release after the other, each claimed before Helm is asked.

A worker may die at any moment of it: what had begun is in the inventory, and Helm's own record of
the release says how far it came. Helm is told to stop well before anybody else takes the work over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from msgspec.structs import replace

from bellhop.engine.charts.placing import Desired
from bellhop.engine.secrecy import unquoted
from bellhop.errors import (
    ConflictError,
    MissingError,
    PermanentError,
    TemporaryError,
    UnmetError,
    WaitingError,
)
from bellhop.gotemplate import Limits
from bellhop.messages import CHARTS, Publisher
from bellhop.model.chart import HeldRelease
from bellhop.model.gvk import Identity, ObjectKey
from bellhop.model.record import Change, Held, Profile
from bellhop.ports.access import Access
from bellhop.ports.charts import Archive, Helm, Release
from bellhop.ports.tools import Tools
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.claim import Claims, Taken, taken_from
from bellhop.stages.comparing import uncompared
from bellhop.stages.drift import Drift
from bellhop.stages.features.helm.archives import Archives
from bellhop.stages.features.helm.cluster_charts import helm_in
from bellhop.stages.features.helm.definitions import settling
from bellhop.stages.features.helm.excluded import excluded_of
from bellhop.stages.features.helm.heirs import Heirs
from bellhop.stages.features.helm.inputs import ReleaseInputs, open_cluster
from bellhop.stages.features.helm.parts import Parts
from bellhop.stages.features.helm.planning import (
    Claim,
    Deploy,
    Leave,
    Plan,
    Remove,
    plan,
)
from bellhop.stages.features.helm.preflight import Preflight, leaves
from bellhop.stages.features.helm.preview import Preview
from bellhop.stages.features.helm.recheck import Recheck
from bellhop.stages.features.helm.wants import Wants
from bellhop.stages.files import FilesReader
from bellhop.stages.handover import Transfer
from bellhop.stages.hands import Hands
from bellhop.stages.reading import Resources
from bellhop.stages.release_records import newest_revision
from bellhop.stages.titles import Titles
from bellhop.stages.work import Upshot, Work, ends, is_passed_over

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
        hands: Hands,
    ) -> None:
        self._records = records = catalogs.records
        self._access = access
        self._settings = settings
        self._helm = tools.helm
        self._claims = Claims(records, publisher)
        self._transfer = Transfer(records, publisher, hands)
        limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        titles = Titles(records, publisher)
        files = FilesReader(records, access, titles, tools.files, limits)
        self._inputs = ReleaseInputs(access, settings, Archives(files))
        resources = Resources(records, access, titles, limits, files)
        self._wants = Wants(resources, limits)
        self._parts = Parts(records.clock, access, self._claims)
        self._heirs = Heirs(catalogs, limits)
        self._preflight = Preflight(access, settings)
        self._preview = Preview(self._claims, self._preflight)
        self._drift = Drift(access, records.clock)
        self._recheck = Recheck(access, self._claims)

    def concerns(self, profile: Profile, held: Mapping[Identity, Held]) -> bool:
        """Say whether a profile has any chart, or had one in a cluster."""
        charts = any(each.chart for each in profile.contents)
        return charts or any(each.of_chart for each in held.values())

    def plan(self, work: Work) -> Plan:
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

    def reads_otherwise(self, work: Work) -> bool:
        """Say that nothing has changed: what templates read is what the first feature read."""
        del work
        return False

    def carry_out(self, work: Work, plan: Plan) -> None:
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
            work.note(self._leave(work, unwanted))

    def preview(self, work: Work, plan: Plan) -> Sequence[Change]:
        """Tell what a plan would change, by Helm's own dry run.

        Releases that stay as they are compared with the cluster if the work is `live`.
        """
        steps = [each for each in (*plan.forth, *plan.back) if not isinstance(each, Claim)]
        claims = [each.key for each in plan.forth if isinstance(each, Claim)]
        stay = (*claims, *plan.unchanged)
        if not steps and not (work.live and stay):
            return [uncompared(key) for key in stay]
        helm, kubeconfig = self._tools(work), self._kubeconfig(work)
        changes: list[Change] = []
        for step in steps:
            if isinstance(step, Deploy):
                found = self._inputs.find(work, helm, step.wanted, there=_is_known(step.held))
                changes += self._preview.deploy(helm, work, kubeconfig, step, found)
            else:
                changes += self._preview.leave(helm, work, kubeconfig, step)
        if not work.live:
            return [*changes, *map(uncompared, stay)]
        kube = open_cluster(self._access, work)
        for key in stay:
            changes += self._preview.stay(helm, kube, work, kubeconfig, key)
        return changes

    def _goes_on(self, work: Work) -> bool:
        """Say whether another release is begun before others have their turn; the first one is."""
        used = self._records.clock.now() - work.begun_at
        work.unfinished = work.under_way and used > self._settings.turn
        work.under_way = True
        return not work.unfinished

    def _tools(self, work: Work) -> Helm:
        if self._helm is None:
            raise MissingError(
                "cannot deploy Helm charts: they are switched off here; deploy the function"
                " `charts` with Terraform's variable of that name"
            )
        return helm_in(work.cluster, self._helm, self._access)

    def _kubeconfig(self, work: Work) -> bytes:
        """Return how Helm gets into the cluster, with the rights of whose profile it is."""
        cluster = work.cluster
        return self._access.kubeconfig(
            cluster.key, version=cluster.credentials, account=work.profile.account
        )

    def _take(self, work: Work, step: Deploy | Claim | Remove) -> Upshot:
        """Take one step; where the profile goes on, a release that fails for now is passed over."""
        try:
            if isinstance(step, Claim):
                return self._claim(work, step)
            return self._deploy(work, step) if isinstance(step, Deploy) else self._gone(work, step)
        except TemporaryError as error:
            if self._is_late(work) or not is_passed_over(work.profile, error):
                raise
            return Upshot(step.key, work.held.get(step.key), refused=error)

    def _claim(self, work: Work, step: Claim) -> Upshot:
        """Claim a release, and what it consists of, for the tier of its profile."""
        key, release = step.key, step.held.release
        assert release
        try:
            self._claims.take(work.cluster.key, key, work.profile)
        except ConflictError as error:
            self._parts.drop(work, key)
            return Upshot(key, None, refused=error)
        self._parts.claim(work, key)
        return Upshot(key, replace(step.held, release=replace(release, tier=work.profile.tier)))

    def _deploy(self, work: Work, step: Deploy) -> Upshot:
        """Claim a release, and have Helm install or upgrade it."""
        cluster, key, profile = work.cluster.key, step.key, work.profile
        taken: Taken | None = None
        begun = False
        try:
            helm, kubeconfig = self._tools(work), self._kubeconfig(work)
            taken = self._claims.take(cluster, key, profile, free=step.held is None)
            found = self._preflight.check(work, helm, kubeconfig, step.wanted)
            there, again = found is not None, bool(found and found.failures)
            archive, wanted = self._inputs.find(work, helm, step.wanted, there=there, again=again)
            wanted = replace(wanted, revision=found.revision if found else 0)
            self._inputs.refuse_slow(helm, archive, wanted)
            self._refuse_late(work)
            begun = True
            quiet = partial(unquoted, f"cannot deploy {_named(key)}", secret=step.wanted.secret)
            with quiet():
                self._preflight.clear(work, helm, kubeconfig, wanted, found)
            changed = self._preflight.define(work, helm, wanted)
            with settling(changed=changed), quiet():
                release = helm.charts.deploy(
                    kubeconfig, wanted, partial(leaves, self._records, work)
                )
            # Between the claim and the deployment another profile may have taken it.
            self._claims.take(cluster, key, profile)
        except PermanentError as error:
            return self._refused(work, step, taken, error, begun=begun)
        held = self._held(step.wanted, archive, release, profile.tier)
        self._parts.note(work, release.manifest, step.wanted)
        return Upshot(key, held, changed=True)

    def _refuse_late(self, work: Work) -> None:
        """Begin nothing where another worker may be at it by now, however long finding out took.

        Raises:
            TemporaryError: the lease is over.
        """
        if self._is_late(work):
            raise TemporaryError("it took too long to find a chart; it is tried again", delay=_NOW)

    def _is_late(self, work: Work) -> bool:
        """Say whether the lease is over."""
        return self._records.clock.now() - work.begun_at > self._settings.visibility

    def _refused(
        self, work: Work, step: Deploy, taken: Taken | None, error: PermanentError, *, begun: bool
    ) -> Upshot:
        """Say how a release is held that was refused; of what Helm had begun something is there."""
        if isinstance(error, ConflictError) and not begun:
            # Another profile has it, or somebody has put one of his own in its place.
            self._parts.drop(work, step.key)
            if taken:
                self._claims.give_back(work.cluster.key, step.key, work.profile, taken.before)
            return Upshot(step.key, None, refused=error)
        if begun or (taken and not taken.new):
            return Upshot(step.key, work.held[step.key], refused=error)
        if taken:
            self._claims.give_back(work.cluster.key, step.key, work.profile, taken.before)
        return Upshot(step.key, step.held, refused=error)

    def _held(self, wanted: Desired, archive: Archive, release: Release, tier: int) -> Held:
        known = HeldRelease(
            archive.chart,
            archive.version,
            wanted.place.repository,
            release.revision,
            wanted.chart.removal,
            tier=tier,
        )
        now = self._records.clock.now()
        return Held(wanted.digest, wanted.ref, applied_at=now, release=known, secret=wanted.secret)

    def _gone(self, work: Work, step: Remove) -> Upshot:
        """Remove a release that a profile wants to be gone, and note that it was."""
        assert step.wanted
        key = step.key
        try:
            helm, kubeconfig = self._tools(work), self._kubeconfig(work)
            self._claims.take(work.cluster.key, key, work.profile)
            removal = step.wanted.chart.removal
            was = helm.charts.remove(
                kubeconfig, key.namespace, key.name, self._inputs.bounded(removal)
            )
        except PermanentError as error:
            return Upshot(key, work.held.get(key), refused=error)
        self._parts.drop(work, key)
        known = HeldRelease(removal=removal, removed=True, tier=work.profile.tier)
        now = self._records.clock.now()
        held = Held(step.wanted.digest, step.wanted.ref, applied_at=now, release=known)
        return Upshot(key, held, changed=was)

    def _leave(self, work: Work, step: Remove | Leave) -> Upshot:
        """Remove a release, or leave it as it is; one that another profile has is its own.

        One that another waits for is handed over.
        """
        key, name = step.key, work.profile.name
        cluster, was = work.cluster.key, False
        found = self._claims.owner(cluster, key)
        if isinstance(step, Remove) and found and found.value.profile == name:
            try:
                self._heirs.refuse_early(work, key, found.value)
            except WaitingError as error:
                return Upshot(key, work.before.get(key, step.held), refused=error)
        try:
            # Whoever gets the release is to find its objects free.
            with self._parts.dropped(work, key) as parts:
                if isinstance(step, Remove) and _is_known(step.held):
                    self._transfer.give(work, [step])
                owner = self._claims.owner(cluster, key)
                if isinstance(step, Remove) and not taken_from(name, owner):
                    was = self._remove(work, step, parts)
        except PermanentError as error:
            return Upshot(key, work.held.get(key), refused=error)
        if not self._claims.give_up(cluster, key, name, owner):
            # It was taken over while it was removed.
            self._claims.tell_owner(cluster, key)
        return Upshot(key, None, changed=was)

    def _remove(self, work: Work, step: Remove, parts: Sequence[ObjectKey]) -> bool:
        """Uninstall a release; say whether it was there.

        One that no profile made is left to whoever made it. Where Helm has no record of it its
        `parts` are deleted, as far as they are there.
        """
        assert step.held.release
        key, removal = step.key, step.held.release.removal
        newest = newest_revision(open_cluster(self._access, work), key.namespace, key.name)
        if newest is None:
            return self._parts.remove(work, key, parts)
        if not newest.ours:
            return False
        return self._tools(work).charts.remove(
            self._kubeconfig(work), key.namespace, key.name, self._inputs.bounded(removal)
        )


def _is_known(held: Held | None) -> bool:
    """Say whether a release was deployed for sure, by what is held of it."""
    return held is not None and held.release is not None and held.release.revision > 0


def _named(key: Identity) -> str:
    return f"the release '{key.namespace}/{key.name}'"
