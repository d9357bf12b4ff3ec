"""The Protocol of a feature: it plans for one profile in one cluster, and executes its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.state.record import Change, Held, Profile


class Plan(Protocol):
    """Steps, decided before any of them is taken."""

    @property
    def idle(self) -> bool:
        """Say whether there is nothing to do."""
        ...

    def begun(self, held: Mapping[Identity, Held]) -> dict[Identity, Held]:
        """Say what is held from the moment on in which the first step may have been taken.

        Nothing of what the plan touches is certain then: whoever dies tells nobody.
        """
        ...


P = TypeVar("P", bound=Plan)


class Feature(Protocol[P]):
    """One sort of what profiles bring."""

    @property
    def name(self) -> str:
        """Name it as Sveltos does: `Resources`."""
        ...

    @property
    def inbox(self) -> str:
        """Name the inbox whose workers carry its plans out; empty where any worker does."""
        ...

    def concerns(self, profile: Profile, held: Mapping[Identity, Held]) -> bool:
        """Say whether a profile has anything of the sort, or had it in a cluster."""
        ...

    def plan(self, work: ReconcileContext) -> P:
        """Decide what to do; it writes nothing anywhere.

        Raises:
            PermanentError: what is wanted cannot be, in this cluster or in any.
            TemporaryError: the cluster does not say what must be known.
        """
        ...

    def carry_out(self, work: ReconcileContext, plan: P) -> None:
        """Take a plan's steps for as long as a turn lasts, and note in `work` what came of them.

        Who calls it has the lease.

        Raises:
            TemporaryError: a step could not be taken now; what was done is noted.
        """
        ...

    def preview(self, work: ReconcileContext, plan: P) -> Sequence[Change]:
        """Tell what a plan's steps would change, and change nothing.

        Raises:
            TemporaryError: the cluster does not say it now.
        """
        ...

    def reads_otherwise(self, work: ReconcileContext) -> bool:
        """Say whether what was read to plan has changed since."""
        ...
