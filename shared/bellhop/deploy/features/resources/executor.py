"""Executes plans: new objects are claimed first, then the phases follow one after the other.

The threads of a pool apply the objects of a phase at once. Objects of manifests and objects of
kustomizations are two features by name, with the same implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ObjectResult, ReconcileContext, is_passed_over
from bellhop.deploy.drift import Drift
from bellhop.deploy.features.resources.desired import DesiredState
from bellhop.deploy.features.resources.kustomizations import KustomizationBuilder
from bellhop.deploy.features.resources.operation import Steps
from bellhop.deploy.features.resources.planning import Apply, Desired, Plan, plan
from bellhop.deploy.features.resources.preview import Preview
from bellhop.deploy.features.resources.reloader import Reloader
from bellhop.deploy.files import FilesReader
from bellhop.deploy.handover import Transfer
from bellhop.deploy.object_diff import uncompared
from bellhop.deploy.ownership import Ownership, is_owned_by_other
from bellhop.deploy.references import Resources
from bellhop.errors import BellhopError, ConflictError, TemporaryError
from bellhop.gotemplate import Limits
from bellhop.ports.kube import Access, Kube
from bellhop.ports.tools import Tools
from bellhop.profiles.names import NameReservations
from bellhop.settings import Settings
from bellhop.state.content import FeatureName
from bellhop.state.deployment import Change, Held
from bellhop.state.messages import Publisher
from bellhop.state.records import Records
from bellhop.state.worker_pool import WorkerPool

_SEVERAL = 2
"""From so many objects on all are claimed before the first is applied."""

_PART = 6
"""Part of the visibility for reading Local objects, and for rendering them."""

T = TypeVar("T")
R = TypeVar("R")


class Executor:
    """The feature `Resources`, and under another name `Kustomize`."""

    name: FeatureName = "Resources"
    inbox = ""

    def __init__(
        self,
        records: Records,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        pool: WorkerPool,
        tools: Tools,
    ) -> None:
        self._records = records
        self._access = access
        self._settings = settings
        self._pool = pool
        self._ownership = Ownership(records, publisher)
        always = settings.adopt == "always"
        self._reloader = Reloader(access)
        self._steps = Steps(self._ownership, self._reloader, records.clock, always=always)
        self._preview = Preview(self._ownership, always=always)
        limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        names = NameReservations(records, publisher)
        files = FilesReader(records, access, names, tools.files)
        resources = Resources(records, access, names, limits, files)
        patience = settings.visibility / _PART
        building = KustomizationBuilder(tools.kustomizations, records.clock)
        self._desired_state = DesiredState(
            access, resources, files, building, limits, records.clock, patience
        )
        self._drift = Drift(access, records.clock)
        self._transfer = Transfer(records, publisher, pool)

    def named(self, name: FeatureName) -> Executor:
        """Return the feature under another name; both share their state."""
        other = copy(self)
        other.name = name
        return other

    @property
    def _is_first(self) -> bool:
        """True if it plans before all other features, and reads what they share."""
        return self.name == "Resources"

    def plan(self, context: ReconcileContext) -> Plan:
        """Plan the objects of a profile in a cluster."""
        if context.message.contested and self._is_first:
            self._mark_uncertain(context, Identity.parse(context.message.contested))
        if context.is_destination:
            desired = self._desired(context)
            made = plan(
                desired,
                _own(context.progress.held),
                feature=self.name,
                staying=_staying(context),
                despite_rivals=context.profile.continue_on_conflict,
            )
            context.verdict.skipped += made.rivals
            # An object of the inventory may be for a target that was skipped, or one that a
            # kustomization builds from now on.
            return (
                replace(made, removal_phases=())
                if context.verdict.skipped or context.progress.build_error
                else made
            )
        untouched = context.profile.leaves_unchanged
        releases = untouched or context.profile.leaves_policies
        return plan(
            (),
            _own(context.progress.held),
            feature=self.name,
            releases=releases,
            untouched=untouched,
        )

    def _desired(self, context: ReconcileContext) -> tuple[Desired, ...]:
        """Return the objects of both features, which may have the same ones.

        Raises:
            BellhopError: those of this feature cannot be rendered or built.
        """
        if context.progress.desired is None:
            desired = self._desired_state.render(context)
            if context.watches_drift:
                self._drift.mark_drifted(context, desired)
            held = context.progress.held.values()
            if context.profile.rollout.reloads or any(each.reloaded for each in held):
                desired = self._reloader.mark_changed(context, desired)
            context.progress.desired = desired
        if context.progress.build_error and not self._is_first:
            raise context.progress.build_error
        return context.progress.desired

    def has_changed(self, context: ReconcileContext) -> bool:
        return self._is_first and self._desired_state.has_changed(context)

    def execute(self, context: ReconcileContext, plan: Plan) -> None:
        kube = self._open(context)
        self._claim(context, plan)
        for desired in plan.apply_phases:
            if self._has_ended(context):
                break
            self._execute_phase(context, partial(self._apply, kube, context), desired)
        if not context.verdict.failed and not context.verdict.skipped:
            # A profile that could not be applied as a whole removes nothing.
            deletions = [each for each in plan.deletions if each.held.uid]
            if deletions:
                self._transfer.give(context, deletions)
            for unneeded in plan.removal_phases:
                self._execute_phase(context, partial(self._steps.leave, kube, context), unneeded)

    def preview(self, context: ReconcileContext, plan: Plan) -> Sequence[Change]:
        """Return the changes of a plan; objects of the inventory that stay are not read."""
        if context.verdict.skipped:
            raise context.verdict.skipped[0]
        kube = self._open(context)
        applied_first = {each.key: each.desired for each in plan.applies if each.held is None}
        applied = self._map(
            partial(self._preview.apply, kube, context, applied_first), plan.applies
        )
        left = self._map(partial(self._preview.leave, kube, context), plan.removals)
        return [*applied, *left, *map(uncompared, plan.unchanged)]

    def _open(self, context: ReconcileContext) -> Kube:
        """Open the cluster with the permissions of the profile's account."""
        cluster = context.cluster
        return self._access.open(
            cluster.key, version=cluster.credentials, account=context.profile.account
        )

    def _mark_uncertain(self, context: ReconcileContext, key: Identity) -> None:
        """Mark as uncertain an object that may have changed owners, or been overwritten.

        Releases and their objects are marked by their own feature.
        """
        if key in context.progress.held and context.progress.held[key].of_chart:
            return
        held = context.progress.held.pop(key, None)
        if held and not is_owned_by_other(
            context.profile.name, self._ownership.read(context.cluster.key, key)
        ):
            context.progress.held[key] = replace(held, digest="", secret=True)

    def _claim(self, context: ReconcileContext, plan: Plan) -> None:
        """Claim all new objects before the first is applied; release all if one has an owner.

        A profile that continues on conflict claims one object after the other. An object that is
        claimed by another profile meanwhile is refused when it is applied, and ends its phase. So
        is an object that is Local for one cluster.
        """
        applies = plan.applies
        new = [each for each in applies if each.held is None and not each.desired.target]
        if context.profile.continue_on_conflict or len(applies) < _SEVERAL:
            return
        claims = self._map(partial(self._steps.claim, context), new)
        context.progress.claimed = {each.key: each.taken for each in claims if each.taken}
        refused = [each.refused for each in claims if each.refused]
        if refused:
            mine = [key for key, taken in context.progress.claimed.items() if taken.new]
            self._map(partial(self._steps.unclaim, context), mine)
            context.restore(plan.uncertain({}))
            first, *others = refused
            sentence = f"{first}; nothing else of it is changed meanwhile: continueOnConflict would"
            context.verdict.failed += [ConflictError(sentence), *others]

    def _map(self, step: Callable[[T], R], objects: Sequence[T]) -> list[R]:
        """Call a function for all objects, however long it takes: nothing is written meanwhile."""
        done, error = self._pool.each(step, objects, lambda: True)
        if error:
            raise error
        return done

    def _has_ended(self, context: ReconcileContext) -> bool:
        """Say whether an object failed so that no other may begin."""
        return any(context.profile.stops_at(each) for each in context.verdict.failed)

    def _apply(self, kube: Kube, context: ReconcileContext, step: Apply) -> ObjectResult:
        """Apply one object; one that fails for now is skipped if the profile continues on error.

        So is one that is Local for one cluster, after an error that concerns it only; a cluster
        that does not answer fails all of them.
        """
        target = step.desired.target
        try:
            result = self._steps.apply(kube, context, step)
            return replace(result, target=target) if target else result
        except TemporaryError as error:
            passed = is_passed_over(context.profile, error)
            if not passed and not (target and type(error) is TemporaryError):
                raise
            return ObjectResult(
                step.key, context.progress.held.get(step.key), refused=error, target=target
            )

    def _execute_phase(
        self, context: ReconcileContext, step: Callable[[T], ObjectResult], objects: Sequence[T]
    ) -> None:
        """Execute an operation for each object of a phase, in all threads that are free.

        Raises:
            TemporaryError: one failed for now; the results of the others are recorded.
        """
        ended: list[BellhopError] = []

        def taken(each: T) -> ObjectResult:
            result = step(each)
            # All removals are tried, whatever stays.
            refused = None if result.target else result.refused
            if refused and isinstance(each, Apply) and context.profile.stops_at(refused):
                ended.append(refused)
            return result

        results, error = self._pool.each(
            taken, objects, lambda: not ended and self._begins_another(context)
        )
        for result in results:
            context.record(result)
        if error:
            raise error

    def _begins_another(self, context: ReconcileContext) -> bool:
        """Say whether another object is begun before the turn of this attempt ends."""
        end = context.lease.begun_at + self._settings.turn
        return context.progress.begins_another(self._records.clock.now(), end)


def _own(held: Mapping[Identity, Held]) -> dict[Identity, Held]:
    """Return the objects of the inventory that are of no chart."""
    return {key: each for key, each in held.items() if not each.of_chart}


def _staying(context: ReconcileContext) -> frozenset[str]:
    """Name the refs whose Local objects stay, though they are no longer desired."""
    if not context.profile.leaves_policies:
        return frozenset()
    return frozenset(each.ref for each in context.profile.contents if each.how.local)
