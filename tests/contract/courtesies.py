"""What a queue may do beyond its promises, by name: a rig declares which of it a provider has.

A test of a courtesy is marked `@pytest.mark.courtesy(ORDER)`; it is not collected where the
provider's rig does not declare it, and one that would run nowhere is an error.
"""

from __future__ import annotations

ORDER = "order"
"""Messages of a group come in the order of their publishing, one batch at a time."""

PAUSES = "pauses"
"""A message that was given back comes after its pause, not before."""

COUNTS = "counts"
"""Attempts are counted exactly, and the last one ends as a dead letter."""

ONCE = "once"
"""What was settled in time does not come again."""

SHARES = "shares"
"""Shares take turns: what one has waiting delays no other by more than a message or two."""

STANDSTILL = "standstill"
"""Time passes only where a test says so: histories can be compared with a model to the instant."""

ALL = frozenset({ORDER, PAUSES, COUNTS, ONCE, SHARES, STANDSTILL})
