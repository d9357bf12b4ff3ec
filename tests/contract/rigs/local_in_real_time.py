"""The embedded mode's queue by the machine's clock, as a provider whose clock nobody moves."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import ClassVar

from bellhop.adapters.local.clock import SystemClock
from tests.contract import courtesies
from tests.contract.rigs import local


class Rig(local.Rig):
    """Time passes by itself, and `pass_time` waits for it."""

    ports: ClassVar[frozenset[str]] = frozenset({"queue", "consumer", "dead letters"})
    courtesies: ClassVar[frozenset[str]] = courtesies.ALL - {courtesies.STANDSTILL}
    unit: ClassVar[timedelta] = timedelta(seconds=0.25)

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.clock = SystemClock()

    def pass_time(self, units: float) -> None:
        time.sleep(self.span(units).total_seconds())
