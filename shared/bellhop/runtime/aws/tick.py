"""Ticks of EventBridge Scheduler, and Terraform's question before it destroys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bellhop.runtime.aws.resources import Resources, from_environment
from bellhop.runtime.cloud.due import Due
from bellhop.runtime.cloud.ready import Ready
from bellhop.runtime.cloud.tick import Ticker


class Tick:
    """The handler of the schedule function."""

    def __init__(
        self, make: Callable[[Resources], Due], opening: Callable[[], Resources] = from_environment
    ) -> None:
        ready = Ready(make, opening)
        self._ticker = Ticker(ready)

    def __call__(self, event: Mapping[str, Any], _context: object) -> dict[str, Any]:
        """Do what is due; return how much that was.

        Raises:
            PermanentError: Terraform is about to destroy what clusters are registered in.
        """
        return self._ticker.tick(event)
