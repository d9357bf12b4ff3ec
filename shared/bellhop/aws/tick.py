"""Ticks of EventBridge Scheduler, for what publishes what is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from bellhop.aws.resources import Open, Ready, Resources, from_environment
from bellhop.logs import Log


class Due(Protocol):
    """Does what is due by now."""

    def tick(self) -> int:
        """Return how much that was."""
        ...


class Tick:
    """The handler of the schedule function; what it was told with a tick does not matter.

    A tick that comes twice, or at once with another, publishes a message twice at worst; one that
    is lost is made good by the next. One that fails says so to AWS, which counts it and tries
    again.
    """

    def __init__(self, make: Callable[[Resources], Due], opening: Open = from_environment) -> None:
        self._ready = Ready(make, opening)

    def __call__(self, _event: Mapping[str, Any], _context: object) -> dict[str, Any]:
        """Do what is due; return how much that was."""
        try:
            here, due = self._ready.get()
            done = due.tick()
        except Exception as error:
            Log().error("Cannot do what is due", error)
            raise
        if done:
            here.log.info("Published what is due", messages=done)
        here.end()
        return {"published": done}
