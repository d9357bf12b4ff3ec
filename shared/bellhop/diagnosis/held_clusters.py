"""Clusters whose deregistration the deletion guard holds, since too many objects were deleted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.api.kinds import CLUSTER
from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis.condition import Condition, failure
from bellhop.installation import Installation
from bellhop.state.concurrency import until_written
from bellhop.state.messages import ReadBack


class HeldClusters(NamedTuple):
    """The clusters of one change; `why` names the command that releases it."""

    name: str
    why: str
    since: datetime
    clusters: tuple[str, ...]


def list_held_clusters(here: Installation) -> list[HeldClusters]:
    """Return the changes that would deregister clusters, the oldest first."""
    changes: dict[str, HeldClusters] = {}
    for cluster, kept in here.records.configured.rows(CLUSTER.kind):
        found = kept.value
        if found.change:
            new = HeldClusters(found.change, found.message, found.at, ())
            held = changes.get(found.change, new)
            since, clusters = min(held.since, found.at), (*held.clusters, cluster)
            changes[found.change] = held._replace(since=since, clusters=clusters)
    return sorted(changes.values(), key=lambda each: each.since)


def list_conditions(here: Installation) -> Iterator[Condition]:
    """Yield the changes of which clusters are held."""
    for each in list_held_clusters(here):
        number = len(each.clusters)
        yield failure("held", f"change {each.name}", each.why, since=each.since, count=number)


@until_written("release change '{change}'")
def release_clusters(here: Installation, change: str) -> list[str]:
    """Have the held clusters of a change deregistered; return them, or nothing if none is held.

    If it is killed, the next resync has those deregistered that it has released.
    """
    rows = list(here.records.configured.rows(CLUSTER.kind))
    found = [(cluster, kept) for cluster, kept in rows if kept.value.change == change]
    hub = here.catalogs.known().configuration
    for cluster, kept in found:
        namespace, _, name = cluster.partition("/")
        released = replace(kept.value, change="", message="it is being deregistered")
        here.records.configured.put(CLUSTER.kind, namespace, name, released, expect=kept.token)
        key = ObjectKey(CLUSTER, namespace, name)
        here.publisher.publish([ReadBack(hub, str(key), "", 0)])
    return [cluster for cluster, _ in found]
