"""The kustomizations of a profile."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bellhop.api.policy_ref import (
    DeploymentType,
    KustomizationSource,
    PolicyRef,
    Tier,
    ref_of,
    refuse_two_origins,
)
from bellhop.api.ref import RemoteUrl, ValueFrom
from bellhop.core.base import Many, Model
from bellhop.core.names import NameOrTemplate, NamespaceOrTemplate
from bellhop.state.content import Handling, Kustomization, Substitute


class KustomizationRef(Model):
    """One kustomization; most texts may be templates."""

    namespace: NamespaceOrTemplate = ""
    name: NameOrTemplate = ""
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

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        refuse_two_origins(self)
        return self

    def source(self, number: int, how: Handling) -> KustomizationSource:
        """Return it, the entry of that number, with what it names."""
        field = f"kustomizationRefs[{number}]"
        values = (
            Substitute(text, f"{field}.values.{key}", key=key) for key, text in self.values.items()
        )
        return KustomizationSource(
            Kustomization(
                field, self.path, tuple(self.components), self.target_namespace, tuple(values)
            ),
            ref_of(field, self, how),
            tuple(
                PolicyRef(each.namespace, each.name, each.kind, each.optional)
                for each in self.values_from
            ),
        )
