"""The points at which `serve` can be observed, so that metrics cost nothing unless they are on."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from bellhop.ports.queue import Result
from bellhop.state.record import Entry


class Scraping(NamedTuple):
    """The address of the metrics, and the labels that they may have: cluster, profile."""

    host: str
    port: int
    labels: Collection[str] = ()


class Observer:
    """Ignores everything; used by many threads at once."""

    def noted(self, entry: Entry) -> None:
        """Observe a line of the event log."""

    def answered(self, status: int) -> None:
        """Observe an answer to a sender, by its HTTP status."""

    def settled(self, queue: str, result: Result) -> None:
        """Observe the result of a message."""
