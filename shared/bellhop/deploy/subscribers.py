"""Profiles that a change of an object in a cluster affects: its owner, and those that read it.

Workloads read ConfigMaps and Secrets of their own cluster, templates anything of `mgmt/mgmt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellhop.core.gvk import Identity
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.deployment import TemplateDependency
from bellhop.state.messages import Apply
from bellhop.state.records import Records

Who = tuple[str, str, str]
"""A profile's trigger, source cluster and name."""

_READ = frozenset({"ConfigMap", "Secret"})


def is_mounted(key: Identity) -> bool:
    """Say whether an object is one that pods may read."""
    return key.group == "" and key.kind in _READ


def list_affected(
    records: Records, cluster: str, key: Identity, *, held: bool = True, followed: bool = True
) -> Iterator[Apply]:
    """Yield the messages that apply each profile that an object affects.

    Owners and workloads are read if its kind is `held`, and templates if it is `followed`.
    """
    if held:
        owner = records.owners.get(cluster, key)
        found = [(owner.value.trigger, owner.value.source, owner.value.profile)] if owner else []
        holders = [each for each in found if each[2]]
        for who in dict.fromkeys([*holders, *list_workload_readers(records, cluster, [key])]):
            yield Apply(*who, cluster, touched=str(key))
    if followed and cluster == MANAGEMENT:
        yield from list_template_dependents(records, [key])


def list_template_dependents(records: Records, keys: Iterable[Identity]) -> Iterator[Apply]:
    """Yield what has all applied again that is rendered with some objects of `mgmt/mgmt`."""
    found = (each for key in keys for each in records.readers.of(key))
    yield from map(make_application, dict.fromkeys(found))


def make_application(reader: TemplateDependency) -> Apply:
    """Return what has a profile applied again that reads something in `mgmt/mgmt`."""
    return Apply(reader.trigger, reader.source, reader.profile, reader.destination)


def list_workload_readers(
    records: Records, cluster: str, keys: Iterable[Identity]
) -> Iterator[Who]:
    """Yield the profiles whose workloads read some of these objects, and restart when they change.

    If workloads read nothing in the cluster, one query says so for any number of objects.
    """
    read = list(filter(is_mounted, keys))
    if len(read) > 1 and not records.mounts.has_any(cluster):
        return
    for key in read:
        for each in records.mounts.of(cluster, key):
            yield each.trigger, each.source, each.profile
