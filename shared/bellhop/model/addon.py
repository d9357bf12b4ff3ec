"""What triggers and profiles have in common: the add-ons, and how they are rolled out."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from bellhop.model.base import Many, Model, mistake
from bellhop.model.helm import HelmChart
from bellhop.model.kustomize import KustomizationRef
from bellhop.model.names import (
    Duration,
    Labels,
    NameOrTemplate,
    Namespace,
    NamespaceOrTemplate,
    Share,
    Text,
)
from bellhop.model.ref import DeploymentType, RemoteUrl, Tier, ValueFrom
from bellhop.model.source import CelRule, LabelFilter

ContentKind = Literal["ConfigMap", "Secret"]
PolicyRefKind = Literal["ConfigMap", "Secret", "GitRepository", "OCIRepository", "Bucket"]
SyncMode = Literal["OneTime", "Continuous", "ContinuousWithDriftDetection", "DryRun"]
StopMatchingBehavior = Literal["WithdrawPolicies", "LeavePolicies"]


class PolicyRef(NamedTuple):
    """Where manifests are; `namespace` and `name` may be templates."""

    namespace: str
    name: str
    kind: ContentKind
    optional: bool = False


class PolicyRefSpec(Model):
    """One entry of policyRefs, as written."""

    namespace: NamespaceOrTemplate = ""
    name: NameOrTemplate = ""
    kind: PolicyRefKind | None = None
    path: str = ""
    deployment_type: DeploymentType = "Remote"
    optional: bool = False
    tier: Tier = 100
    skip_namespace_creation: bool = False
    force: bool = False
    remote_url: RemoteUrl | None = Field(default=None, alias="remoteURL")

    @model_validator(mode="after")
    def _has_one_origin(self) -> PolicyRefSpec:
        named = bool(self.name) or self.kind is not None
        if self.remote_url is not None and named:
            raise mistake("remoteURL stands beside kind or name; keep one of them")
        if self.remote_url is None and not (self.name and self.kind):
            raise mistake(f"{'kind' if self.name else 'name'} is missing")
        return self


class TemplateResource(Model):
    """The object a template may read, by a name that may be a template."""

    api_version: Text
    kind: Text
    namespace: NamespaceOrTemplate = ""
    name: Text
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class TemplateResourceRef(Model):
    """An object that templates may read, and the identifier they read it by."""

    resource: TemplateResource
    identifier: Text
    optional: bool = False
    ignore_status_changes: bool = False
    watch_fields: Many[Text] = ()


class SecretRef(Model):
    """A Secret by name and namespace."""

    name: Text
    namespace: str = ""


class MetricSource(Model):
    """Where metrics are asked for."""

    url: Text
    path: str = ""
    secret_ref: SecretRef | None = None


class MetricQuery(Model):
    """One query, by the name its answer has in the script."""

    name: Text
    query: Text


class JobCheck(Model):
    """A Job whose success is the check."""

    job_ref: SecretRef
    timeout: Duration = "5m"


class Check(Model):
    """A check of objects, before or after a deployment or a removal."""

    name: Text
    feature_id: Literal["Resources", "Helm", "Kustomize"] = Field(alias="featureID")
    group: str = ""
    version: str = ""
    kind: str = ""
    label_filters: Many[LabelFilter] = ()
    namespace: str = ""
    metric_source: MetricSource | None = None
    metric_queries: Many[MetricQuery] = ()
    script: str = ""
    evaluate_cel: Many[CelRule] = Field(default=(), alias="evaluateCEL")
    job_check: JobCheck | None = None

    @model_validator(mode="after")
    def _has_one_check(self) -> Check:
        if self.job_check is not None and (self.script or self.evaluate_cel):
            raise mistake("jobCheck stands beside script or evaluateCEL; keep one of them")
        return self


class PatchTarget(Model):
    """Which rendered objects; names and namespaces are regular expressions."""

    group: str = ""
    version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: str = ""
    annotation_selector: str = ""


class Patch(Model):
    """A change to rendered objects: a strategic merge or a JSON patch."""

    patch: Text
    target: PatchTarget | None = None


class DriftExclusion(Model):
    """Paths in which a difference is no drift."""

    paths: Annotated[Many[Text], Field(min_length=1)]
    target: PatchTarget | None = None


class AddonSpec(Model):
    """The add-ons and their roll-out, in EventTriggers and ClusterProfiles alike."""

    sync_mode: SyncMode = "Continuous"
    tier: Tier = 100
    continue_on_conflict: bool = False
    max_update: Share | None = None
    stop_matching_behavior: StopMatchingBehavior = "WithdrawPolicies"
    reloader: bool = False
    depends_on: Many[Text] = ()
    template_resource_refs: Many[TemplateResourceRef] = ()
    policy_refs: Many[PolicyRefSpec] = ()
    helm_charts: Many[HelmChart] = ()
    kustomization_refs: Many[KustomizationRef] = ()
    pre_deploy_checks: Many[Check] = ()
    validate_healths: Many[Check] = ()
    pre_delete_checks: Many[Check] = ()
    post_delete_checks: Many[Check] = ()
    patches: Many[Patch] = ()
    patches_from: Many[ValueFrom] = ()
    drift_exclusions: Many[DriftExclusion] = ()
    extra_labels: Labels = Field(default_factory=dict)
    extra_annotations: dict[str, str] = Field(default_factory=dict)

    def refs(self) -> tuple[PolicyRef, ...]:
        """List the ConfigMaps and Secrets that hold the manifests, in their order."""
        return tuple(
            PolicyRef(ref.namespace, ref.name, ref.kind, ref.optional)
            for ref in self.policy_refs
            if ref.kind in {"ConfigMap", "Secret"}
        )


class ClusterRef(NamedTuple):
    """One cluster of the fleet."""

    namespace: str
    name: str


class ClusterReference(Model):
    """One entry of clusterRefs, as written."""

    namespace: Namespace
    name: Text
    kind: str = "SveltosCluster"
    api_version: str = "lib.projectsveltos.io/v1beta1"
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""
