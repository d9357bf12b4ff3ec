"""RoleRequest: rights that a service account gets in selected clusters.

It is a profile of a kind: what it brings are the account, the roles that its roleRefs hold and a
binding of each, and all that holds of profiles holds of it.
"""

from functools import cached_property
from typing import ClassVar

from pydantic import Field

from bellhop.model.addon import ContentKind, PolicyRefSpec
from bellhop.model.base import Many, Model
from bellhop.model.names import Name, NameOrTemplate, Namespace, NamespaceOrTemplate
from bellhop.model.profile import ClusterProfile, ClusterProfileSpec
from bellhop.model.selector import Selector


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


class RoleRequest(ClusterProfile):
    """Roles, and the service account that has them in the clusters that are selected.

    It counts with Bellhop's own rights: a tenant gives himself none. What others change of it is
    put back.
    """

    for_tenants: ClassVar[bool] = False
    refs_field: ClassVar[str] = "roleRefs"

    # What a profile says by its spec is read from `asked`.
    spec: RoleRequestSpec  # type: ignore[assignment]

    @cached_property
    def asked(self) -> ClusterProfileSpec:
        """What it asks for, as a ClusterProfile would say it."""
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
