"""A SveltosCluster that declares a registration; its kubeconfig is in a Secret beside it."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from bellhop.api.manifest import ObjectMeta
from bellhop.core.base import Model, mistake
from bellhop.core.names import Duration, Text

KIND = "SveltosCluster"
VERSIONS = ("lib.projectsveltos.io/v1beta1", "lib.projectsveltos.io/v1alpha1")

WITHOUT_EFFECT = (
    "arbitraryData",
    "consecutiveFailureThreshold",
    "livenessChecks",
    "readinessChecks",
    "tokenRequestRenewalOption",
)
"""Fields of its spec that Sveltos has, and that change nothing where files register a cluster."""


class ActiveWindow(Model):
    """The windows in which a cluster takes changes: two cron expressions, in UTC."""

    from_: Text = Field(alias="from")
    to: Text


class TokenRenewal(Model):
    """Renewal of the token by which a cluster is reached; by default of its own account.

    Bellhop writes no Secret of users, so `kubeconfigKeyName` has no effect.
    """

    renew_token_request_interval: Duration
    token_duration: Duration | None = None
    sa_namespace: str = ""
    sa_name: str = ""
    kubeconfig_key_name: str = ""


class AwsIdentity(Model):
    """An EKS cluster, reached by an IAM role of Bellhop's own, or by one that it assumes."""

    cluster_name: Text
    region: str = ""
    role_arn: str = Field(default="", alias="roleARN")


class GcpIdentity(Model):
    """A GKE cluster, reached by Bellhop's own service account."""

    cluster_name: Text
    location: Text
    project_id: Text = Field(alias="projectID")


class WorkloadIdentity(Model):
    """A cluster that a cloud manages: it is reached by Bellhop's own account, without a kubeconfig.

    Address and authority are what the cloud says, so `endpoint` and `caSecretRef` have no effect.
    """

    provider: Literal["AWS", "GCP", "Azure"]
    endpoint: str = ""
    ca_secret_ref: Any = None
    aws: AwsIdentity | None = None
    gcp: GcpIdentity | None = None
    azure: Any = None

    @model_validator(mode="after")
    def _is_reached(self) -> Self:
        if self.provider == "Azure" or self.azure is not None:
            raise mistake(
                "workloadIdentity.azure is not supported; remove it, and give the kubeconfig in a"
                " Secret"
            )
        name = self.provider.lower()
        if getattr(self, name) is None:
            raise mistake(f"provider {self.provider} needs '{name}'; add it")
        return self


class SveltosClusterSpec(Model):
    """The declaration of a cluster, whose kubeconfig is in a Secret."""

    kubeconfig_name: str = ""
    kubeconfig_key_name: str = ""
    paused: bool = False
    active_window: ActiveWindow | None = None
    data: dict[str, str] = Field(default_factory=dict)
    pull_mode: bool = False
    workload_identity: WorkloadIdentity | None = None
    arbitrary_data: Any = None
    consecutive_failure_threshold: Any = None
    liveness_checks: Any = None
    readiness_checks: Any = None
    token_request_renewal_option: TokenRenewal | None = None

    @field_validator("pull_mode")
    @classmethod
    def _is_reached(cls, value: bool) -> bool:  # noqa: FBT001 - pydantic's signature
        if value:
            raise mistake(
                "pullMode is not supported; remove it, and give the kubeconfig in a Secret"
            )
        return value


class SveltosCluster(Model):
    """One cluster that is to be registered."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: SveltosClusterSpec = Field(default_factory=SveltosClusterSpec)

    @property
    def namespace(self) -> str:
        """The namespace that it is registered in."""
        return self.metadata.namespace or "default"

    @property
    def key(self) -> str:
        """Name the cluster: namespace/name."""
        return f"{self.namespace}/{self.metadata.name}"

    @property
    def secret(self) -> str:
        """The name of the Secret that has its kubeconfig, in the same namespace."""
        return self.spec.kubeconfig_name or f"{self.metadata.name}-sveltos-kubeconfig"

    @property
    def labels(self) -> dict[str, str] | None:
        """Its labels; None where the document says nothing of them."""
        return self.metadata.labels if "labels" in self.metadata.model_fields_set else None

    @property
    def annotations(self) -> dict[str, str] | None:
        """Its annotations; None where the document says nothing of them."""
        said = "annotations" in self.metadata.model_fields_set
        return self.metadata.annotations if said else None
