"""Whom a change of an object in a cluster concerns: who holds it, and who reads it.

Workloads read ConfigMaps and Secrets of their own cluster, templates anything of `mgmt/mgmt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellhop.core.gvk import Identity
from bellhop.state.dependency_index import TemplateDependency
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import Apply
from bellhop.state.records import Records

Who = tuple[str, str, str]
"""A profile's trigger, source cluster and name."""

_READ = frozenset({"ConfigMap", "Secret"})


def concerned(
    records: Records, cluster: str, key: Identity, *, held: bool = True, followed: bool = True
) -> Iterator[Apply]:
    """Yield what has each profile applied that an object concerns.

    One look each tells who holds it, or has workloads that read it, if its kind is `held`, and
    whose templates do, if it is `followed`.
    """
    if held:
        owner = records.owners.get(cluster, key)
        found = [(owner.value.trigger, owner.value.source, owner.value.profile)] if owner else []
        holders = [each for each in found if each[2]]
        for who in dict.fromkeys([*holders, *readers(records, cluster, [key])]):
            yield Apply(*who, cluster, touched=str(key))
    if followed and cluster == MANAGEMENT:
        yield from rereaders(records, [key])


def rereaders(records: Records, keys: Iterable[Identity]) -> Iterator[Apply]:
    """Yield what has all applied again that is rendered with some objects of `mgmt/mgmt`."""
    found = (each for key in keys for each in records.readers.of(key))
    yield from map(application, dict.fromkeys(found))


def application(reader: TemplateDependency) -> Apply:
    """Return what has a profile applied again that reads something in `mgmt/mgmt`."""
    return Apply(reader.trigger, reader.source, reader.profile, reader.destination)


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
