"""Whom a change of an object in a cluster concerns: who holds it, and whose workloads read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellhop.model.gvk import Identity
from bellhop.records import Records

Who = tuple[str, str, str]
"""A profile's trigger, source cluster and name."""

_READ = frozenset({"ConfigMap", "Secret"})


def concerned(records: Records, cluster: str, key: Identity) -> Iterator[Who]:
    """Yield each profile once that holds an object, or has workloads that read it."""
    owner = records.owners.get(cluster, key)
    found = [(owner.value.trigger, owner.value.source, owner.value.profile)] if owner else []
    holders = [each for each in found if each[2]]
    yield from dict.fromkeys([*holders, *readers(records, cluster, [key])])


def readers(records: Records, cluster: str, keys: Iterable[Identity]) -> Iterator[Who]:
    """Yield the profiles whose workloads read some of these objects, and restart when they change.

    Where nothing in the cluster is read, one look says so for any number of objects.
    """
    read = [key for key in keys if key.group == "" and key.kind in _READ]
    if len(read) > 1 and not records.mounts.has_any(cluster):
        return
    for key in read:
        for each in records.mounts.of(cluster, key):
            yield each.trigger, each.source, each.profile
