"""RoleRequest: rights that a service account gets in selected clusters.

It is a profile of a kind: it deploys the account, the roles that its roleRefs hold and a
binding of each, and all that holds of profiles holds of it.
"""

from functools import cached_property
from typing import Any, ClassVar

from pydantic import Field, model_validator

from bellhop.api.addon import ContentKind
from bellhop.api.policy_ref import PolicyRefSpec
from bellhop.api.profile import ClusterProfile, ClusterProfileSpec
from bellhop.core.base import Many, Model, mistake
from bellhop.core.names import Name, NameOrTemplate, Namespace, NamespaceOrTemplate
from bellhop.core.selector import Selector


class RoleRef(Model):
    """One entry of roleRefs, as written."""

    namespace: NamespaceOrTemplate = ""
    name: NameOrTemplate
    kind: ContentKind


class RoleRequestSpec(Model):
    """The spec as written."""

    cluster_selector: Selector = Field(default_factory=Selector)
    role_refs: Many[RoleRef] = ()
    expiration_seconds: int | None = Field(default=None, ge=1)
    service_account_name: Name
    service_account_namespace: Namespace = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _refuse_first_name(cls, data: Any) -> Any:
        """Refuse `admin`, which the oldest RoleRequests have, since it names no account.

        Source: Sveltos' libsveltos, `RoleRequestSpec` of its first releases.
        """
        if isinstance(data, dict) and "admin" in data:
            raise mistake(
                "admin is no longer a field; write the service account that gets the rights as"
                " serviceAccountName and serviceAccountNamespace"
            )
        return data


class RoleRequest(ClusterProfile):
    """Roles, and the service account that has them in the clusters that are selected.

    It counts with Bellhop's own rights: a tenant gives himself none. Changes by
    others are corrected.
    """

    for_tenants: ClassVar[bool] = False
    refs_field: ClassVar[str] = "roleRefs"

    # What a profile says by its spec is read from `addons`.
    spec: RoleRequestSpec  # type: ignore[assignment]

    @cached_property
    def addons(self) -> ClusterProfileSpec:
        """The add-ons of a ClusterProfile that does the same."""
        return ClusterProfileSpec(
            cluster_selector=self.spec.cluster_selector,
            policy_refs=tuple(
                PolicyRefSpec(namespace=each.namespace, name=each.name, kind=each.kind)
                for each in self.spec.role_refs
            ),
            sync_mode="ContinuousWithDriftDetection",
        )

    @property
    def grants(self) -> str:
        """The service account that gets the rights, as `namespace/name`."""
        return f"{self.spec.service_account_namespace}/{self.spec.service_account_name}"
