"""Results of cluster health checks, and their table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from bellhop.state.table import Stored, Table


class Notice(Struct, frozen=True):
    """The state of one notification of a cluster's condition."""

    name: str
    told: bool = True
    """The condition that was sent last; a cluster of which none was sent counts as healthy."""
    until: datetime | None = None
    """Nothing is sent before then."""
    failures: int = 0
    """Failures in a row, the last one with this error."""
    error: str = ""


class Liveness(Struct, frozen=True):
    """The result of one liveness check for a cluster; None as long as it is unknown."""

    name: str
    healthy: bool | None
    message: str = ""


class Condition(Struct, frozen=True):
    """The condition of a cluster by a ClusterHealthCheck, with its checks and notices."""

    healthy: bool
    since: datetime
    message: str = ""
    notices: tuple[Notice, ...] = ()
    checks: tuple[Liveness, ...] = ()


class Conditions(Table[Condition, str, str]):
    """Results of ClusterHealthChecks, by cluster and check."""

    kind = Condition
    partition, sort = "condition/{cluster}", "{check}"

    def of(self, cluster: str) -> dict[str, Stored[Condition]]:
        """Read the results of a cluster, by check."""
        return dict(self.rows(cluster))

    def checked(self, clusters: Iterator[str]) -> Iterator[tuple[str, str, Condition]]:
        """Yield (cluster, check, result) of clusters, in their order."""
        for cluster in clusters:
            for check, kept in self.rows(cluster):
                yield cluster, check, kept.value
