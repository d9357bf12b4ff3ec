"""The objects and Helm releases that a removal of add-ons would delete, cluster by cluster.

They are read from the inventories, as dry runs call no cluster. What stays is not among them:
objects that were adopted, and those that another profile waits for, which are handed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from bellhop.core.gvk import Identity
from bellhop.diagnosis.overview import object_name
from bellhop.errors import ConflictError
from bellhop.events.transfer import Foreseen
from bellhop.installation.installation import Installation
from bellhop.state.record import Held

OBJECTS = 20
"""Objects that are named for each cluster."""

CLUSTERS = 10
"""Clusters of which objects are named."""


class RemovedObjects(NamedTuple):
    """The first objects and releases that a cluster would lose, and how many more there are."""

    cluster: str
    names: tuple[str, ...]
    more: int


def removed_objects(
    here: Installation, addons: Mapping[str, Iterable[str]]
) -> Iterator[RemovedObjects]:
    """Yield what add-ons, profiles by cluster, own in the first clusters that have any of it."""
    for cluster in sorted(addons)[:CLUSTERS]:
        names = sorted(_names(here, cluster, addons[cluster]))
        if names:
            yield RemovedObjects(cluster, tuple(names[:OBJECTS]), len(names[OBJECTS:]))


def _names(here: Installation, cluster: str, profiles: Iterable[str]) -> Iterator[str]:
    # Only a profile in conflict waits for objects: without one, no owner has to be read.
    conflicts = any(each.reason == ConflictError.code for each in here.records.outcomes.of(cluster))
    foreseen = Foreseen(here.records)
    kept = filter(None, (here.records.inventories.get(cluster, each) for each in profiles))
    for key, held in chain.from_iterable(each.value.held.items() for each in kept):
        if not (_stays(held) or (conflicts and foreseen.hands_over(cluster, key))):
            yield _name(key, held)


def _stays(held: Held) -> bool:
    """Return whether an object stays, is not there, or goes with the release that it is part of."""
    adopted = bool(held.adopted and held.uid)
    return adopted or bool(held.part_of) or bool(held.release and held.release.removed)


def _name(key: Identity, held: Held) -> str:
    return f"release {key.namespace}/{key.name}" if held.release else object_name(key)
