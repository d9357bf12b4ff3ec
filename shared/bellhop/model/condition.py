"""How a cluster is by a ClusterHealthCheck, and who has been told of it."""

from __future__ import annotations

from datetime import datetime

from bellhop.frozen import frozen


@frozen
class Notice:
    """What one notification has told of a cluster, and how sending it went.

    `told` is the state that was told last: of a cluster that was never told of it is that it is
    well. `failures` counts those in a row, of which the last one said `error`. Nothing is sent
    before `until`.
    """

    name: str
    told: bool = True
    until: datetime | None = None
    failures: int = 0
    error: str = ""


@frozen
class Liveness:
    """How a cluster is by one liveness check, in a sentence; None where nobody knows yet."""

    name: str
    healthy: bool | None
    message: str = ""


@frozen
class Condition:
    """How a cluster is since when, in a sentence, its notices, and how it is by each check."""

    healthy: bool
    since: datetime
    message: str = ""
    notices: tuple[Notice, ...] = ()
    checks: tuple[Liveness, ...] = ()
