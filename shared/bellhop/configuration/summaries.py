"""ClusterSummaries and ClusterReports: a profile in each of its clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from bellhop.configuration.conditions import shorten, to_seconds
from bellhop.configuration.dry_run_objects import (
    ClusterReportSpec,
    ClusterReportStatus,
    ReleaseAction,
    ReleaseReport,
    ReportedResource,
    ResourceAction,
    ResourceReport,
)
from bellhop.configuration.names import (
    CLUSTER_TYPE,
    label_of_profile,
    make_hash,
    name_dry_run,
    name_summary,
)
from bellhop.configuration.objects import (
    ClusterSummarySpec,
    ClusterSummaryStatus,
    DeployedKinds,
    FeatureId,
    FeatureSummary,
    HelmReleaseSummary,
    Written,
    to_json,
)
from bellhop.configuration.profiles import SUSPENDED, Deployed, failure_of, feature_phase, latest
from bellhop.core.identity import profile_shown
from bellhop.diagnosis.profile_status import list_features
from bellhop.diagnosis.releases import redact_url
from bellhop.errors import ConflictError, DeniedError, WaitingError
from bellhop.installation import InstallationView
from bellhop.ports.kube import Manifest
from bellhop.rendering.allow_limits import OWN_NAMESPACE
from bellhop.state.chart import RELEASE, release_key
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.deployment import (
    Action,
    Change,
    DeploymentStatus,
    Ended,
    Held,
    Inventory,
)
from bellhop.state.profile import Profile

API_VERSION = "config.projectsveltos.io/v1beta1"
_LOCAL = "profile can only deploy resource in same namespace in the management cluster"
_PREFIXES = {
    ConflictError.code: "A conflict was detected while deploying resource: ",
    DeniedError.code: "a resource is forbidden: ",
}
"""By the reason; the API server's own words may be withheld, as they may quote a Secret."""

_FEATURES: tuple[FeatureId, ...] = ("Resources", "Helm", "Kustomize")
_DONE: dict[Action, ResourceAction] = {
    "Create": "Create",
    "Adopt": "Update",
    "Update": "Update",
    "Delete": "Delete",
    "No Action": "No Action",
    "Conflict": "Conflict",
    "Error": "Error",
}
_DONE_TO_RELEASES: dict[Action, ReleaseAction] = {
    "Create": "Install",
    "Adopt": "Upgrade",
    "Update": "Upgrade",
    "Delete": "Delete",
    "No Action": "No Action",
    "Conflict": "Conflict",
}


def make_summary(
    here: InstallationView,
    found: Deployed,
    cluster: str,
    spec: Mapping[str, Any],
    *,
    owner_uid: str = "",
) -> Manifest:
    """Return the ClusterSummary of a profile in a cluster.

    `spec` is that of the profile in force. With the UID of the profile's object it is owned by
    this: it is deleted with it.
    """
    profile, outcome = found.status.profile, found.by_cluster.get(cluster)
    kept = here.records.inventories.get(cluster, profile.name)
    inventory = kept.value if kept else Inventory(cluster, profile.name, {})
    namespace, _, name = cluster.partition("/")
    waits = outcome is not None and outcome.reason == WaitingError.code
    whole = ClusterSummaryStatus(
        dependencies=shorten(outcome.message) if outcome and waits else "",
        feature_summaries=tuple(_summarize_features(found, outcome, inventory)),
        deployed_gvks=tuple(
            DeployedKinds(feature_id=each, deployed_group_version_kind=kinds)
            for each in _FEATURES
            if (kinds := _list_kinds(inventory, each))
        ),
        helm_release_summaries=tuple(_summarize_releases(here, profile, inventory)),
        failure_message=shorten(profile.error) or (failure_of(outcome) if outcome else ""),
        next_reconcile_time=latest([outcome.retry_at]) if outcome else None,
        reconciliation_suspended=profile.paused,
        suspension_reason=SUSPENDED if profile.paused else "",
    )
    part = ClusterSummarySpec(
        cluster_namespace=namespace,
        cluster_name=name,
        cluster_type=CLUSTER_TYPE,
        cluster_profile_spec=dict(spec),
    )
    return make_object(
        "ClusterSummary",
        profile.shown,
        cluster,
        (name_summary(profile.shown, cluster), owner_uid),
        part,
        whole,
    )


def make_dry_run(
    here: InstallationView, found: Deployed, cluster: str, *, owner_uid: str = ""
) -> Manifest | None:
    """Return the ClusterReport of a profile's dry run; None if it was none, or not made yet."""
    profile, outcome = found.status.profile, found.by_cluster.get(cluster)
    kept = here.records.previews.get(cluster, profile.name)
    if kept is None or outcome is None or outcome.phase != "DryRun":
        return None
    inventories = here.records.inventories.get(cluster, profile.name)
    held = inventories.value.held if inventories else {}
    by_feature: dict[str, list[ResourceReport]] = {each: [] for each in _FEATURES}
    releases = []
    features = list_features(outcome)
    usual = features[0].feature if len(features) == 1 else "Resources"
    for change in kept.value.changes:
        if (change.key.group, change.key.kind) == (RELEASE.group, RELEASE.kind):
            releases.append(_report_release(change, held.get(change.key)))
            continue
        known = held.get(change.key)
        feature = known.feature if known else usual
        by_feature[feature].append(_report_resource(change, known))
    namespace, _, name = cluster.partition("/")
    status = ClusterReportStatus(
        release_reports=tuple(releases),
        resource_reports=tuple(by_feature["Resources"]),
        kustomize_resource_reports=tuple(by_feature["Kustomize"]),
        helm_resource_reports=tuple(by_feature["Helm"]),
    )
    return make_object(
        "ClusterReport",
        profile.shown,
        cluster,
        (name_dry_run(profile.shown, cluster), owner_uid),
        ClusterReportSpec(cluster_namespace=namespace, cluster_name=name),
        status,
    )


