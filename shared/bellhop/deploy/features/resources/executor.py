"""Carries plans out: what is new is claimed first, then one phase is done after the other.

The objects of a phase are worked on at once, by all hands that are free. Objects of manifests and
those that kustomizations build are two features by name, and one by what is done about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ObjectResult, ReconcileContext, ends, is_passed_over
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
from bellhop.deploy.ownership import Ownership, taken_from
from bellhop.deploy.references import Resources
from bellhop.errors import BellhopError, ConflictError, TemporaryError
from bellhop.gotemplate import Limits
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.tools import Tools
from bellhop.profiles.names import NameReservations
from bellhop.settings import Settings
from bellhop.state.messages import Publisher
from bellhop.state.record import Change, FeatureName, Held, Profile
from bellhop.state.records import Records
from bellhop.state.worker_pool import WorkerPool

_SEVERAL = 2
"""Of so many objects some may wait for one that is another's."""

_PART = 6
"""Of the time for which a worker may be silent so little is for reading what is Local; or for
rendering that, or for a turn."""

T = TypeVar("T")
R = TypeVar("R")


class Executor:
    """The feature `Resources`, and with another name `Kustomize`: plans, and carries plans out."""

    name: FeatureName = "Resources"
    inbox = ""

    def __init__(
        self,
        records: Records,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        hands: WorkerPool,
        tools: Tools,
    ) -> None:
        self._records = records
        self._access = access
        self._settings = settings
        self._hands = hands
        self._claims = Ownership(records, publisher)
        always = settings.adopt == "always"
        self._reloading = Reloader(access)
        self._steps = Steps(self._claims, self._reloading, records.clock, always=always)
        self._preview = Preview(self._claims, always=always)
        limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        titles = NameReservations(records, publisher)
        files = FilesReader(records, access, titles, tools.files, limits)
        resources = Resources(records, access, titles, limits, files)
        patience = settings.visibility / _PART
        building = KustomizationBuilder(tools.kustomizations, limits, records.clock)
        self._wants = DesiredState(
            access, resources, files, building, limits, records.clock, patience
        )
        self._drift = Drift(access, records.clock)
        self._transfer = Transfer(records, publisher, hands)

    def named(self, name: FeatureName) -> Executor:
        """Return the feature of another name; the two share all that they know."""
        other = copy(self)
        other.name = name
        return other

    @property
    def _is_first(self) -> bool:
        """Say whether it plans before all others, and finds out for them what they share."""
        return self.name == "Resources"

    def concerns(self, profile: Profile, held: Mapping[Identity, Held]) -> bool:
        """Say whether a profile has anything of the feature, or had it in a cluster."""
        empty = self._is_first and not profile.contents
        wanted = any(each.feature == self.name for each in profile.contents)
        return empty or wanted or any(each.feature == self.name for each in held.values())

    def plan(self, work: ReconcileContext) -> Plan:
        """Decide what to do about the objects of a profile in a cluster."""
        if work.message.contested and self._is_first:
            self._doubt(work, Identity.parse(work.message.contested))
        if work.wanted:
            wanted = self._desired(work)
            made = plan(
                wanted,
                _own(work.held),
                feature=self.name,
                staying=_staying(work),
                continues=work.profile.continue_on_conflict,
            )
            work.lacking += made.rivals
            # Nobody knows what of what is held is there for a cluster that lacks something, or is
            # what a kustomization is to bring from now on.
            return replace(made, back=()) if work.lacking or work.unbuilt else made
        untouched = work.profile.leaves_unchanged
        releases = untouched or work.profile.leaves_policies
        return plan((), _own(work.held), feature=self.name, releases=releases, untouched=untouched)

    def _desired(self, work: ReconcileContext) -> tuple[Desired, ...]:
        """Return the objects of both features: they may want the same ones.

        Raises:
            BellhopError: those of this feature cannot be found out.
        """
        if work.desired is None:
            wanted = self._wants.of(work)
            if work.watches:
                self._drift.look(work, wanted)
            work.desired = self._reloading.look(work, wanted)
        if work.unbuilt and not self._is_first:
            raise work.unbuilt
        return work.desired

    def reads_otherwise(self, work: ReconcileContext) -> bool:
        """Say whether what templates read has changed since; the first feature read it for all."""
        return self._is_first and self._wants.read_otherwise(work)

    def carry_out(self, work: ReconcileContext, plan: Plan) -> None:
        """Carry a plan out, for as long as a turn lasts."""
        kube = self._open(work)
        self._claim(work, plan)
        for wanted in plan.forth:
            if self._stops(work):
                break
            self._do(work, partial(self._apply, kube, work), wanted)
        if not work.failed and not work.lacking:
            # A profile that could not be applied as a whole takes nothing away.
            self._transfer.give(work, [each for each in plan.removes if each.held.uid])
            for unwanted in plan.back:
                self._do(work, partial(self._steps.leave, kube, work), unwanted)

    def preview(self, work: ReconcileContext, plan: Plan) -> Sequence[Change]:
        """Tell what a plan would change; what is held as it is wanted is not looked at."""
        if work.lacking:
            raise work.lacking[0]
        kube = self._open(work)
        brought = {each.key: each.wanted for each in plan.applies if each.held is None}
        applied = self._hand_out(partial(self._preview.apply, kube, work, brought), plan.applies)
        left = self._hand_out(partial(self._preview.leave, kube, work), plan.leaves)
        return [*applied, *left, *map(uncompared, plan.unchanged)]

    def _open(self, work: ReconcileContext) -> Kube:
        """Open the cluster with the rights of whose profile it is."""
        cluster = work.cluster
        return self._access.open(
            cluster.key, version=cluster.credentials, account=work.profile.account
        )

    def _doubt(self, work: ReconcileContext, key: Identity) -> None:
        """Take for uncertain what is said to have changed hands, or to have been overwritten.

        A release, and what it consists of, is looked at by its own feature.
        """
        if key in work.held and work.held[key].of_chart:
            return
        held = work.held.pop(key, None)
        if held and not taken_from(work.profile.name, self._claims.owner(work.cluster.key, key)):
            work.held[key] = replace(held, digest="", secret=True)

    def _claim(self, work: ReconcileContext, plan: Plan) -> None:
        """Claim all that is new before any of it is applied, and nothing where one is another's.

        A profile that goes on without what another has claims one object after the other. Who
        takes one while we are at work is met when it is applied: no later phase is begun then.
        What is Local for one cluster is nothing to the others, and met there, too.
        """
        applies = plan.applies
        new = [each for each in applies if each.held is None and not each.wanted.guest]
        if work.profile.continue_on_conflict or len(applies) < _SEVERAL:
            return
        claims = self._hand_out(partial(self._steps.claim, work), new)
        work.claimed = {each.key: each.taken for each in claims if each.taken}
        refused = [each.refused for each in claims if each.refused]
        if refused:
            mine = [key for key, taken in work.claimed.items() if taken.new]
            self._hand_out(partial(self._steps.unclaim, work), mine)
            work.take_back(plan.begun({}))
            first, *others = refused
            sentence = f"{first}; nothing else of it is changed meanwhile: continueOnConflict would"
            work.failed += [ConflictError(sentence), *others]

    def _hand_out(self, step: Callable[[T], R], objects: Sequence[T]) -> list[R]:
        """Do something about all objects, however long it takes: nothing is written meanwhile."""
        done, error = self._hands.each(step, objects, lambda: True)
        if error:
            raise error
        return done

    def _stops(self, work: ReconcileContext) -> bool:
        """Say whether nothing more is begun, since one of the objects could not be applied."""
        return any(ends(work.profile, each) for each in work.failed)

    def _apply(self, kube: Kube, work: ReconcileContext, step: Apply) -> ObjectResult:
        """Apply one object; where the profile goes on, what fails for now is passed over.

        So is what is Local for one cluster. Whoever knows no more of it than that it failed says
        so; a cluster that does not answer fails them all.
        """
        guest = step.wanted.guest
        try:
            upshot = self._steps.apply(kube, work, step)
            return replace(upshot, guest=guest) if guest else upshot
        except TemporaryError as error:
            passed = is_passed_over(work.profile, error)
            if not passed and not (guest and type(error) is TemporaryError):
                raise
            return ObjectResult(step.key, work.held.get(step.key), refused=error, guest=guest)

    def _do(
        self, work: ReconcileContext, step: Callable[[T], ObjectResult], objects: Sequence[T]
    ) -> None:
        """Take a step for each object of a phase, with all hands that are free.

        Raises:
            TemporaryError: one could not be taken now; what was done is noted.
        """
        ended: list[BellhopError] = []

        def taken(each: T) -> ObjectResult:
            upshot = step(each)
            # What is to go is tried as a whole, whatever stays.
            refused = None if upshot.guest else upshot.refused
            if refused and isinstance(each, Apply) and ends(work.profile, refused):
                ended.append(refused)
            return upshot

        upshots, error = self._hands.each(taken, objects, lambda: not ended and self._goes_on(work))
        for upshot in upshots:
            work.note(upshot)
        if error:
            raise error

    def _goes_on(self, work: ReconcileContext) -> bool:
        """Say whether another object is begun before others have their turn; the first one is."""
        used = self._records.clock.now() - work.begun_at
        work.unfinished = work.under_way and used > self._settings.turn
        work.under_way = True
        return not work.unfinished


def _own(held: Mapping[Identity, Held]) -> dict[Identity, Held]:
    """Return what is held and no chart brought."""
    return {key: each for key, each in held.items() if not each.of_chart}


def _staying(work: ReconcileContext) -> frozenset[str]:
    """Name the refs whose Local objects stay, though nothing asks for them any more."""
    if not work.profile.leaves_policies:
        return frozenset()
    return frozenset(each.ref for each in work.profile.contents if each.how.local)
