"""How a cluster is by a ClusterHealthCheck, and who has been told of it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Notice(Struct, frozen=True):
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


class Liveness(Struct, frozen=True):
    """How a cluster is by one liveness check, in a sentence; None where nobody knows yet."""

    name: str
    healthy: bool | None
    message: str = ""


class Condition(Struct, frozen=True):
    """How a cluster is since when, in a sentence, its notices, and how it is by each check."""

    healthy: bool
    since: datetime
    message: str = ""
    notices: tuple[Notice, ...] = ()
    checks: tuple[Liveness, ...] = ()
