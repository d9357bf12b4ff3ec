"""What is deployed where: the inventories of all clusters, in sveltosctl's words."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.cli.output import Row
from bellhop.fleet.installation import Installation


def addons(here: Installation, namespace: str, name: str, profile: str) -> Iterator[Row]:
    """Yield one row for each object that a profile holds; what is empty asks nothing."""
    for cluster in here.catalogs.current().clusters.values():
        if namespace not in ("", cluster.namespace) or name not in ("", cluster.name):
            continue
        for inventory in here.records.inventories.of(cluster.key):
            if profile not in ("", inventory.profile):
                continue
            for key, held in inventory.held.items():
                yield {
                    "cluster": cluster.key,
                    "resourceType": f"{key.group}:{key.kind}",
                    "namespace": key.namespace,
                    "name": key.name,
                    "version": "N/A",
                    "time": held.applied_at,
                    "deploymentType": "Managed cluster",
                    "profiles": [f"ClusterProfile/{inventory.profile}"],
                    "from": held.ref,
                }
