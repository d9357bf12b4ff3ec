"""How a profile is rolled out, as its record carries it: what stops it, and what it restarts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a profile asks of its roll-out; each field that asks for nothing is false.

    With `continues` an object that fails keeps no other from being brought. After `most_failures`
    in a row nothing is tried again by itself; 0 is without an end. One that `reloads` restarts its
    workloads when what they read of ConfigMaps and Secrets changes.
    """

    continues: bool = False
    most_failures: int = 0
    reloads: bool = False


AT_ONCE = Rollout()
"""As is done where nobody asks for anything."""
