"""What is deployed where, and what is in use: the inventories, in sveltosctl's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bellhop.cli.output import Row
from bellhop.core.gvk import Identity
from bellhop.diagnosis.names import Titled
from bellhop.diagnosis.releases import origin
from bellhop.installation.installation import Installation
from bellhop.state.file_ref import ref_parts
from bellhop.state.record import Held

CHART = "helm chart"
"""The resource type of a release, as sveltosctl has it."""


class Wanted(NamedTuple):
    """Which add-ons are asked for; what is empty asks nothing.

    `charts` asks for Helm charts only, or for none; `parts` for what these consist of, too.
    """

    namespace: str = ""
    cluster: str = ""
    profile: str = ""
    charts: bool | None = None
    parts: bool = False

    def takes(self, held: Held) -> bool:
        """Say whether an object is listed."""
        if held.release and held.release.removed:
            return False
        return self.charts in (None, held.of_chart) and (self.parts or not held.part_of)


def addons(here: Installation, wanted: Wanted) -> Iterator[Row]:
    """Yield one row for each object that a profile holds, and for each release of a chart."""
    titled = Titled(here)
    phases: dict[str, dict[str, str]] = {}
    for cluster, profile, identity, held in _held(here, wanted):
        if cluster not in phases:
            phases[cluster] = {
                each.profile: each.phase for each in here.records.outcomes.of(cluster)
            }
        yield {
            "cluster": cluster,
            "resourceType": CHART if held.release else f"{identity.group}:{identity.kind}",
            "namespace": identity.namespace,
            "name": identity.name,
            "version": (held.release.version if held.release else "") or "N/A",
            "time": held.applied_at,
            "deploymentType": "Management cluster" if held.local else "Managed cluster",
            "profiles": [titled.with_kind(profile)],
            "from": origin(held) or held.ref,
            "state": phases[cluster].get(profile, "Provisioning"),
        }


def usage(here: Installation, kind: str, namespace: str, name: str) -> Iterator[Row]:
    """Yield one row for each profile, ConfigMap and Secret of which something is in a cluster."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    titled = Titled(here)
    for cluster, profile, _, held in _held(here, Wanted()):
        for ref in {titled.with_kind(profile), *([] if held.of_chart else [held.ref])}:
            found.setdefault(_named(ref), {})[cluster] = None
    for used, clusters in sorted(found.items()):
        asked = zip((kind.lower(), namespace, name), (used[0].lower(), *used[1:]), strict=True)
        if all(wanted in ("", there) for wanted, there in asked):
            shown = dict(zip(("kind", "namespace", "name"), used, strict=True))
            yield {**shown, "clusters": list(clusters)}


def _held(here: Installation, wanted: Wanted) -> Iterator[tuple[str, str, Identity, Held]]:
    """Yield what is wanted of what profiles hold, with the cluster and the profile."""
    for cluster in here.catalogs.current().clusters.values():
        asked = zip(wanted[:2], (cluster.namespace, cluster.key), strict=True)
        if not all(each in ("", there) for each, there in asked):
            continue
        for inventory in here.records.inventories.of(cluster.key):
            if wanted.profile in ("", inventory.profile):
                yield from (
                    (cluster.key, inventory.profile, identity, held)
                    for identity, held in inventory.held.items()
                    if wanted.takes(held)
                )


def _named(ref: str) -> tuple[str, str, str]:
    """Read `ClusterProfile/NAME`, `Profile/NAMESPACE/NAME`, or what a ref is called."""
    if " " in ref or "://" in ref:
        return ref_parts(ref)
    kind, _, place = ref.partition("/")
    namespace, _, name = place.rpartition("/")
    return kind, namespace, name
