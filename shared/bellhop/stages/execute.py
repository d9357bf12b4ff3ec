"""Deploy, second half: one profile to one cluster, from plan to inventory.

    read ─► plan ─► lease ─► apply, a phase at a time ─► remove ─► lease given up ─► outcome
      ▲                                                                               │
      └────────────────────────────────── read again ◄────────────────────────────────┘

Every try starts from the records, and holds the lease of the inventory while it works. Since a
worker that was slow may have carried out what is wanted no more, it looks again at what it began
with when it has ended. The objects of a phase are worked on at once, by all hands that are free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from bellhop.engine.allowing import refuse_placed
from bellhop.engine.catalog import cluster_object
from bellhop.engine.digest import digest
from bellhop.engine.instantiate import deploy_time
from bellhop.engine.ordering import phases
from bellhop.engine.planning import Desired, Plan, desired, plan
from bellhop.errors import (
    AwayError,
    BellhopError,
    ConflictError,
    MissingError,
    StaleError,
    TemporaryError,
    UnreachableError,
)
from bellhop.gotemplate import Limits
from bellhop.logs import Log
from bellhop.messages import Apply, Publisher
from bellhop.model.gvk import Identity, ObjectKey
from bellhop.model.record import Cluster, Inventory, Profile
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.records import Kept, Records
from bellhop.settings import Settings
from bellhop.stages.circuit import Circuits
from bellhop.stages.claim import Claims, taken_from
from bellhop.stages.ending import Endings
from bellhop.stages.hands import ALONE, Hands
from bellhop.stages.lease import UNKNOWN, Leases, Peers
from bellhop.stages.ledger import noting
from bellhop.stages.resources import Resources
from bellhop.stages.step import Steps
from bellhop.stages.titles import Titles
from bellhop.stages.work import Upshot, Work

_ROUNDS = 4
_SEVERAL = 2
"""Of so many objects some may wait for one that is another's."""

T = TypeVar("T")
R = TypeVar("R")


