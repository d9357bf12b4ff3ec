"""How applying each profile to each cluster ended."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bellhop.ports.store import ANY, Store
from bellhop.state.concurrency import until_written
from bellhop.state.record import DeploymentStatus
from bellhop.state.table import Stored, Table


class DeploymentStatuses:
    """Outcomes by destination cluster and profile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, DeploymentStatus, in_key=("cluster", "profile"))

    def get(self, cluster: str, profile: str) -> Stored[DeploymentStatus] | None:
        """Read how applying a profile to a cluster ended."""
        return self._table.get(f"outcome/{cluster}", profile, cluster=cluster, profile=profile)

    def of(self, cluster: str) -> Iterator[DeploymentStatus]:
        """Yield the outcomes of a cluster, by profile."""
        for item in self._table.items(f"outcome/{cluster}"):
            yield self._table.read(item.value, cluster=cluster, profile=item.sort)

    def put(self, outcome: DeploymentStatus, *, expect: str | None = ANY) -> str:
        """Write how applying a profile to a cluster ended, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        partition = f"outcome/{outcome.cluster}"
        return self._table.put(partition, outcome.profile, outcome, expect=expect)

    @until_written("recount the failures of '{profile}'")
    def recount(self, cluster: str, profile: str) -> None:
        """Count the failures of a profile in a cluster anew; pauses begin with the first, too.

        Raises:
            StaleError: other writers keep winning.
        """
        kept = self.get(cluster, profile)
        if kept and (kept.value.counted or kept.value.failures):
            self.put(replace(kept.value, counted=0, failures=0), expect=kept.token)

    def delete(self, cluster: str, profile: str, *, expect: str | None = ANY) -> bool:
        """Forget an outcome; say whether there was one.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete(f"outcome/{cluster}", profile, expect=expect)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"outcome/{cluster}"):
            self._store.delete(item.partition, item.sort)
