"""How long after a hint the first look comes: about as long as this API server takes to store.

A look that comes too early is made in vain, and the next one is late; how early that is depends on
the disks of etcd, which take one millisecond here and ten elsewhere. So each look that finds the
write stored makes the wait a little shorter, each that came too early makes it longer by so much
more that about one of ten comes too early.
"""

from __future__ import annotations

BEGIN = 0.003
"""Seconds, before anything is known of an API server."""

SHORTEST, LONGEST = 0.001, 0.02

_SHORTER, _LONGER = 0.98, 1.2
# What is found later than so has waited for something else than being stored: another webhook.
_AT_MOST_LOOKS = 3


class ReadDelay:
    """The wait for one API server's writes."""

    def __init__(self) -> None:
        self.seconds = BEGIN

    def found(self, looks: int) -> None:
        """Note that a write was found stored after so many looks that came too early."""
        if looks <= _AT_MOST_LOOKS:
            seconds = self.seconds * (_LONGER if looks else _SHORTER)
            self.seconds = min(LONGEST, max(SHORTEST, seconds))
