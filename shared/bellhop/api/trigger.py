"""EventTrigger, and its first name EventBasedAddOn: the add-ons that events deploy."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from bellhop.api.addon import AddonDeclaration, AddonSpec, ContentKind
from bellhop.api.policy_ref import GeneratorRef, PolicyRef
from bellhop.core.base import Later, Many, mistake
from bellhop.core.names import NameOrTemplate, Text, is_template
from bellhop.core.selector import Selector
from bellhop.core.sveltos_annotations import INSTANTIATE_ALL, TRIGGER_PAUSED
from bellhop.errors import InvalidError

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


class EventTrigger(AddonDeclaration):
    """The add-ons that events of one source deploy, and the clusters of both."""

    pauses: ClassVar[str] = TRIGGER_PAUSED

    spec: EventTriggerSpec

    @property
    def instantiates_all(self) -> bool:
        """Return whether contents are rendered with event data whatever their annotations say."""
        former = self.kind == "EventBasedAddOn" or self.api_version.endswith("/v1alpha1")
        return former or INSTANTIATE_ALL in self.annotations

    @property
    def source_selector(self) -> Selector:
        """The clusters whose events count; an empty selector matches none."""
        return self.spec.source_cluster_selector

    @property
    def cluster_sets(self) -> tuple[str, ...]:
        """The ClusterSets whose clusters' events count, too."""
        return self.spec.cluster_set_refs

    @property
    def destination_selector(self) -> Selector | None:
        """The clusters that get the add-ons; None selects none.

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
        """Return whether the cluster of the event gets the add-ons, since no other is asked for."""
        return self.destination_selector is None and self.destination_cluster is None

    @property
    def event_source_name(self) -> str:
        """The EventSource whose matches count; may be a template over the cluster."""
        return self.spec.event_source_name

    @property
    def cloud_event_action(self) -> str:
        """The effect of a CloudEvent: Create or Delete, or a template of one of them."""
        return self.spec.cloud_event_action

    @property
    def one_for_event(self) -> bool:
        """Return whether each match gets a profile, rather than all matches one."""
        return self.spec.one_for_event

    @property
    def generators(self) -> tuple[GeneratorRef, ...]:
        """The generators of ConfigMaps and Secrets, ConfigMaps first."""
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

    def _find_holder_refs(self) -> tuple[PolicyRef, ...]:
        return (*super()._find_holder_refs(), *(each.ref for each in self.generators))

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
