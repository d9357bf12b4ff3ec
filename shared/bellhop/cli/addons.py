"""What is deployed where, and what is in use: the inventories, in sveltosctl's words."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.cli.output import Row
from bellhop.fleet.installation import Installation
from bellhop.fleet.titled import Titled


def addons(here: Installation, namespace: str, key: str, profile: str) -> Iterator[Row]:
    """Yield one row for each object that a profile holds; what is empty asks nothing."""
    titled = Titled(here)
    for cluster in here.catalogs.current().clusters.values():
        if namespace not in ("", cluster.namespace) or key not in ("", cluster.key):
            continue
        for inventory in here.records.inventories.of(cluster.key):
            if profile not in ("", inventory.profile):
                continue
            for identity, held in inventory.held.items():
                yield {
                    "cluster": cluster.key,
                    "resourceType": f"{identity.group}:{identity.kind}",
                    "namespace": identity.namespace,
                    "name": identity.name,
                    "version": "N/A",
                    "time": held.applied_at,
                    "deploymentType": "Management cluster" if held.local else "Managed cluster",
                    "profiles": [titled.with_kind(inventory.profile)],
                    "from": held.ref,
                }


def usage(here: Installation, kind: str, namespace: str, name: str) -> Iterator[Row]:
    """Yield one row for each profile, ConfigMap and Secret of which something is in a cluster."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in addons(here, "", "", ""):
        for ref in {*row["profiles"], row["from"]}:
            found.setdefault(_named(ref), {})[row["cluster"]] = None
    for used, clusters in sorted(found.items()):
        asked = zip((kind.lower(), namespace, name), (used[0].lower(), *used[1:]), strict=True)
        if all(wanted in ("", there) for wanted, there in asked):
            shown = dict(zip(("kind", "namespace", "name"), used, strict=True))
            yield {**shown, "clusters": list(clusters)}


def _named(ref: str) -> tuple[str, str, str]:
    """Read `ClusterProfile/NAME`, `Profile/NAMESPACE/NAME`, or `ConfigMap NAMESPACE/NAME`."""
    kind, space, place = ref.partition(" ")
    if not space:
        kind, _, place = ref.partition("/")
    namespace, _, name = place.rpartition("/")
    return kind, namespace, name
