"""ClusterHealthCheck and HealthCheck: notices of unhealthy clusters, and conditions of health.

The former names clusters, checks and receivers of notifications. The latter asks for objects
as an EventSource does, which is made here, and its script says how they are: its matches are kept,
sent and resynced as of any other. A ClusterHealthCheck puts it in force by naming it.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel

from bellhop.api.account import labels_of
from bellhop.api.core_kinds import refuse_core_kind
from bellhop.api.manifest import Declaration
from bellhop.api.names import health_source
from bellhop.api.source import (
    AskingSource,
    EventSourceSpec,
    LabelFilter,
    ResourceSelectorSpec,
)
from bellhop.core.base import Later, Many, Model, mistake
from bellhop.core.names import Duration, Namespace, Text, seconds_of
from bellhop.core.selector import Selector

if TYPE_CHECKING:
    from bellhop.api.policy_ref import PolicyRef
    from bellhop.api.ref import ObjectReference

_Reference = Annotated[Any, Later("ref", "ObjectReference")]
AGAIN = timedelta(seconds=10)
"""Between two evaluations of a health check where nothing changes, as in Sveltos."""

_MOST_EVALUATIONS = 8640
"""As many as there are in a day."""

_LONGEST = timedelta(days=30)
"""The longest time between two notices: a receiver gets one some day."""

NoticeType = Literal[
    "KubernetesEvent",
    "Slack",
    "Webex",
    "Discord",
    "Teams",
    "Telegram",
    "SMTP",
    "Webhook",
    "PagerDuty",
    "Opsgenie",
    "Alertmanager",
]

SECRET_KEYS: Mapping[NoticeType, str] = {
    "Slack": "SLACK_TOKEN",
    "Webex": "WEBEX_TOKEN",
    "Discord": "DISCORD_TOKEN",
    "Teams": "TEAMS_WEBHOOK_URL",
    "Telegram": "TELEGRAM_TOKEN",
    "SMTP": "SMTP_HOST",
    "Webhook": "WEBHOOK_URL",
    "PagerDuty": "PAGERDUTY_ROUTING_KEY",
    "Opsgenie": "OPSGENIE_API_KEY",
    "Alertmanager": "ALERTMANAGER_URL",
}
"""A key that the Secret of each type has, and that of no other type."""


class LivenessCheck(Model):
    """One thing that has to be well."""

    name: Text
    type: Literal["Addons", "HealthCheck"]
    liveness_source_ref: _Reference | None = None

    @model_validator(mode="after")
    def _names_a_health_check(self) -> "LivenessCheck":
        ref: ObjectReference | None = self.liveness_source_ref
        if self.type == "Addons":
            if ref is not None:
                raise mistake(
                    "livenessSourceRef stands beside the type Addons, which are all profiles of a"
                    " cluster; leave it out"
                )
            return self
        if ref is None or ref.kind not in ("", "HealthCheck") or not ref.name:
            raise mistake("livenessSourceRef must have kind HealthCheck and a name")
        return self

    @property
    def health_check(self) -> str:
        """Return the HealthCheck that decides if it is healthy; empty for the add-ons."""
        ref: ObjectReference | None = self.liveness_source_ref
        return ref.name if ref else ""


class NotificationPolicy(Model):
    """Limits of notifications about a cluster that changes all the time."""

    only_on_transition: bool = False
    min_interval: Duration = "0s"
    failing_for: Duration = "0s"

    @model_validator(mode="after")
    def _ends(self) -> "NotificationPolicy":
        for field, said in (("minInterval", self.min_interval), ("failingFor", self.failing_for)):
            if seconds_of(said) > _LONGEST.total_seconds():
                raise mistake(
                    f"{field} is {said[:40]!r}; write {_LONGEST // timedelta(hours=1)}h at most"
                )
        return self

    @property
    def interval(self) -> timedelta:
        """Return the shortest time between two notices about one cluster, in seconds."""
        return timedelta(seconds=seconds_of(self.min_interval))

    @property
    def patience(self) -> timedelta:
        """Return the time that a cluster must be unhealthy before a notice is sent, in seconds."""
        return timedelta(seconds=seconds_of(self.failing_for))


class Notification(Model):
    """One receiver of notices; the Secret that is named has its address.

    An Event of Kubernetes needs none.
    """

    name: Text
    type: NoticeType
    notification_ref: _Reference | None = None
    policy: NotificationPolicy = NotificationPolicy()

    @property
    def repeats(self) -> bool:
        """Return whether it is sent again while a cluster stays unhealthy.

        Alertmanager ends an alert that is not sent again, and forgets all when it restarts.
        """
        return self.type == "Alertmanager"

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
    liveness_checks: Many[LivenessCheck] = Field(min_length=1, max_length=16)
    notifications: Many[Notification] = Field(default=(), max_length=16)

    @model_validator(mode="after")
    def _has_each_name_once(self) -> "ClusterHealthCheckSpec":
        for what, these in (
            ("liveness check", self.liveness_checks),
            ("notification", self.notifications),
        ):
            names = [each.name for each in these]
            if twice := sorted({each for each in names if names.count(each) > 1}):
                raise mistake(f"the {what} {twice[0]!r} is there twice; give each its own name")
        return self


class ClusterHealthCheck(Declaration):
    """The clusters that are checked, and the receivers of notices."""

    spec: ClusterHealthCheckSpec

    @property
    def cluster_selector(self) -> Selector:
        """The clusters; an empty selector matches none."""
        return self.spec.cluster_selector

    @property
    def notifications(self) -> tuple[Notification, ...]:
        """The receivers of notices."""
        return self.spec.notifications

    @property
    def holder_refs(self) -> "tuple[PolicyRef, ...]":
        """The Secrets with the addresses of receivers."""
        from bellhop.api.policy_ref import PolicyRef  # noqa: PLC0415 - few installations notify

        refs = (each.notification_ref for each in self.notifications)
        return tuple(PolicyRef(ref.namespace, ref.name, "Secret") for ref in refs if ref)

    @property
    def policies(self) -> Mapping[str, NotificationPolicy]:
        """The limits of each notification, by its name."""
        return {each.name: each.policy for each in self.notifications}

    @property
    def repeated(self) -> frozenset[str]:
        """Return the names of the notifications that are sent again and again."""
        return frozenset(each.name for each in self.notifications if each.repeats)

    @property
    def health_checks(self) -> Iterator[str]:
        """Yield the names of the HealthChecks that it asks."""
        return (each.health_check for each in self.spec.liveness_checks if each.health_check)


class Flapping(Model):
    """The times in a row that a resource must be unhealthy before that counts."""

    consecutive_evaluations: int = Field(default=3, ge=2, le=_MOST_EVALUATIONS)


class HealthCheckSpec(Model):
    """The spec as written, with resourceSelectors, or in the flat form of v1alpha1.

    The `script` of the flat form is asked of one object at a time.
    """

    group: str | None = None
    version: Text | None = None
    kind: Text | None = None
    namespace: Namespace = ""
    label_filters: Many[LabelFilter] = ()
    script: str = ""
    resource_selectors: Many[ResourceSelectorSpec] = ()
    evaluate_health: str = ""
    collect_resources: bool = False
    evaluate_independently: bool = True
    flapping: Flapping | None = None

    @model_validator(mode="after")
    def _has_one_form(self, info: ValidationInfo) -> "HealthCheckSpec":
        flat = [field for field in _FLAT if field in self.model_fields_set]
        if self.resource_selectors and flat:
            raise mistake(
                f"{to_camel(flat[0])!r} stands beside resourceSelectors, where it selects nothing;"
                " move it into an entry of resourceSelectors"
            )
        missing = [field for field in _FLAT[:3] if getattr(self, field) is None]
        if missing and not self.resource_selectors:
            raise mistake(
                "no resource is named: list the resources in resourceSelectors, or give"
                f" {', '.join(missing)}"
            )
        if bool(self.script) == bool(self.evaluate_health):
            raise mistake(
                "evaluateHealth says how all resources are, and script, in the flat form, how one"
                " is; give one of the two"
            )
        if self.script and self.resource_selectors:
            raise mistake("script goes with the flat form; name it evaluateHealth")
        if self.kind is not None:
            refuse_core_kind(self.group or "", self.version or "", self.kind, info)
        return self

    @property
    def selected(self) -> tuple[ResourceSelectorSpec, ...]:
        """List what is asked for, in one shape for both forms."""
        if self.kind is None:
            return self.resource_selectors
        entry = ResourceSelectorSpec(
            group=self.group or "",
            version=self.version or "",
            kind=self.kind,
            namespace=self.namespace,
            label_filters=self.label_filters,
        )
        return (entry,)

    @property
    def whole_script(self) -> str:
        """Return the script that says how all resources are; of the flat form one is made."""
        return f"{self.script}\n{_EACH}" if self.script else self.evaluate_health


_FLAT = ("group", "version", "kind", "namespace", "label_filters")

_EACH = """\
do
  local judge = evaluate
  function evaluate()
    local told = {}
    for _, each in ipairs(resources) do
      obj = each
      local found = judge(each)
      if type(found) ~= "table" then error("lua script output is not a lua table") end
      if not found.ignore then
        told[#told + 1] = {resource = each, healthStatus = found.status, message = found.message}
      end
    end
    return {resources = told}
  end
end
"""
"""Behind a script about one object, so that no line of it has another number."""


class HealthSourceSpec(EventSourceSpec):
    """The source of a health check, whose script may get objects in several parts."""

    in_parts: bool = True


class HealthCheck(Declaration):
    """Selectors of objects, and a script that evaluates their health."""

    for_tenants: ClassVar[bool] = True

    spec: HealthCheckSpec

    @property
    def patience(self) -> timedelta:
        """The time that a resource must be unhealthy, without a break, before that counts.

        A change is evaluated at once, so that between two evaluations nothing else was so: of
        those that are asked for each after the first stands for the pause before it.
        """
        flapping = self.spec.flapping
        return (flapping.consecutive_evaluations - 1) * AGAIN if flapping else timedelta(0)

    @cached_property
    def source(self) -> AskingSource:
        """Return the source by which it asks for objects."""
        spec = HealthSourceSpec(
            resource_selectors=self.spec.selected,
            aggregated_selection=self.spec.whole_script,
            collect_resources=True,
            in_parts=self.spec.evaluate_independently,
        )
        name, labels = health_source(self.name), labels_of(self.account)
        return AskingSource.of(name, spec, self.manifest()["spec"], labels)
