"""ClusterConfigurations: all that profiles deployed to one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bellhop.configuration.conditions import to_seconds
from bellhop.configuration.names import (
    CLUSTER_NAME_LABEL,
    CLUSTER_TYPE,
    CLUSTER_TYPE_LABEL,
    make_labels,
    name_content,
)
from bellhop.configuration.objects import (
    ClusterConfigurationStatus,
    ClusterProfileResources,
    DeployedChart,
    DeployedFeature,
    DeployedResource,
    FeatureId,
    ProfileResources,
    to_json,
)
from bellhop.configuration.summaries import API_VERSION
from bellhop.core.gvk import Identity
from bellhop.core.identity import profile_kind, profile_place
from bellhop.diagnosis.names import ProfileNames
from bellhop.diagnosis.releases import redact_url
from bellhop.installation import InstallationView
from bellhop.ports.kube import Manifest
from bellhop.state.deployment import Held

_FEATURES: tuple[FeatureId, ...] = ("Resources", "Helm", "Kustomize")


def make_configuration(here: InstallationView, cluster: str) -> Manifest | None:
    """Return the ClusterConfiguration of a cluster; None if it is not registered."""
    if cluster not in here.catalogs.known().clusters:
        return None
    names = ProfileNames(here)
    by_kind: dict[str, dict[str, tuple[DeployedFeature, ...]]] = {}
    for inventory in here.records.inventories.of(cluster):
        features = tuple(_list_features(inventory.held))
        if features:
            kind = profile_kind(inventory.profile)
            name = profile_place(names.shown(inventory.profile)).rpartition("/")[2]
            by_kind.setdefault(kind, {})[name] = features
    status = ClusterConfigurationStatus(
        cluster_profile_resources=tuple(
            ClusterProfileResources(cluster_profile_name=name, features=features)
            for name, features in sorted(by_kind.get("ClusterProfile", {}).items())
        ),
        profile_resources=tuple(
            ProfileResources(profile_name=name, features=features)
            for name, features in sorted(by_kind.get("Profile", {}).items())
        ),
    )
    namespace, _, name = cluster.partition("/")
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterConfiguration",
        "metadata": {
            "name": name_content(cluster),
            "namespace": namespace,
            "labels": make_labels({CLUSTER_NAME_LABEL: name, CLUSTER_TYPE_LABEL: CLUSTER_TYPE}),
        },
        "status": to_json(status),
    }


def _list_features(held: Mapping[Identity, Held]) -> Iterator[DeployedFeature]:
    """Yield the features with what they deployed; an object that is being applied is none yet."""
    for feature in _FEATURES:
        charts = tuple(_list_charts(held)) if feature == "Helm" else ()
        resources = tuple(
            DeployedResource(
                group=key.group,
                version=each.version,
                kind=key.kind,
                name=key.name,
                namespace=key.namespace,
                deployment_type="Local" if each.local else "Remote",
                last_applied_time=to_seconds(each.applied_at) if each.applied_at else None,
            )
            for key, each in sorted(held.items())
            if each.feature == feature and each.release is None and each.digest
        )
        if charts or resources:
            yield DeployedFeature(feature_id=feature, charts=charts, resources=resources)


def _list_charts(held: Mapping[Identity, Held]) -> Iterator[DeployedChart]:
    for key, each in sorted(held.items()):
        if each.release and not each.release.removed and each.applied_at:
            yield DeployedChart(
                repo_url=redact_url(each.release.repository),
                release_name=key.name,
                namespace=key.namespace,
                chart_version=each.release.version,
                last_applied_time=to_seconds(each.applied_at),
            )
