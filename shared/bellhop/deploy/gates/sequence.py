"""The gates in order, and the fields of a profile that each of them is about."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.catalog.cache import Catalogs
from bellhop.clusters.circuit_breaker import Circuits
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.gates.circuit import CircuitGate
from bellhop.deploy.gates.dependencies import DependencyGate
from bellhop.deploy.gates.gate import Gate
from bellhop.deploy.gates.pause import PauseGate
from bellhop.deploy.gates.permissions import PermissionsGate
from bellhop.deploy.gates.rollout import RolloutGate
from bellhop.deploy.gates.transition import TransitionGate
from bellhop.errors import AwayError, PausedError, StaleError, WaitingError
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.messages import Publisher
from bellhop.state.profile import Profile
from bellhop.state.table import Stored


class Gates:
    """All gates of deploy but the checks; a profile passes those that its fields ask for.

    Permissions, transition, dependencies, rollout and circuit breaker are checked before a profile
    is planned, and the pause once its plan has anything to change.
    """

    def __init__(self, catalogs: Catalogs, publisher: Publisher, circuits: Circuits) -> None:
        records = catalogs.records
        self.circuit = CircuitGate(circuits, records.clock)
        self._permissions = PermissionsGate(catalogs)
        self._transition = TransitionGate(catalogs, publisher)
        self._dependencies = DependencyGate(records, publisher)
        self._rollout = RolloutGate(records, publisher)
        self._pause = PauseGate(records)

    def check(self, context: ReconcileContext) -> None:
        """Check all gates but the pause."""
        cluster = context.cluster.key
        for gate in self._select(context.profile, cluster, context.status):
            gate.check(context)
        self.circuit.check(context)

    def check_pause(self, context: ReconcileContext) -> None:
        """Check that the cluster may be changed now."""
        if context.cluster.spec.get("paused") or context.cluster.spec.get("activeWindow"):
            self._pause.check(context)

    def confirm(self, context: ReconcileContext) -> None:
        """Check again under the lease; a gate that stops the profile leaves all as it was before.

        Raises:
            WaitingError: what comes first is no longer deployed; nothing was begun.
            StaleError: the cluster may no longer change, or is to lose the profile; the same.
        """
        cluster = context.cluster.key
        try:
            for gate in self._select(context.profile, cluster, context.status):
                gate.confirm(context)
        except (StaleError, WaitingError):
            context.progress.held = dict(context.lease.before)
            raise

    def recheck(self, context: ReconcileContext, error: AwayError | PausedError) -> None:
        """Check again after the status says that the profile waits: its cause may have ended.

        The worker that ends the cause reads the status after that, so one of the two sees the
        other.

        Raises:
            StaleError: the cluster is no longer paused, or another worker has begun.
            TemporaryError: the cluster answers again, or its window is about to open.
        """
        if isinstance(error, AwayError):
            self.circuit.recheck(context)
            return
        self._pause.recheck(context, error)
        if context.profile.rollout.share:
            self._rollout.step_aside(context)

    def release(
        self,
        profile: Profile,
        cluster: str,
        status: Stored[DeploymentStatus] | None,
        *,
        left: bool = False,
    ) -> None:
        """Let others proceed after a profile is deployed in a cluster, or has `left` it."""
        for gate in self._select(profile, cluster, status):
            gate.release(profile, cluster, status, left=left)

    def _select(
        self, profile: Profile, cluster: str, status: Stored[DeploymentStatus] | None
    ) -> Iterator[Gate]:
        """Yield the gates that a profile's fields ask for, or asked for when it had a status."""
        rollout, old = profile.rollout, status.value if status else None
        permissions = profile.account or profile.grants
        if permissions:
            yield self._permissions
        if not profile.trigger and cluster not in profile.destinations:
            yield self._transition
        ordered = rollout.after or rollout.awaited or rollout.replaces
        if permissions or ordered or (old and (old.needs or old.revision)):
            yield self._dependencies
        if rollout.share or (old and old.revision):
            yield self._rollout
