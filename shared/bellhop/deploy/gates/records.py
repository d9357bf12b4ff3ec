"""Tables of the gates: rollouts, and profiles that depend on others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import MappingProxyType
from typing import Literal

from bellhop.errors import StaleError
from bellhop.ports.store import Store
from bellhop.profiles.records import Place
from bellhop.state.deployment import Dependent, RolloutState
from bellhop.state.table import Stored, Table


class RolloutStates(Table[RolloutState, Place]):
    """Clusters of a profile that change now, by profile.

    Each cluster that waits has a record of its own, in `ProfileClusters`: a thousand that wait
    write a thousand records, and only those that begin or end this one.
    """

    kind = RolloutState
    partition, sort = "rota/{trigger}/{cluster}", "{name}"
    published = MappingProxyType({"untold": ()})

    def place(self, profile: Place) -> tuple[str, str]:
        """Return the place of a profile's rollout."""
        return f"rota/{profile.trigger}/{profile.cluster}", profile.name


class Dependents(Table[Dependent, str, str, str]):
    """Profiles that depend on another one in a cluster, by cluster and that profile.

    There are two sorts of record: those that wait to be notified, until they are; and those that
    may be deployed and are not to be without the other.
    """

    kind = Dependent
    sort = "{first}:{profile}"

    def __init__(self, store: Store, table: Literal["waiting", "needing"]) -> None:
        self.partition = table + "/{cluster}"
        super().__init__(store)

    def of(self, cluster: str, first: str) -> Iterator[Stored[Dependent]]:
        """Yield the profiles that depend on one in a cluster."""
        return (each for _, each in self.rows(cluster, prefix=f"{first}:"))

    def put(  # type: ignore[override]
        self, cluster: str, first: str, dependent: Dependent
    ) -> None:
        """Record that a profile depends on another one; its record gets a new token each time."""
        super().put(cluster, first, dependent.profile, dependent)

    def delete(  # type: ignore[override]
        self, cluster: str, first: str, kept: Stored[Dependent]
    ) -> None:
        """Delete a record, unless it was written again since it was read."""
        with suppress(StaleError):
            super().delete(cluster, first, kept.value.profile, expect=kept.token)