def make_object(
    kind: Literal["ClusterSummary", "ClusterReport"],
    profile: str,
    cluster: str,
    place: tuple[str, str],
    spec: Written,
    status: Written,
) -> Manifest:
    """Return an object of a profile in a cluster; `place` is its name, and its owner's UID."""
    name, owner_uid = place
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": cluster.partition("/")[0],
        "labels": label_of_profile(profile, cluster),
    }
    if owner_uid:
        owner_kind, _, _ = profile_shown(profile).partition("/")
        owner = {"kind": owner_kind, "name": profile.rpartition("/")[2], "uid": owner_uid}
        metadata["ownerReferences"] = [{"apiVersion": API_VERSION, **owner}]
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": metadata,
        "spec": to_json(spec),
        "status": to_json(status),
    }


def _summarize_features(
    found: Deployed, outcome: DeploymentStatus | None, inventory: Inventory
) -> Iterator[FeatureSummary]:
    """Yield the state of each feature that a profile has, or had, in a cluster."""
    profile = found.status.profile
    for own in list_features(outcome) if outcome else ():
        each = _add_local(found, own, inventory.cluster)
        feature = _feature_id(each)
        if outcome is None or feature is None:
            continue
        failed = each.phase.startswith("Failed")
        yield FeatureSummary(
            feature_id=feature,
            status=feature_phase(each.phase),
            hash=make_hash(profile.digest, feature) if each.phase == "Provisioned" else "",
            failure_reason=each.reason if failed else "",
            failure_message=_phrase_failure(each),
            consecutive_failures=max(outcome.failures, 1) if failed else 0,
            deployed_group_version_kind=_list_kinds(inventory, feature),
            last_applied_time=to_seconds(outcome.at) if each.phase == "Provisioned" else None,
        )


def _phrase_failure(ended: Ended) -> str:
    """Return the message of a feature in the words by which clients of Sveltos recognize it."""
    if ended.phase == "Provisioned":
        return ""
    if OWN_NAMESPACE in ended.message:
        return _LOCAL
    prefix = "" if ended.feature == "Helm" else _PREFIXES.get(ended.reason, "")
    return shorten(prefix + ended.message)


def _add_local(found: Deployed, own: Ended, cluster: str) -> Ended:
    """Return the state of a feature, with that of its Local parts in the management cluster."""
    hosted = found.by_cluster.get(MANAGEMENT)
    hosts = found.status.profile.hosting in ("alone", "beside") and cluster != MANAGEMENT
    if not (hosts and hosted and own.phase == "Provisioned"):
        return own
    local = next((each for each in list_features(hosted) if each.feature == own.feature), own)
    return own if local.phase == "Provisioned" else local


def _feature_id(ended: Ended) -> FeatureId | None:
    return next((each for each in _FEATURES if each == ended.feature), None)


def _list_kinds(inventory: Inventory, feature: FeatureId) -> tuple[str, ...]:
    """Return the kinds of a feature's objects as Sveltos writes them: KIND.VERSION.GROUP."""
    found = {
        f"{key.kind}.{held.version}.{key.group}"
        for key, held in inventory.held.items()
        if held.feature == feature and held.release is None
    }
    return tuple(sorted(found))


def _summarize_releases(
    here: InstallationView, profile: Profile, inventory: Inventory
) -> Iterator[HelmReleaseSummary]:
    """Yield the releases that a profile has in a cluster, and those that another one has."""
    for key, held in sorted(inventory.held.items()):
        if held.release is None or held.release.removed:
            continue
        yield HelmReleaseSummary(
            release_name=key.name,
            release_namespace=key.namespace,
            status="Managing",
            chart_name=held.release.chart,
            chart_version=held.release.version,
            repo_url=redact_url(held.release.repository),
            last_checked_time=to_seconds(held.applied_at) if held.applied_at else None,
        )
    for content in profile.contents:
        chart = content.chart
        if chart is None or chart.unwanted or "{{" in chart.release + chart.namespace:
            continue
        key = release_key(chart.namespace, chart.release)
        owner = here.records.owners.get(inventory.cluster, key)
        if key in inventory.held or owner is None or owner.value.profile in ("", profile.name):
            continue
        yield HelmReleaseSummary(
            release_name=chart.release,
            release_namespace=chart.namespace,
            status="Conflict",
            chart_name=chart.chart,
            chart_version=chart.version,
            repo_url=redact_url(chart.repository),
            conflict_message=f"{profile_shown(owner.value.profile)} has this release",
        )


def _report_resource(change: Change, held: Held | None) -> ResourceReport:
    resource = ReportedResource(
        group=change.key.group,
        version=held.version if held else "",
        kind=change.key.kind,
        name=change.key.name,
        namespace=change.key.namespace,
        last_applied_time=latest([held.applied_at]) if held else None,
    )
    return ResourceReport(
        resource=resource, action=_DONE[change.action], message=_describe_change(change)
    )


def _report_release(change: Change, held: Held | None) -> ReleaseReport:
    version = held.release.version if held and held.release else ""
    return ReleaseReport(
        chart_name=change.key.name,
        release_namespace=change.key.namespace,
        chart_version=version,
        action=_DONE_TO_RELEASES.get(change.action),
        message=_describe_change(change),
    )


def _describe_change(change: Change) -> str:
    return shorten("\n".join(filter(None, (change.message, change.diff))))


def list_clusters(found: Deployed, cluster: str = "") -> Sequence[str]:
    """Return the clusters of a profile, or only one of them."""
    return [each for each in found.clusters if cluster in ("", each)]