class Execute:
    """Applies profiles to clusters and withdraws them."""

    def __init__(
        self,
        records: Records,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        *,
        peers: Peers = UNKNOWN,
        hands: Hands = ALONE,
    ) -> None:
        self._records = records
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._circuits = Circuits(records, access, publisher, settings, log)
        self._claims = Claims(records, publisher)
        self._leases = Leases(records, settings, peers)
        self._hands = hands
        self._steps = Steps(self._claims, records.clock)
        self._endings = Endings(records, settings)
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)
        self._resources = Resources(records, access, Titles(records, publisher), self._limits)

    def handle(self, message: Apply) -> None:
        """Bring one cluster to what one profile wants there; every try starts from the records.

        Raises:
            BusyError: another worker is at it.
            TemporaryError: it failed, and is to be tried again soon.
        """
        for _ in range(_ROUNDS):
            if self._once(message):
                return
        raise StaleError(f"cannot apply '{message.profile}': it changes all the time")

    def _once(self, message: Apply) -> bool:
        """Do it once; False if another worker was quicker, or what it was made of has changed."""
        name, cluster = message.profile, message.destination
        # Before all else: whoever notes another from now on may know more than we do.
        outcome = self._records.outcomes.get(cluster, name)
        kept = self._records.inventories.get(cluster, name)
        inventory = kept.value if kept else Inventory(cluster, name, {})
        self._leases.refuse_busy(inventory)
        found = self._found(message)
        if found and found.value.paused:
            return True
        record = self._records.clusters.get(cluster)
        profile = found.value if found else _closed(message)
        try:
            if record is None or (found is None and not inventory.held):
                self._endings.leave(profile, cluster, outcome)
            else:
                work = Work(
                    message=message,
                    profile=profile,
                    cluster=record.value,
                    outcome=outcome,
                    held=dict(inventory.held),
                    token=kept.token if kept else ABSENT,
                    begun_at=self._records.clock.now(),
                )
                self._try(work)
                if self._reads_otherwise(work):
                    return False
        except StaleError:
            return False
        return self._inputs(message) == _inputs(message, found, record)

    def _reads_otherwise(self, work: Work) -> bool:
        """Say whether what templates read has changed since; what cannot be read now has not."""
        if not work.read or not work.profile.reads:
            return False
        try:
            return digest(self._resources.of(work.profile, work.cluster)) != work.read
        except BellhopError:
            return False

    def _inputs(self, message: Apply) -> tuple[str, ...]:
        """Name what it would be made of now."""
        found = self._records.profiles.head(message.trigger, message.cluster, message.profile)
        return _inputs(message, found, self._records.clusters.get(message.destination))

    def _try(self, work: Work) -> None:
        """Bring it about, and note how that ended."""
        message, profile = work.message, work.profile
        with noting(self._records, message, work.cluster.key, profile.object) as note:
            note.context = {"profile": profile.name, "trigger": profile.trigger}
            try:
                self._call(work)
            except StaleError:
                raise
            except AwayError as error:
                if self._endings.wait(work, error):
                    note.what, note.detail = "waits", str(error)
                self._look_again(work)
                return
            except BellhopError as error:
                note.what, note.detail = "failed", str(error)
                self._endings.fail(work, error)
                return
            if work.changed:
                note.what = "applied" if work.wanted else "removed"
                note.detail = ", ".join(work.changed)

    def _call(self, work: Work) -> None:
        """Bring it about, where the cluster answers.

        Raises:
            AwayError: it does not, to nobody.
        """
        self._circuits.refuse_away(work.cluster.key)
        try:
            self._bring(work)
        except UnreachableError:
            self._circuits.doubt(work.cluster.key)
            raise

    def _look_again(self, work: Work) -> None:
        """See whether who tells those that wait could see by now that we do.

        Raises:
            TemporaryError: the cluster answers again.
        """
        try:
            self._circuits.refuse_away(work.cluster.key)
        except AwayError:
            return
        text = f"cannot apply '{work.profile.name}' yet: '{work.cluster.key}' was away until now"
        raise TemporaryError(text, delay=timedelta(0))

    def _found(self, message: Apply) -> Kept[Profile] | None:
        """Read the profile; to leave a cluster, its contents need not be there."""
        place = (message.trigger, message.cluster, message.profile)
        try:
            return self._records.profiles.get(*place)
        except MissingError:
            head = self._records.profiles.head(*place)
            if head and message.destination in head.value.destinations:
                raise
            return head

    def _bring(self, work: Work) -> None:
        if work.message.contested:
            self._doubt(work, Identity.parse(work.message.contested))
        steps = plan(self._objects(work) if work.wanted else (), work.held)
        if steps.apply or steps.remove:
            self._carry_out(work, steps)
        if work.failed:
            raise work.failed[0]
        if work.unfinished:
            self._publisher.publish([replace(work.message, contested="")])
        elif work.wanted:
            self._endings.settle(work)
        else:
            self._endings.leave(work.profile, work.cluster.key, work.outcome)

    def _doubt(self, work: Work, key: Identity) -> None:
        """Take for uncertain what is said to have changed hands, or to have been overwritten."""
        held = work.held.pop(key, None)
        if held and not taken_from(work.profile.name, self._claims.owner(work.cluster.key, key)):
            work.held[key] = replace(held, digest="", secret=True)

    def _objects(self, work: Work) -> tuple[Desired, ...]:
        """Return the objects for this cluster, each in the scope its kind has there."""
        root = cluster_object(work.cluster)
        resources = self._resources.of(work.profile, work.cluster)
        work.read = digest(resources)
        contents = [
            deploy_time(content, root, resources, limits=self._limits)
            for content in work.profile.contents
            if content.namespace in ("", work.cluster.namespace)
        ]
        kube = self._access.open(work.cluster.key, version=work.cluster.credentials)
        crds = _kinds_defined(contents)
        placed = tuple(
            self._placed(kube, each, crds) for each in desired(contents, tier=work.profile.tier)
        )
        refuse_placed(work.profile, (each.key for each in placed))
        return placed

    def _placed(self, kube: Kube, each: Desired, crds: Mapping[tuple[str, str], bool]) -> Desired:
        gvk, namespace, name = each.key
        resource = kube.resource(gvk)
        namespaced = resource.namespaced if resource else crds.get((gvk.group, gvk.kind), True)
        namespace = (namespace or "default") if namespaced else ""
        return replace(each, key=ObjectKey(gvk, namespace, name))

    def _carry_out(self, work: Work, steps: Plan) -> None:
        """Carry a plan out, for as long as a turn lasts; the inventory keeps what was done."""
        kube = self._access.open(work.cluster.key, version=work.cluster.credentials)
        self._leases.take(work, steps)
        try:
            self._claim(work, steps)
            for wanted in phases(steps.apply, lambda each: each.key.identity):
                if self._stops(work):
                    break
                self._do(work, partial(self._steps.apply, kube, work), wanted)
            if not work.failed:
                # A profile that could not be applied as a whole takes nothing away.
                for unwanted in phases(steps.remove, lambda key: key):
                    self._do(work, partial(self._steps.remove, kube, work), unwanted)
        finally:
            self._leases.give_up(work)

    def _claim(self, work: Work, steps: Plan) -> None:
        """Claim all that is new before any of it is applied, and nothing where one is another's.

        A profile that goes on without what another has claims one object after the other. Who
        takes one while we are at work is met when it is applied: no later phase is begun then.
        """
        new = [each for each in steps.apply if each.key.identity not in work.before]
        if work.profile.continue_on_conflict or len(steps.apply) < _SEVERAL:
            return
        claims = self._hand_out(partial(self._steps.claim, work), new)
        work.claimed = {each.key: each.taken for each in claims if each.taken}
        refused = [each.refused for each in claims if each.refused]
        if refused:
            mine = [key for key, taken in work.claimed.items() if taken.new]
            self._hand_out(partial(self._steps.unclaim, work), mine)
            # What an earlier try may have applied stays unsure; of the rest nothing was begun.
            work.held = dict(work.before)
            work.failed += refused

    def _hand_out(self, step: Callable[[T], R], objects: Sequence[T]) -> list[R]:
        """Do something to all objects, however long it takes: it asks the records alone."""
        done, error = self._hands.each(step, objects, lambda: True)
        if error:
            raise error
        return done

    def _stops(self, work: Work) -> bool:
        """Say whether nothing more is begun, since another profile has one of the objects."""
        conflicts = any(isinstance(each, ConflictError) for each in work.failed)
        return conflicts and not work.profile.continue_on_conflict

    def _do(self, work: Work, step: Callable[[T], Upshot], objects: Sequence[T]) -> None:
        """Take a step for each object of a phase, with all hands that are free.

        Raises:
            TemporaryError: one could not be taken now; what was done is noted.
        """
        upshots, error = self._hands.each(step, objects, lambda: self._goes_on(work))
        for upshot in upshots:
            work.note(upshot)
        if error:
            raise error

    def _goes_on(self, work: Work) -> bool:
        """Say whether another object is begun before others have their turn; the first one is."""
        used = self._records.clock.now() - work.begun_at
        work.unfinished = work.under_way and used > self._settings.turn
        work.under_way = True
        return not work.unfinished


def _inputs(
    message: Apply, profile: Kept[Profile] | None, cluster: Kept[Cluster] | None
) -> tuple[str, ...]:
    """Name what an execution is made of; where nothing is wanted, nothing else counts."""
    if profile is None or message.destination not in profile.value.destinations:
        return ()
    # Templates read the labels of the cluster, and another one may have come in its place.
    return profile.value.revision, cluster.token if cluster else ""


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


def _kinds_defined(contents: list[Any]) -> dict[tuple[str, str], bool]:
    """Say of each kind that the contents themselves define whether it is namespaced."""
    found = {}
    for content in contents:
        for manifest in content.manifests:
            if manifest["kind"] == "CustomResourceDefinition":
                spec = manifest.get("spec") or {}
                names = spec.get("names") or {}
                found[spec.get("group", ""), names.get("kind", "")] = spec.get("scope") != "Cluster"
    return found
