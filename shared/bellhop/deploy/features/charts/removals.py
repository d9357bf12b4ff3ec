"""Uninstalls releases, hands them over to other profiles, or leaves them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.deploy.context import ObjectResult, ReconcileContext
from bellhop.deploy.features.charts.caller import Caller
from bellhop.deploy.features.charts.handover import ReleaseHandover
from bellhop.deploy.features.charts.inputs import ReleaseInputs, open_cluster
from bellhop.deploy.features.charts.lane import Lane
from bellhop.deploy.features.charts.ownership import ReleaseOwnership
from bellhop.deploy.features.charts.planning import Leave, Remove
from bellhop.deploy.handover import Transfer
from bellhop.deploy.ownership import Ownership, taken_from
from bellhop.deploy.release_records import newest_revision
from bellhop.errors import PermanentError, QueuedError, WaitingError
from bellhop.ports.access import Access
from bellhop.ports.clock import Clock
from bellhop.state.chart import HeldRelease
from bellhop.state.record import Held


class Removals:
    """Carries out what a plan takes back."""

    def __init__(  # noqa: PLR0913 - what it calls has state of its own, and is shared
        self,
        clock: Clock,
        access: Access,
        caller: Caller,
        claims: Ownership,
        *,
        transfer: Transfer,
        inputs: ReleaseInputs,
        parts: ReleaseOwnership,
        heirs: ReleaseHandover,
        lane: Lane,
    ) -> None:
        self._clock = clock
        self._access = access
        self._caller = caller
        self._claims = claims
        self._transfer = transfer
        self._inputs = inputs
        self._parts = parts
        self._heirs = heirs
        self._lane = lane

    def remove_wanted(self, work: ReconcileContext, step: Remove) -> ObjectResult:
        """Remove a release that a profile wants to be gone, and note that it was."""
        assert step.wanted
        key = step.key
        try:
            helm, kubeconfig = self._caller.helm(work), self._caller.kubeconfig(work)
            self._claims.take(work.cluster.key, key, work.profile)
            removal = step.wanted.chart.removal
            with self._lane.enter(work, holds=_has_hooks(step.held)):
                was = helm.charts.remove(
                    kubeconfig, key.namespace, key.name, self._inputs.bounded(removal)
                )
        except WaitingError as error:
            return ObjectResult(key, work.before.get(key, step.held), refused=error)
        except PermanentError as error:
            return ObjectResult(key, work.held.get(key), refused=error)
        self._parts.drop(work, key)
        known = HeldRelease(removal=removal, removed=True, tier=work.profile.tier)
        now = self._clock.now()
        held = Held(step.wanted.digest, step.wanted.ref, applied_at=now, release=known)
        return ObjectResult(key, held, changed=was)

    def leave(self, work: ReconcileContext, step: Remove | Leave) -> ObjectResult:
        """Remove a release, or leave it as it is; one that another profile has is its own.

        One that another waits for is handed over.
        """
        cluster, key = work.cluster.key, step.key
        found = self._claims.owner(cluster, key)
        before, release = work.before.get(key, step.held), step.held.release
        assert release
        with ExitStack() as place:
            try:
                if isinstance(step, Remove) and found and found.value.profile == work.profile.name:
                    self._heirs.refuse_early(work, key, found.value, release.kept_until)
                    place.enter_context(self._lane.enter(work, holds=_has_hooks(step.held)))
            except QueuedError as error:
                return ObjectResult(key, before, refused=error)
            except WaitingError as error:
                # Whatever else fails meanwhile, it is kept once.
                kept = replace(before, release=replace(release, kept_until=error.until))
                return ObjectResult(key, kept, refused=error)
            return self._leave(work, step)

    def _leave(self, work: ReconcileContext, step: Remove | Leave) -> ObjectResult:
        key, name = step.key, work.profile.name
        cluster, was = work.cluster.key, False
        try:
            # The next owner of the release is to find its objects free.
            with self._parts.dropped(work, key) as parts:
                if isinstance(step, Remove) and is_known(step.held):
                    self._transfer.give(work, [step])
                owner = self._claims.owner(cluster, key)
                if isinstance(step, Remove) and not taken_from(name, owner):
                    was = self._remove(work, step, parts)
        except PermanentError as error:
            return ObjectResult(key, work.held.get(key), refused=error)
        if not self._claims.give_up(cluster, key, name, owner):
            # It was taken over while it was removed.
            self._claims.tell_owner(cluster, key)
        return ObjectResult(key, None, changed=was)

    def _remove(self, work: ReconcileContext, step: Remove, parts: Sequence[ObjectKey]) -> bool:
        """Uninstall a release; say whether it was there.

        One that no profile made stays. Where Helm has no record of it its `parts` are deleted, as
        far as they are there.
        """
        assert step.held.release
        key, removal = step.key, step.held.release.removal
        newest = newest_revision(open_cluster(self._access, work), key.namespace, key.name)
        if newest is None:
            return self._parts.remove(work, key, parts)
        if not newest.ours:
            return False
        return self._caller.helm(work).charts.remove(
            self._caller.kubeconfig(work), key.namespace, key.name, self._inputs.bounded(removal)
        )


def _has_hooks(held: Held) -> bool:
    """Return whether Helm runs hooks when a release is removed, as far as that is known."""
    release = held.release
    return release is not None and release.delete_hooks and release.removal.hooks


def is_known(held: Held | None) -> bool:
    """Say whether a release was deployed for sure, by what is held of it."""
    return held is not None and held.release is not None and held.release.revision > 0
