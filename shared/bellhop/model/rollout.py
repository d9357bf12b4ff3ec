"""How a profile is rolled out, as its record carries it: what it waits for, and what stops it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a profile asks of its roll-out; each field that asks for nothing is false.

    With `continues` an object that fails keeps no other from being brought. After `most_failures`
    in a row nothing is tried again by itself; 0 is without an end. In each cluster it comes `after`
    other profiles, by their names; one that is `awaited` has others come after it.
    """

    continues: bool = False
    most_failures: int = 0
    after: tuple[str, ...] = ()
    awaited: bool = False

    @property
    def ordered(self) -> bool:
        """Say whether it is brought in an order with others."""
        return self.awaited or bool(self.after)


AT_ONCE = Rollout()
"""As is done where nobody asks for anything."""


@dataclass(frozen=True, slots=True)
class Follower:
    """A profile that waits for another one in a cluster, or is not to be there without it."""

    trigger: str
    source: str
    profile: str
