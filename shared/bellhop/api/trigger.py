"""EventTrigger, and EventBasedAddOn as it was called first: which events bring which add-ons."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from bellhop.api.addon import AddonSpec, ChartRef, ContentKind, GeneratorRef, KustomizationSource
from bellhop.api.manifest import Declaration
from bellhop.api.policy_ref import PolicyRef
from bellhop.core.base import Later, Many, mistake
from bellhop.core.names import NameOrTemplate, Text, is_template
from bellhop.core.selector import Selector
from bellhop.core.sveltos_annotations import TRIGGER_PAUSED
from bellhop.errors import InvalidError
from bellhop.state.check import Check
from bellhop.state.record import Reading, Sync
from bellhop.state.rollout import Rollout

if TYPE_CHECKING:
    from bellhop.api.ref import Generator, ObjectReference

_ObjectReference = Annotated[Any, Later("ref", "ObjectReference")]
_Generator = Annotated[Any, Later("ref", "Generator")]


class EventTriggerSpec(AddonSpec):
    """The spec as written; EventBasedAddOns had another name for one field."""

    former_names: ClassVar[Mapping[str, str]] = {"clusterSelector": "sourceClusterSelector"}

    source_cluster_selector: Selector = Field(default_factory=Selector)
    cluster_set_refs: Many[Text] = ()
    destination_cluster_selector: Selector | None = None
    destination_cluster: _ObjectReference | None = None
    event_source_name: NameOrTemplate
    one_for_event: bool = False
    profile_name_format: str = ""
    config_map_generator: Many[_Generator] = ()
    secret_generator: Many[_Generator] = ()
    cloud_event_action: str = "Create"

    @model_validator(mode="after")
    def _says_what_is_meant(self) -> Self:
        action = self.cloud_event_action
        if action not in {"Create", "Delete"} and not is_template(action):
            raise mistake(f"cloudEventAction is {action!r}; it is Create, Delete or a template")
        if self.destination_cluster is not None and not self.destination_cluster.name:
            raise mistake("destinationCluster has no name; name a cluster, or leave it out")
        return self


class EventTrigger(Declaration):
    """Which events, in which clusters, bring which add-ons where."""

    brings: ClassVar[bool] = True
    for_tenants: ClassVar[bool] = True
    pauses: ClassVar[str] = TRIGGER_PAUSED

    spec: EventTriggerSpec

    @property
    def era_always_renders(self) -> bool:
        """Tell whether contents are rendered with event data whatever their annotations say."""
        return self.kind == "EventBasedAddOn" or self.api_version.endswith("/v1alpha1")

    @property
    def source_selector(self) -> Selector:
        """Which clusters are watched; an empty selector matches none."""
        return self.spec.source_cluster_selector

    @property
    def cluster_sets(self) -> tuple[str, ...]:
        """The ClusterSets whose clusters are watched, too."""
        return self.spec.cluster_set_refs

    @property
    def destination_selector(self) -> Selector | None:
        """Which clusters get the add-ons; None selects none.

        An empty selector asks for nothing: every client in Go writes one that was left out.
        """
        selector = self.spec.destination_cluster_selector
        return None if selector is None or selector.empty else selector

    @property
    def destination_cluster(self) -> "ObjectReference | None":
        """The one cluster that gets the add-ons; its fields may be templates over the event."""
        named: ObjectReference | None = self.spec.destination_cluster
        return named

    @property
    def stays_home(self) -> bool:
        """Tell whether the cluster of the event gets the add-ons, since no other is asked for."""
        return self.destination_selector is None and self.destination_cluster is None

    @property
    def event_source_name(self) -> str:
        """The EventSource whose matches count; may be a template over the cluster."""
        return self.spec.event_source_name

    @property
    def cloud_event_action(self) -> str:
        """What a CloudEvent does: Create or Delete, or a template of one of them."""
        return self.spec.cloud_event_action

    @property
    def one_for_event(self) -> bool:
        """Tell whether each match gets a profile, rather than all matches one."""
        return self.spec.one_for_event

    @property
    def policy_refs(self) -> tuple[PolicyRef, ...]:
        """What has the manifests of the add-ons, in its order."""
        return self.spec.refs()

    @property
    def charts(self) -> tuple[ChartRef, ...]:
        """The Helm charts, in their order."""
        return self.spec.charts()

    @property
    def kustomizations(self) -> tuple[KustomizationSource, ...]:
        """The kustomizations, in their order."""
        return self.spec.kustomizations()

    @property
    def patch_refs(self) -> tuple[PolicyRef, ...]:
        """The ConfigMaps and Secrets that hold patches, in their order."""
        return self.spec.patch_refs()

    @property
    def generators(self) -> tuple[GeneratorRef, ...]:
        """What is rendered into ConfigMaps and Secrets of their own, ConfigMaps first."""
        asked: tuple[tuple[ContentKind, tuple[Generator, ...]], ...] = (
            ("ConfigMap", self.spec.config_map_generator),
            ("Secret", self.spec.secret_generator),
        )
        return tuple(
            GeneratorRef(
                PolicyRef(each.namespace, each.name, kind, each.optional),
                each.name_format,
                each.instantiate_for_each_matching_resource,
            )
            for kind, generators in asked
            for each in generators
        )

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The objects that templates of deploy time read."""
        return self.spec.readings()

    @property
    def holder_refs(self) -> tuple[PolicyRef, ...]:
        """All ConfigMaps and Secrets that it is rendered from, or its profiles checked with."""
        charts = (ref for each in self.charts for ref in each.refs)
        kustomizations = (ref for each in self.kustomizations for ref in each.refs)
        held = (each for each in self.policy_refs if each.files is None)
        deployed = (*held, *self.patch_refs, *charts, *kustomizations, *self.spec.login_refs())
        generators = (each.ref for each in self.generators)
        return (*deployed, *generators, *self.spec.check_refs())

    @property
    def local(self) -> bool:
        """Tell whether any of the add-ons is brought to the cluster `mgmt/mgmt`."""
        return self.spec.local

    @property
    def leaves_policies(self) -> bool:
        """Tell whether add-ons stay when nothing matches any more."""
        return self.spec.stop_matching_behavior == "LeavePolicies"

    @property
    def tier(self) -> int:
        """Who wins a conflict: the lower number."""
        return self.spec.tier

    @property
    def sync(self) -> Sync:
        """Whether it is applied, or only tried dry."""
        return self.spec.sync

    @property
    def checks(self) -> tuple[Check, ...]:
        """What must be so in a cluster before and after it is brought, and taken back."""
        return self.spec.checks()

    @property
    def continue_on_conflict(self) -> bool:
        """Tell whether the rest is deployed when an object has another owner."""
        return self.spec.continue_on_conflict

    @property
    def after(self) -> tuple[str, ...]:
        """The ClusterProfiles that its profiles come after in each cluster."""
        return tuple(dict.fromkeys(self.spec.depends_on))

    @property
    def rollout(self) -> Rollout:
        """What its profiles wait for in a cluster, and what they restart there."""
        return Rollout(after=self.after, share=self.spec.share, reloads=self.spec.reloader)

    def refuse_change(self, old: "EventTrigger") -> None:
        """Refuse what may not change once it was applied.

        Raises:
            InvalidError: when oneForEvent differs.
        """
        if old.one_for_event != self.one_for_event:
            before, after = str(old.one_for_event).lower(), str(self.one_for_event).lower()
            raise InvalidError(
                f"Value is immutable: it was {before} and cannot become {after}; "
                f"delete {self.kind} {self.name!r} and create it again",
                where="spec.oneForEvent",
            )
