"""How a profile is rolled out, as its record has it: what it waits for, what stops and restarts."""

from __future__ import annotations

from msgspec import Struct

MOST_PLACES = 1000
"""Clusters of one profile with `maxUpdate` that change at a time."""


class Rollout(Struct, frozen=True):
    """What a profile asks of its roll-out; each field that asks for nothing is false.

    With `continues` an object that fails keeps no other from being brought. After `most_failures`
    in a row nothing is tried again by itself; 0 is without an end. In each cluster it comes `after`
    other profiles, by their names; one that is `awaited` has others come after it. A `share` of its
    clusters changes at a time: a number of them, or a percentage. One that `reloads` restarts its
    workloads when what they read of ConfigMaps and Secrets changes. It `replaces` other profiles:
    it takes their objects over, and they stay in a cluster until it is deployed there.
    """

    continues: bool = False
    most_failures: int = 0
    after: tuple[str, ...] = ()
    awaited: bool = False
    share: str = ""
    reloads: bool = False
    replaces: tuple[str, ...] = ()

    @property
    def ordered(self) -> bool:
        """Say whether it is brought in an order with others."""
        return self.awaited or bool(self.after) or bool(self.replaces)

    @property
    def paced(self) -> bool:
        """Say whether it changes so many clusters at a time."""
        return bool(self.share)

    def places(self, clusters: int) -> int:
        """Return how many of its clusters change at a time: of a share the next whole number."""
        number = int(self.share.rstrip("%"))
        if self.share.endswith("%"):
            number = -(-number * clusters // 100)
        return min(max(number, 1), MOST_PLACES)


AT_ONCE = Rollout()
"""As is done where nobody asks for anything."""


class Dependent(Struct, frozen=True):
    """A profile that waits for another one in a cluster, or is not to be there without it."""

    trigger: str
    source: str
    profile: str


class RolloutState(Struct, frozen=True):
    """The clusters of a profile whose turn it is to change; the `untold` are still to be told."""

    at_work: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
