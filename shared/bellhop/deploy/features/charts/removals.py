"""Uninstalls releases, transfers them to other profiles, or leaves them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.deploy.context import ObjectResult, ReconcileContext
from bellhop.deploy.features.charts.cluster_releases import Caller
from bellhop.deploy.features.charts.handover import ReleaseHandover
from bellhop.deploy.features.charts.inputs import ReleaseInputs, open_cluster
from bellhop.deploy.features.charts.lane import Lane
from bellhop.deploy.features.charts.ownership import ReleaseOwnership
from bellhop.deploy.features.charts.planning import Leave, Remove
from bellhop.deploy.handover import Transfer
from bellhop.deploy.ownership import Ownership, is_owned_by_other
from bellhop.deploy.release_records import newest_revision
from bellhop.errors import PermanentError, QueuedError, WaitingError
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Access
from bellhop.state.chart import HeldRelease
from bellhop.state.deployment import Held


class Removals:
    """Carries out what a plan takes back."""

    def __init__(  # noqa: PLR0913 - what it calls has state of its own, and is shared
        self,
        clock: Clock,
        access: Access,
        caller: Caller,
        ownership: Ownership,
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
        self._ownership = ownership
        self._transfer = transfer
        self._inputs = inputs
        self._parts = parts
        self._heirs = heirs
        self._lane = lane

    def uninstall(self, context: ReconcileContext, step: Remove) -> ObjectResult:
        """Uninstall a release by `Uninstall`, and record that."""
        assert step.desired
        key = step.key
        try:
            helm, kubeconfig = self._caller.helm(context), self._caller.kubeconfig(context)
            self._ownership.claim(context.cluster.key, key, context.profile)
            removal = step.desired.chart.removal
            with self._lane.enter(context, holds=_has_hooks(step.held)):
                was = helm.charts.remove(
                    kubeconfig, key.namespace, key.name, self._inputs.bounded(removal)
                )
        except WaitingError as error:
            return ObjectResult(key, context.lease.before.get(key, step.held), refused=error)
        except PermanentError as error:
            return ObjectResult(key, context.progress.held.get(key), refused=error)
        self._parts.drop(context, key)
        known = HeldRelease(removal=removal, removed=True, tier=context.profile.tier)
        now = self._clock.now()
        held = Held(step.desired.digest, step.desired.ref, applied_at=now, release=known)
        return ObjectResult(key, held, changed=was)

    def leave(self, context: ReconcileContext, step: Remove | Leave) -> ObjectResult:
        """Remove a release, or leave it as it is; one that another profile has is its own.

        One that another waits for is handed over.
        """
        cluster, key = context.cluster.key, step.key
        found = self._ownership.read(cluster, key)
        before, release = context.lease.before.get(key, step.held), step.held.release
        assert release
        with ExitStack() as place:
            try:
                if (
                    isinstance(step, Remove)
                    and found
                    and found.value.profile == context.profile.name
                ):
                    self._heirs.check(context, key, found.value, release.kept_until)
                    place.enter_context(self._lane.enter(context, holds=_has_hooks(step.held)))
            except QueuedError as error:
                return ObjectResult(key, before, refused=error)
            except WaitingError as error:
                # Whatever else fails meanwhile, it is kept once.
                kept = replace(before, release=replace(release, kept_until=error.until))
                return ObjectResult(key, kept, refused=error)
            return self._leave(context, step)

    def _leave(self, context: ReconcileContext, step: Remove | Leave) -> ObjectResult:
        key, name = step.key, context.profile.name
        cluster, was = context.cluster.key, False
        try:
            # The next owner of the release is to find its objects free.
            with self._parts.dropped(context, key) as parts:
                known = {}
                if isinstance(step, Remove) and is_known(step.held):
                    known = self._transfer.give(context, [step])
                owner = known[key] if key in known else self._ownership.read(cluster, key)
                if isinstance(step, Remove) and not is_owned_by_other(name, owner):
                    was = self._remove(context, step, parts)
        except PermanentError as error:
            return ObjectResult(key, context.progress.held.get(key), refused=error)
        if not self._ownership.release(cluster, key, name, owner):
            # It was taken over while it was removed.
            self._ownership.notify_owner(cluster, key)
        return ObjectResult(key, None, changed=was)

    def _remove(self, context: ReconcileContext, step: Remove, parts: Sequence[ObjectKey]) -> bool:
        """Uninstall a release; say whether it was there.

        One that no profile deployed stays. If Helm has no record of it, its `parts` are deleted.
        """
        assert step.held.release
        key, removal = step.key, step.held.release.removal
        newest = newest_revision(open_cluster(self._access, context), key.namespace, key.name)
        if newest is None:
            return self._parts.remove(context, key, parts)
        if not newest.ours:
            return False
        return self._caller.helm(context).charts.remove(
            self._caller.kubeconfig(context), key.namespace, key.name, self._inputs.bounded(removal)
        )


def _has_hooks(held: Held) -> bool:
    """Return whether Helm runs hooks when a release is removed, as far as that is known."""
    release = held.release
    return release is not None and release.delete_hooks and release.removal.hooks


def is_known(held: Held | None) -> bool:
    """Say whether a release was deployed for sure, by what is held of it."""
    return held is not None and held.release is not None and held.release.revision > 0
