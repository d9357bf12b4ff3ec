"""Alerts about clusters, by the names that metrics and log lines have for them in both clouds."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

UNREACHABLE = "ClustersUnreachable"
SILENT = "ClustersSilent"
EXPIRING = "CredentialsExpiring"
HELD = "DeletionsHeld"

ALERTS = (UNREACHABLE, SILENT, EXPIRING, HELD)
"""Conditions that each tick of a cloud's timer reports while they last."""

_OF_STATE = {"Down": UNREACHABLE, "Unauthorized": UNREACHABLE, "Silent": SILENT}


class Alert(Struct, frozen=True):
    """A cluster that needs attention: its state is bad, or its credentials expire soon.

    `state` is Down, Unauthorized or Silent, and empty for any other; `expires_at` is when its
    credentials expire, if that is within the warning period.
    """

    state: str = ""
    expires_at: datetime | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the alerts that the cluster counts in."""
        of_state = [_OF_STATE[self.state]] if self.state in _OF_STATE else []
        return (*of_state, *([EXPIRING] if self.expires_at else []))
