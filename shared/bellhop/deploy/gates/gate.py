"""The three moments of a gate: before a profile is planned, under the lease, and afterwards."""

from __future__ import annotations

from bellhop.deploy.context import ReconcileContext
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.profile import Profile
from bellhop.state.table import Stored


class Gate:
    """Decides whether a profile may be deployed to a cluster, or withdrawn from it, now.

    A gate returns to let the profile proceed. It raises a `WaitingError`, `until` a time or until
    a message comes, to have it wait; any other error refuses it. A moment that a gate does not
    define has no effect.
    """

    def check(self, context: ReconcileContext) -> None:
        """Check before anything is planned; note what the gate must find later."""

    def confirm(self, context: ReconcileContext) -> None:
        """Check again under the lease: another worker sees the lease, or this one sees its write.

        Raises:
            StaleError: what `check` read has changed; nothing was begun.
        """

    def release(
        self,
        profile: Profile,
        cluster: str,
        status: Stored[DeploymentStatus] | None,
        *,
        left: bool,
    ) -> None:
        """Let other profiles proceed after this one is deployed in a cluster, or has `left` it.

        `status` is the one that was stored before.
        """
