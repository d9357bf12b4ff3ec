"""ClusterHealthCheck: in which clusters somebody is told when their add-ons are well or not."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from bellhop.model.base import Later, Many, Model, mistake
from bellhop.model.core import Declaration
from bellhop.model.names import Text
from bellhop.model.selector import Selector

if TYPE_CHECKING:
    from bellhop.model.ref import ObjectReference

_Reference = Annotated[Any, Later("ref", "ObjectReference")]
NoticeType = Literal["KubernetesEvent", "Slack", "Webex", "Discord", "Teams", "Telegram", "SMTP"]


class LivenessCheck(Model):
    """One thing that has to be well."""

    name: Text
    type: Literal["Addons", "HealthCheck"]
    liveness_source_ref: _Reference | None = None


class Notification(Model):
    """One place where somebody is told; the Secret that is named has the way there.

    An Event of Kubernetes needs none.
    """

    name: Text
    type: NoticeType
    notification_ref: _Reference | None = None

    @model_validator(mode="after")
    def _names_a_secret(self) -> "Notification":
        ref: ObjectReference | None = self.notification_ref
        if self.type == "KubernetesEvent":
            return self
        if ref is None:
            raise mistake("notificationRef is missing; name the Secret that says where to send it")
        if ref.kind not in ("", "Secret") or not ref.name or not ref.namespace:
            raise mistake("notificationRef must have kind Secret, a namespace and a name")
        return self


class ClusterHealthCheckSpec(Model):
    """The spec as written."""

    cluster_selector: Selector = Field(default_factory=Selector)
    liveness_checks: Many[LivenessCheck] = Field(min_length=1)
    notifications: Many[Notification] = Field(default=(), max_length=16)

    @model_validator(mode="after")
    def _has_each_name_once(self) -> "ClusterHealthCheckSpec":
        names = [each.name for each in self.notifications]
        if twice := sorted({each for each in names if names.count(each) > 1}):
            raise mistake(f"the notification {twice[0]!r} is there twice; give each its own name")
        return self


class ClusterHealthCheck(Declaration):
    """Which clusters are checked, and who is told of them."""

    spec: ClusterHealthCheckSpec

    @property
    def cluster_selector(self) -> Selector:
        """Which clusters; an empty selector matches none."""
        return self.spec.cluster_selector

    @property
    def notifications(self) -> tuple[Notification, ...]:
        """Who is told."""
        return self.spec.notifications
