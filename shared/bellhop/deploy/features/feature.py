"""The Protocol of a feature: it plans for one profile in one cluster, and executes its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.state.deployment import Change, Held


class Plan(Protocol):
    """Operations, decided before any of them begins."""

    @property
    def idle(self) -> bool:
        """Say whether there is nothing to do."""
        ...

    def uncertain(self, held: Mapping[Identity, Held]) -> dict[Identity, Held]:
        """Return the inventory from the moment on in which the first operation may have begun.

        Nothing of what the plan touches is certain then: a worker that dies stores no result.
        """
        ...


P = TypeVar("P", bound=Plan)


class Feature(Protocol[P]):
    """One sort of add-ons, as Sveltos names them."""

    @property
    def name(self) -> str:
        """Name it as Sveltos does: `Resources`."""
        ...

    @property
    def inbox(self) -> str:
        """Name the inbox whose workers execute its plans; empty where any worker does."""
        ...

    def plan(self, context: ReconcileContext) -> P:
        """Decide what to do; it writes nothing anywhere.

        Raises:
            PermanentError: the add-ons cannot be deployed, in this cluster or in any.
            TemporaryError: the cluster does not answer what must be known.
        """
        ...

    def execute(self, context: ReconcileContext, plan: P) -> None:
        """Execute a plan's operations until the turn ends, and record their results.

        The caller has the lease.

        Raises:
            TemporaryError: an operation failed for now; what was done is recorded.
        """
        ...

    def preview(self, context: ReconcileContext, plan: P) -> Sequence[Change]:
        """Return what a plan would change, and change nothing.

        Raises:
            TemporaryError: the cluster does not answer now.
        """
        ...

    def has_changed(self, context: ReconcileContext) -> bool:
        """Say whether what was read to plan has changed since."""
        ...
