"""The kustomizations of a profile."""

from typing import Literal

from pydantic import Field

from bellhop.model.addon import DeploymentType, Tier
from bellhop.model.base import Many, Model
from bellhop.model.names import NamespaceOrTemplate
from bellhop.model.ref import RemoteUrl, ValueFrom


class KustomizationRef(Model):
    """One kustomization; most texts may be templates."""

    namespace: NamespaceOrTemplate = ""
    name: str = ""
    kind: Literal["GitRepository", "OCIRepository", "Bucket", "ConfigMap", "Secret"] | None = None
    path: str = ""
    components: Many[str] = ()
    optional: bool = False
    target_namespace: str = ""
    deployment_type: DeploymentType = "Remote"
    values: dict[str, str] = Field(default_factory=dict)
    values_from: Many[ValueFrom] = ()
    tier: Tier = 100
    skip_namespace_creation: bool = False
    force: bool = False
    remote_url: RemoteUrl | None = Field(default=None, alias="remoteURL")
