"""Add-ons in clusters, their users, and the objects that sources match, in sveltosctl's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct

from bellhop.api.names import asker, health_check_of
from bellhop.cli.output import Row
from bellhop.core.gvk import Identity
from bellhop.diagnosis.names import ProfileNames
from bellhop.diagnosis.redaction import hide_values
from bellhop.diagnosis.releases import describe_origin
from bellhop.diagnosis.source_status import (
    has_aggregation,
    read_object,
    read_report,
    read_selection,
)
from bellhop.extras.health.state import MESSAGE, STATE, counting
from bellhop.installation import Installation
from bellhop.state.content import ref_parts
from bellhop.state.deployment import Held
from bellhop.state.match import Match, Selection

CHART = "helm chart"
"""The resource type of a release, as sveltosctl has it."""


class AddOnFilter(NamedTuple):
    """Conditions on add-ons; an empty one matches all.

    `charts` selects Helm charts only, or none; `parts` adds the objects of charts.
    """

    namespace: str = ""
    cluster: str = ""
    profile: str = ""
    charts: bool | None = None
    parts: bool = False

    def takes(self, held: Held) -> bool:
        if held.release and held.release.removed:
            return False
        return self.charts in (None, held.of_chart) and (self.parts or not held.part_of)


def list_addons(here: Installation, criteria: AddOnFilter) -> Iterator[Row]:
    """Yield one row for each object that a profile owns, and for each release of a chart."""
    titled = ProfileNames(here)
    phases: dict[str, dict[str, str]] = {}
    for cluster, profile, identity, held in _list_held(here, criteria):
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
            "from": describe_origin(held) or held.ref,
            "state": phases[cluster].get(profile, "Provisioning"),
        }


def list_usage(here: Installation, kind: str, namespace: str, name: str) -> Iterator[Row]:
    """Yield one row for each profile, ConfigMap and Secret with objects in a cluster."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    titled = ProfileNames(here)
    for cluster, profile, _, held in _list_held(here, AddOnFilter()):
        for ref in {titled.with_kind(profile), *([] if held.of_chart else [held.ref])}:
            found.setdefault(_read_reference(ref), {})[cluster] = None
    for used, clusters in sorted(found.items()):
        asked = zip((kind.lower(), namespace, name), (used[0].lower(), *used[1:]), strict=True)
        if all(criteria in ("", there) for criteria, there in asked):
            shown = dict(zip(("kind", "namespace", "name"), used, strict=True))
            yield {**shown, "clusters": list(clusters)}


def _list_held(
    here: Installation, criteria: AddOnFilter
) -> Iterator[tuple[str, str, Identity, Held]]:
    """Yield the owned objects that match, with their cluster and profile."""
    for cluster in here.catalogs.current().clusters.values():
        asked = zip(criteria[:2], (cluster.namespace, cluster.key), strict=True)
        if not all(each in ("", there) for each, there in asked):
            continue
        for inventory in here.records.inventories.of(cluster.key):
            if criteria.profile in ("", inventory.profile):
                yield from (
                    (cluster.key, inventory.profile, identity, held)
                    for identity, held in inventory.held.items()
                    if criteria.takes(held)
                )


def _read_reference(ref: str) -> tuple[str, str, str]:
    """Read `ClusterProfile/NAME`, `Profile/NAMESPACE/NAME`, or the text of a ref."""
    if " " in ref or "://" in ref:
        return ref_parts(ref)
    kind, _, place = ref.partition("/")
    namespace, _, name = place.rpartition("/")
    return kind, namespace, name


class ObjectFilter(Struct, frozen=True):
    """Conditions on matches; an empty one matches all."""

    cluster_namespace: str
    cluster: str
    group: str
    kind: str
    namespace: str

    def takes(self, match: Match) -> bool:
        key = match.key
        return (
            match.matching
            and self.group in ("", key.gvk.group)
            and self.kind.lower() in ("", key.gvk.kind.lower())
            and self.namespace in ("", key.namespace)
        )


def list_resources(here: Installation, criteria: ObjectFilter) -> Iterator[Row]:
    """Yield one row for each object that matches a source, or is unhealthy."""
    for match in _select_matches(here, criteria):
        yield {
            "cluster": match.cluster,
            "gvk": str(match.key.gvk),
            "namespace": match.key.namespace,
            "name": match.key.name,
            "message": match.message,
        }


def list_resource_manifests(
    here: Installation, criteria: ObjectFilter
) -> Iterator[Mapping[str, Any]]:
    """Yield the objects themselves, each once, without values of Secrets."""
    seen = set()
    for match in _select_matches(here, criteria):
        if (match.cluster, match.key) in seen:
            continue
        seen.add((match.cluster, match.key))
        manifest = read_object(here, match)
        if manifest is not None:
            yield hide_values(manifest)


def _select_matches(here: Installation, criteria: ObjectFilter) -> Iterator[Match]:
    for cluster in here.records.clusters.all():
        asked = criteria.cluster in ("", cluster.key)
        if asked and criteria.cluster_namespace in ("", cluster.namespace):
            yield from filter(criteria.takes, _list_matches(here, cluster.key))


def _list_matches(here: Installation, cluster: str) -> Iterator[Match]:
    """Yield matches by source; of a source that aggregates, those that its script selected."""
    for source, found in groupby(here.records.matches.of(cluster), attrgetter("source")):
        if not has_aggregation(here, source) and not asker(source):
            yield from found
    for source in here.catalogs.known().sources_in(cluster):
        if has_aggregation(here, source) and not asker(source):
            yield from read_report(here, cluster, source).matching
        if health_check_of(source):
            yield from _list_unhealthy(here, cluster, source)


def _list_unhealthy(here: Installation, cluster: str, source: str) -> Iterator[Match]:
    """Yield the objects that a health check finds unhealthy, with state and message."""
    found = read_selection(here, cluster, source)
    check = here.catalogs.known().health_checks.get(health_check_of(source))
    if not isinstance(found, Selection) or check is None:
        return
    for each in counting(found, check.patience, here.records.clock.now()):
        said = ": ".join(filter(None, (each.manifest.get(part) for part in (STATE, MESSAGE))))
        yield Match(
            cluster,
            source,
            each.key,
            matching=True,
            digest=each.digest,
            since=each.since,
            message=said,
        )
