"""A SveltosCluster that declares a registration; its kubeconfig is in a Secret beside it."""

from typing import Any

from pydantic import Field, field_validator

from bellhop.api.manifest import ObjectMeta
from bellhop.core.base import Model, mistake
from bellhop.core.names import Text

KIND = "SveltosCluster"
VERSIONS = ("lib.projectsveltos.io/v1beta1", "lib.projectsveltos.io/v1alpha1")

WITHOUT_EFFECT = (
    "arbitraryData",
    "consecutiveFailureThreshold",
    "livenessChecks",
    "readinessChecks",
    "tokenRequestRenewalOption",
)
"""Fields of its spec that Sveltos has, and that change nothing here."""


class ActiveWindow(Model):
    """When a cluster takes changes: two cron expressions, in UTC."""

    from_: Text = Field(alias="from")
    to: Text


class SveltosClusterSpec(Model):
    """What is declared of a cluster; `kubeconfigName` and `kubeconfigKeyName` say where it is."""

    kubeconfig_name: str = ""
    kubeconfig_key_name: str = ""
    paused: bool = False
    active_window: ActiveWindow | None = None
    data: dict[str, str] = Field(default_factory=dict)
    pull_mode: bool = False
    arbitrary_data: Any = None
    consecutive_failure_threshold: Any = None
    liveness_checks: Any = None
    readiness_checks: Any = None
    token_request_renewal_option: Any = None

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
