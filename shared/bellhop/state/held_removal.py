"""What a change of what is declared would remove from clusters, and does not until it is released.

It has a file of its own since `record` is long, and ingest needs none of it.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class HeldRemoval(Struct, frozen=True):
    """Add-ons of one trigger, or of one profile that users wrote, that stay though not declared.

    An add-on is one profile in one cluster. `addons` of `of` would be removed, in `number`
    clusters, the first of which are named as `clusters`. `change` identifies the command or
    decision that would remove them, and `cause` describes it. Both are empty of what is only
    foreseen.
    """

    trigger: str
    profile: str
    profiles: int
    addons: int
    of: int
    number: int
    clusters: tuple[str, ...]
    change: str = ""
    cause: str = ""
    since: datetime | None = None

    @property
    def rule(self) -> tuple[str, str]:
        """Return the trigger or the profile: one of the two names is empty."""
        return self.trigger, self.profile
