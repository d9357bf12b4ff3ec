"""Alerts about clusters and promotions, by their names in metrics and log lines of both clouds."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

UNREACHABLE = "ClustersUnreachable"
SILENT = "ClustersSilent"
EXPIRING = "CredentialsExpiring"
HELD = "DeletionsHeld"
STALLED = "PromotionsStalled"

ALERTS = (UNREACHABLE, SILENT, EXPIRING, HELD, STALLED)
"""Conditions that each tick of a cloud's timer reports while they last."""

_OF_STATE = {"Down": UNREACHABLE, "Unauthorized": UNREACHABLE, "Silent": SILENT}


class Alert(Struct, frozen=True):
    """A cluster that needs attention: its state is bad, or its credentials expire soon.

    `state` is Down, Unauthorized or Silent, and empty for any other; `expires_at` is when its
    credentials expire, if that is within the warning period. Or it is of a promotion, of which so
    many `stages` are stopped.
    """

    state: str = ""
    expires_at: datetime | None = None
    stages: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Return the alerts that the cluster, or the promotion, counts in."""
        found = [_OF_STATE[self.state]] if self.state in _OF_STATE else []
        found += [EXPIRING] if self.expires_at else []
        return (*found, *([STALLED] if self.stages else []))
