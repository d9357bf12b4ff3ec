"""Objects and statuses that Bellhop writes into the configuration cluster, as Sveltos names them.

A field that is empty is left out. `definitions` makes the schemas of custom resources of these
types, so that nothing is written that a definition does not have. Field names are those of Sveltos
v1.14; `observedGeneration` and `conditions` are Bellhop's, as kstatus defines them.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.json import encode

FeatureStatus = Literal[
    "Provisioning",
    "Provisioned",
    "Failed",
    "FailedNonRetriable",
    "Removing",
    "Removed",
    "AgentRemoving",
]
FeatureId = Literal["Resources", "Helm", "Kustomize"]
ReportPhase = Literal["WaitingForDelivery", "Delivering", "Processed"]
Bytes = Annotated[str, Meta(extra_json_schema={"format": "byte"})]
ExistingObject = Annotated[
    dict[str, Any], Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})
]


class Written(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A part of an object that is written."""


def to_json(value: Written) -> dict[str, Any]:
    """Return a part of an object as JSON has it."""
    written: dict[str, Any] = json.loads(encode(value))
    return written


class ObjectReference(Written, frozen=True):
    """A reference to an object, as the core API has it."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    field_path: str = ""
    resource_version: str = ""
    uid: str = ""


class Condition(Written, frozen=True):
    """A condition, as metav1.Condition."""

    type: Annotated[str, Meta(min_length=1)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(min_length=1)]
    message: str
    last_transition_time: datetime
    observed_generation: int = 0


class Observed(Written, frozen=True):
    """The fields by which kstatus finds out whether an object is in force."""

    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


# Clusters of rules -------------------------------------------------------------------------------


class ClusterInfo(Written, frozen=True):
    """The state of one rule in one cluster."""

    cluster: ObjectReference
    hash: Bytes
    status: FeatureStatus | None = None
    failure_message: str = ""


class EventTriggerStatus(Observed, frozen=True):
    """Status of an EventTrigger."""

    matching_clusters: tuple[ObjectReference, ...] = ()
    destination_matching_cluster_refs: tuple[ObjectReference, ...] = ()
    cluster_info: tuple[ClusterInfo, ...] = ()


class ClusterSetStatus(Observed, frozen=True):
    """Status of a ClusterSet or a Set."""

    matching_cluster_refs: tuple[ObjectReference, ...] = ()
    selected_cluster_refs: tuple[ObjectReference, ...] = ()


class RoleRequestStatus(Observed, frozen=True):
    """Status of a RoleRequest."""

    matching_clusters: tuple[ObjectReference, ...] = ()
    cluster_info: tuple[ClusterInfo, ...] = ()
    failure_message: str = ""


class UnmanagedLabel(Written, frozen=True):
    """A label that a classifier does not manage, since another one does."""

    key: str
    failure_message: str = ""


class ClassifiedCluster(Written, frozen=True):
    """The labels of a cluster that a classifier manages."""

    cluster_ref: ObjectReference
    managed_labels: tuple[str, ...] = ()
    un_managed_labels: tuple[UnmanagedLabel, ...] = ()


class ClassifierStatus(Observed, frozen=True):
    """Status of a Classifier; Sveltos misspells one field."""

    cluster_info: tuple[ClusterInfo, ...] = ()
    matching_clusters: tuple[ClassifiedCluster, ...] = field(
        default=(), name="machingClusterStatuses"
    )


class HealthCondition(Written, frozen=True):
    """The result of one liveness check in one cluster."""

    name: str
    type: str
    status: str
    last_transition_time: datetime
    severity: str = ""
    reason: str = ""
    message: str = ""


class NotificationSummary(Written, frozen=True):
    """The delivery of a notification."""

    name: str
    status: Literal["Delivered", "FailedToDeliver"]
    failure_message: str = ""


class ClusterCondition(Written, frozen=True):
    """The health of one cluster."""

    cluster_info: ClusterInfo
    conditions: tuple[HealthCondition, ...] = ()
    notification_summaries: tuple[NotificationSummary, ...] = ()


class ClusterHealthCheckStatus(Observed, frozen=True):
    """Status of a ClusterHealthCheck."""

    matching_clusters: tuple[ObjectReference, ...] = ()
    cluster_condition: tuple[ClusterCondition, ...] = ()


# Profiles ----------------------------------------------------------------------------------------


class ClusterList(Written, frozen=True):
    """Clusters that are at one revision of a profile."""

    hash: Bytes = ""
    clusters: tuple[ObjectReference, ...] = ()


class FailedCluster(Written, frozen=True):
    """A cluster in which a profile failed."""

    cluster_ref: ObjectReference
    failure_message: str
    last_failure_time: datetime | None = None


class ProfileStatus(Observed, frozen=True):
    """Status of a ClusterProfile or a Profile."""

    matching_clusters: tuple[ObjectReference, ...] = ()
    updating_clusters: ClusterList | None = None
    updated_clusters: ClusterList | None = None
    failed_clusters: tuple[FailedCluster, ...] = ()
    dependencies_hash: Bytes = ""
    reconciliation_suspended: bool = False
    suspension_reason: str = ""


class FeatureSummary(Written, frozen=True):
    """The state of one feature of a profile in one cluster."""

    feature_id: FeatureId = field(name="featureID")
    status: FeatureStatus | None = None
    hash: Bytes = ""
    failure_reason: str = ""
    failure_message: str = ""
    consecutive_failures: int = 0
    deployed_group_version_kind: tuple[str, ...] = ()
    last_applied_time: datetime | None = None
    resource_summary_deployed: bool = False


class SecretReference(Written, frozen=True):
    """A reference to a Secret."""

    name: str = ""
    namespace: str = ""


class HelmReleaseSummary(Written, frozen=True):
    """The state of one release of a profile in one cluster."""

    release_name: Annotated[str, Meta(min_length=1)]
    release_namespace: Annotated[str, Meta(min_length=1)]
    status: Literal["Managing", "Conflict"]
    chart_name: str = ""
    chart_version: str = ""
    repository_name: str = ""
    repo_url: str = field(default="", name="repoURL")
    credentials_secret_ref: SecretReference | None = None
    conflict_message: str = ""
    failure_message: str = ""
    last_checked_time: datetime | None = None
    latest_patch_version: str = ""
    latest_version: str = ""
    needs_redeploy: bool = False
    patches_hash: Bytes = ""
    values_hash: Bytes = ""


class DeployedKinds(Written, frozen=True):
    """The kinds of the objects of one feature."""

    feature_id: FeatureId = field(name="featureID")
    deployed_group_version_kind: tuple[str, ...] = ()


class ClusterSummarySpec(Written, frozen=True):
    """The profile in one cluster; `definitions` gives `clusterProfileSpec` the schema of one."""

    cluster_namespace: Annotated[str, Meta(min_length=1)]
    cluster_name: Annotated[str, Meta(min_length=1)]
    cluster_type: str
    cluster_profile_spec: ExistingObject = {}


class ClusterSummaryStatus(Observed, frozen=True):
    """Status of a ClusterSummary."""

    dependencies: str = ""
    feature_summaries: tuple[FeatureSummary, ...] = ()
    deployed_gvks: tuple[DeployedKinds, ...] = field(default=(), name="deployedGVKs")
    helm_release_summaries: tuple[HelmReleaseSummary, ...] = ()
    failure_message: str = ""
    next_reconcile_time: datetime | None = None
    reconciliation_suspended: bool = False
    suspension_reason: str = ""


class DeployedChart(Written, frozen=True):
    """A chart in a cluster."""

    repo_url: str = field(name="repoURL")
    release_name: str
    chart_version: str
    last_applied_time: datetime
    namespace: str = ""
    app_version: str = ""
    icon: str = ""


class DeployedResource(Written, frozen=True):
    """An object in a cluster."""

    group: str
    version: str
    kind: str
    name: str
    namespace: str = ""
    deployment_type: Literal["Local", "Remote"] | None = None
    last_applied_time: datetime | None = None


class DeployedFeature(Written, frozen=True):
    """The content of one feature in a cluster."""

    feature_id: FeatureId = field(name="featureID")
    charts: tuple[DeployedChart, ...] = ()
    resources: tuple[DeployedResource, ...] = ()


class ClusterProfileResources(Written, frozen=True):
    """The content of a ClusterProfile in a cluster."""

    cluster_profile_name: str
    features: tuple[DeployedFeature, ...] = field(default=(), name="Features")


class ProfileResources(Written, frozen=True):
    """The content of a Profile in a cluster."""

    profile_name: str
    features: tuple[DeployedFeature, ...] = field(default=(), name="Features")


class ClusterConfigurationStatus(Written, frozen=True):
    """Status of a ClusterConfiguration: all that profiles deployed to one cluster."""

    cluster_profile_resources: tuple[ClusterProfileResources, ...] = ()
    profile_resources: tuple[ProfileResources, ...] = ()


# Reports of clusters -----------------------------------------------------------------------------


class ReportStatus(Written, frozen=True):
    """Status of a HealthCheckReport."""

    phase: ReportPhase | None = None


class EventReportSpec(Written, frozen=True):
    """The objects of one cluster that match one EventSource."""

    cluster_namespace: str
    cluster_name: str
    cluster_type: str
    event_source_name: str
    matching_resources: tuple[ObjectReference, ...] = ()
    resources: Bytes = ""
    cloud_events: tuple[Bytes, ...] = ()


class EventReportStatus(ReportStatus, frozen=True):
    """Status of an EventReport."""

    failure_message: str = ""


class ResourceHealth(Written, frozen=True):
    """The health of one object."""

    object_ref: ObjectReference
    health_status: Literal["Healthy", "Progressing", "Degraded", "Suspended"]
    message: str = ""
    resource: Bytes = ""


class HealthCheckReportSpec(Written, frozen=True):
    """The health of the objects of one HealthCheck in one cluster."""

    cluster_namespace: str
    cluster_name: str
    cluster_type: str
    health_check_name: str
    resource_statuses: tuple[ResourceHealth, ...] = ()


class ClassifierReportSpec(Written, frozen=True):
    """The result of a Classifier for a cluster."""

    cluster_namespace: str
    cluster_name: str
    cluster_type: str
    classifier_name: str
    match: bool


class ClassifierReportStatus(ReportStatus, frozen=True):
    """Status of a ClassifierReport."""

    deployment_status: FeatureStatus | None = None
    hash: Bytes = ""
    failure_message: str = ""
    managed_labels: tuple[str, ...] = ()
    unmanaged_labels: tuple[UnmanagedLabel, ...] = ()


class SveltosClusterStatus(Observed, frozen=True):
    """Status of a SveltosCluster."""

    version: str = ""
    ready: bool = False
    connection_status: Literal["Healthy", "Down"] | None = None
    connection_failures: int = 0
    failure_message: str = ""
    last_reconciled_token_request_at: str = ""
    active_window_hash: Bytes = ""
    next_pause: datetime | None = None
    next_unpause: datetime | None = None
    agent_last_report_time: datetime | None = None
