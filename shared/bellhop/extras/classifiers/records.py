"""Results of classifiers, and their table: one record a cluster, for people and for the grace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from bellhop.errors import MissingError
from bellhop.ports.store import ABSENT, Item
from bellhop.state.table import SealedTable, Stored


class Classification(Struct, frozen=True):
    """The classifiers that a cluster satisfies, by name."""

    matching: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    """Those that cannot be evaluated yet; they change nothing."""
    leaving: Mapping[str, datetime] = {}
    """Those that still give labels and are not satisfied any more, since then."""
    lacks: Mapping[str, str] = {}
    """Labels that were not given, as `CLASSIFIER LABEL`, and why."""


class Classifications(SealedTable[Classification, str]):
    """Results of classifiers, by cluster; empty for one that no classifier evaluated.

    Of very many classifiers it lies apart. One that is lost is as if there were none.
    """

    kind = Classification
    partition, sort = "classified", "{cluster}"

    def get(self, cluster: str) -> Stored[Classification]:
        """Read the results of a cluster."""
        return super().get(cluster) or Stored(Classification(), ABSENT)

    def all(self) -> Iterator[tuple[str, Classification]]:
        """Yield clusters, by name, each with its results."""
        return ((cluster, kept.value) for cluster, kept in self.rows())

    def restore(self, *_: Item | MissingError) -> Classification:
        """Return no results."""
        return Classification()
