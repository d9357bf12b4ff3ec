"""What each tick of an installation's timer does."""

from __future__ import annotations

from bellhop import __version__
from bellhop.cloud.resources import Resources
from bellhop.records.catalogs import Catalogs
from bellhop.stages.declare import Declare
from bellhop.stages.schedule import Schedule


class Due:
    """What the schedule publishes, and declarations that somebody began and abandoned."""

    def __init__(self, here: Resources) -> None:
        records, publisher, settings = here.records, here.publisher, here.settings
        self._records = records
        self._schedule = Schedule(records, publisher, settings, here.log)
        self._declare = Declare(records, Catalogs(records), publisher, settings)

    def tick(self) -> int:
        """Do what is due by now; return how many messages that were."""
        published = self._schedule.tick()
        self._declare.resume()
        self._records.pulses.tick(self._records.clock.now(), __version__)
        return published
