"""Namespaces to which the webhook for ConfigMaps and Secrets of the configuration is limited.

    rules name namespaces, SveltosClusters are in some ─► the webhook is called for these only
    a name is a template, or they are too many         ─► it is called for all

A manifest may name a namespace before the webhook has it, and a change there is reported by
nobody. So a resync follows, which writes the webhook first and then reads what is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

from bellhop.api.kinds import CLUSTER, PolicyRef
from bellhop.catalog.catalog import Catalog
from bellhop.core.names import is_template
from bellhop.declarations.diff import HOLDERS
from bellhop.declarations.references import list_refs
from bellhop.state.messages import Resync
from bellhop.state.records import Records

MOST = 100
"""Namespaces of one webhook."""

_FIRST_WITH_NAMES = (1, 22)
"""Kubernetes in which each namespace has its name as a label, which nobody can switch off."""

_SETTLE = timedelta(seconds=2)
"""Time in which changes count as one."""


def find_namespaces(records: Records, catalog: Catalog) -> frozenset[str] | None:
    """Return the namespaces whose ConfigMaps and Secrets count; None if those of all may."""
    if not _has_names(catalog):
        return None
    named = _list_namespaces(list_refs(catalog))
    clusters = records.configured.rows(CLUSTER.kind)
    found = {*(named or ()), *(place.partition("/")[0] for place, _ in clusters)}
    return frozenset(found) if named is not None and len(found) <= MOST else None


def widens(catalog: Catalog, refs: Iterable[PolicyRef]) -> bool:
    """Return whether refs that are new to a catalog may name a namespace that the webhook lacks."""
    new, known = _list_namespaces(refs), _list_namespaces(list_refs(catalog))
    return _has_names(catalog) and known is not None and (new is None or not new <= known)


def is_first(records: Records, catalog: Catalog, namespace: str) -> bool:
    """Return whether no SveltosCluster was in a namespace until now."""
    there = records.configured.rows(CLUSTER.kind, prefix=f"{namespace}/", limit=1)
    return _has_names(catalog) and not any(True for _ in there)


def resync_soon(records: Records, catalog: Catalog) -> None:
    """Have the hub resynced, once for all changes of a moment."""
    body, now = Resync(catalog.configuration).message().body, records.clock.now()
    records.timers.set_by("configured/namespaces", now + _SETTLE, body, now=now)


def _list_namespaces(refs: Iterable[PolicyRef]) -> frozenset[str] | None:
    """Return the namespaces of refs; None if one is a template, or is that of each cluster."""
    found = {ref.namespace for ref in refs if ref.kind in HOLDERS}
    return None if any(not each or is_template(each) for each in found) else frozenset(found)


def _has_names(catalog: Catalog) -> bool:
    """Return whether the hub has a webhook that can be limited; of an unknown version it cannot."""
    hub = catalog.clusters[catalog.configuration]
    found = re.match(r"v?(\d+)\.(\d+)", hub.kubernetes)
    version = tuple(map(int, found.groups())) if found else (0, 0)
    return bool(hub.forwarder) and version >= _FIRST_WITH_NAMES
