"""One execution under way: what it was begun with, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bellhop.errors import BellhopError
from bellhop.messages import Apply
from bellhop.model.gvk import Identity
from bellhop.model.record import Cluster, Held, Outcome, Profile
from bellhop.records import Kept


@dataclass
class Work:
    """A profile on its way to a cluster; `outcome` is that of the last time, as it was found.

    `held` is what the inventory is to say, and `token` that of the inventory as we know it;
    `before` is what was held when we took the lease.
    """

    message: Apply
    profile: Profile
    cluster: Cluster
    outcome: Kept[Outcome] | None
    held: dict[Identity, Held]
    token: str
    begun_at: datetime
    before: Mapping[Identity, Held] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    failed: list[BellhopError] = field(default_factory=list)
    unfinished: bool = False

    @property
    def wanted(self) -> bool:
        """Say whether the cluster is to have the profile, and not to lose it."""
        return self.cluster.key in self.profile.destinations
