"""EventSource: which objects, in which state, are an event."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from msgspec import Struct
from pydantic import Field, ValidationInfo, model_validator

from bellhop.api.core_kinds import refuse_core_kind
from bellhop.api.manifest import Declaration, ObjectMeta
from bellhop.core.base import Later, Many, Model, mistake
from bellhop.core.gvk import CLOUD_EVENT, GVK
from bellhop.core.names import Namespace, Text, label_key_problem, label_value_problem
from bellhop.core.selector import Selector
from bellhop.state.ingest_policy import Criterion

if TYPE_CHECKING:
    from bellhop.api.rules import CelRule, MessagingMatch

FilterOperation = Literal["Equal", "Different", "Has", "DoesNotHave"]
_CelRule = Annotated[Any, Later("rules", "CelRule")]
_MessagingMatch = Annotated[Any, Later("rules", "MessagingMatch")]


class LabelFilter(Model):
    """One condition on one label, in the words of EventSources."""

    key: Text
    operation: FilterOperation
    value: str = ""

    @model_validator(mode="after")
    def _is_a_condition(self) -> Self:
        problem = label_key_problem(self.key) or label_value_problem(self.value)
        if problem:
            raise mistake(problem)
        return self


class _Selecting(Model):
    """The fields that select objects, in resourceSelectors and in the flat form alike."""

    # Old documentation taught the misspelling.
    former_names: ClassVar[Mapping[str, str]] = {"labelsFilters": "labelFilters"}

    namespace: Namespace = ""
    name: str = ""
    label_filters: Many[LabelFilter] = ()
    selector: Selector | None = None
    evaluate: str = ""
    script: str = ""
    evaluate_cel: Many[_CelRule] = Field(default=(), alias="evaluateCEL")
    include_deleting_resources: bool = False

    @model_validator(mode="after")
    def _has_one_script(self) -> Self:
        if self.script and self.evaluate:
            raise mistake("script and evaluate are the same field; keep one of them")
        return self


class ResourceSelectorSpec(_Selecting):
    """One entry of resourceSelectors, as written."""

    group: str
    version: Text
    kind: Text

    @model_validator(mode="after")
    def _has_a_kind(self, info: ValidationInfo) -> Self:
        refuse_core_kind(self.group, self.version, self.kind, info)
        return self


class EventSourceSpec(_Selecting):
    """The spec as written, in the flat form or with resourceSelectors."""

    group: str | None = None
    version: Text | None = None
    kind: Text | None = None
    resource_selectors: Many[ResourceSelectorSpec] = ()
    aggregated_selection: str = ""
    collect_resources: bool = False
    messaging_match_criteria: Many[_MessagingMatch] = ()

    @model_validator(mode="after")
    def _has_one_form(self, info: ValidationInfo) -> Self:
        written = [field for field in FLAT_FIELDS if field in self.model_fields_set]
        flat = [_alias(field) for field in written]
        if self.messaging_match_criteria and self.aggregated_selection:
            raise mistake(
                "aggregatedSelection stands beside messagingMatchCriteria, whose CloudEvents it is"
                " not given; write an EventSource for each"
            )
        if self.resource_selectors and flat:
            raise mistake(
                f"{flat[0]!r} stands beside resourceSelectors, where it selects nothing; "
                f"move it into an entry of resourceSelectors"
            )
        if not flat:
            # The API takes a source that selects nothing, and so does Sveltos: it matches nothing.
            return self
        missing = [name for name in ("group", "version", "kind") if getattr(self, name) is None]
        if missing:
            raise mistake(
                f"no resource is named: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
                f" missing; or list the resources in resourceSelectors"
            )
        refuse_core_kind(self.group or "", self.version or "", self.kind or "", info)
        return self


OWN_WRITES = "bellhop.dev/own-writes"
"""The annotation of a source that asks for what Bellhop applies itself, as soon as it does."""

_SEND_EVENTS = "ring"

CLOUD_EVENT_TTL = "bellhop.dev/cloud-event-ttl"
"""The annotation of a source that forgets a CloudEvent so long after it came, as in 24h."""

_TTL = re.compile(r"(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,5})s)?\Z", re.ASCII)

FLAT_FIELDS = ("group", "version", "kind", *_Selecting.model_fields)


def _alias(field: str) -> str:
    return EventSourceSpec.model_fields[field].alias or field


class ResourceSelector(Struct, frozen=True):
    """A selector of objects of one kind; empty fields ask nothing.

    Of `script`, which is Lua, and `rules`, which are CEL, one has to say yes if there are any.
    Objects that are being deleted are among them where `deleting` says so.
    """

    gvk: GVK
    namespace: str = ""
    name: str = ""
    label_filters: tuple[LabelFilter, ...] = ()
    selector: Selector | None = None
    script: str = ""
    rules: "tuple[CelRule, ...]" = ()
    deleting: bool = False


class MessageSelector(Struct, frozen=True):
    """A filter of CloudEvents: by attributes, then by `script` or `rules` if there are any."""

    criterion: Criterion
    script: str = ""
    rules: "tuple[CelRule, ...]" = ()


class EventSource(Declaration):
    """The objects that are events, and the way in which they are reported."""

    for_tenants: ClassVar[bool] = True

    spec: EventSourceSpec = Field(default_factory=EventSourceSpec)

    @cached_property
    def selectors(self) -> tuple[ResourceSelector, ...]:
        """List what is selected, in one shape for both forms."""
        return tuple(self._selectors())

    @cached_property
    def messages(self) -> tuple[MessageSelector, ...]:
        """List which CloudEvents are taken."""
        return tuple(_message_selector(each) for each in self.spec.messaging_match_criteria)

    @cached_property
    def kinds(self) -> frozenset[GVK]:
        """Name the kinds of which the source selects objects, CloudEvents among them."""
        events = (CLOUD_EVENT,) if self.messages else ()
        return frozenset((*(selector.gvk for selector in self.selectors), *events))

    @cached_property
    def scripted(self) -> bool:
        """Return whether a script or a rule is run over an object, which may take long."""
        own, events = self.selectors, self.messages
        return any(x.script or x.rules for x in own) or any(x.script or x.rules for x in events)

    @property
    def cloud_event_ttl(self) -> timedelta | None:
        """Say how long a CloudEvent counts after it came; None is without an end."""
        text = self.annotations.get(CLOUD_EVENT_TTL)
        return None if text is None else _duration(text)

    @property
    def asks_own_writes(self) -> bool:
        """Return whether objects that Bellhop applies are events as others' are."""
        return OWN_WRITES in self.annotations

    @model_validator(mode="after")
    def _check_annotations(self) -> Self:
        asked = self.annotations.get(OWN_WRITES, _SEND_EVENTS)
        if asked != _SEND_EVENTS:
            raise mistake(f"{OWN_WRITES} is {asked!r}; it is {_SEND_EVENTS!r}, or left out")
        ttl = self.annotations.get(CLOUD_EVENT_TTL)
        if ttl is not None and not _duration(ttl):
            raise mistake(f"{CLOUD_EVENT_TTL} is {ttl[:40]!r}; write it like '24h' or '1h30m'")
        if self.account and self.messages:
            raise mistake(
                "messagingMatchCriteria stand beside the labels of a service account, and no right"
                " in a cluster says which CloudEvents it may see; take one of them away"
            )
        return self

    @property
    def collect_resources(self) -> bool:
        """Return whether the whole objects go into the report."""
        return self.spec.collect_resources

    @property
    def aggregation(self) -> str:
        """Return the script that chooses among all that is selected; empty if all of it counts."""
        return self.spec.aggregated_selection

    def _selectors(self) -> Iterator[ResourceSelector]:
        spec = self.spec
        if spec.kind is not None:
            yield _selector(GVK(spec.group or "", spec.version or "", spec.kind), spec)
        for entry in spec.resource_selectors:
            yield _selector(GVK(entry.group, entry.version, entry.kind), entry)


class AskingSource(EventSource):
    """An EventSource by which another kind asks for objects.

    Its name is none that a manifest may have, so that nobody else writes it.
    """

    @classmethod
    def of(
        cls, name: str, spec: EventSourceSpec, written: Any, labels: Mapping[str, str]
    ) -> "AskingSource":
        """Make a source; what is `written` is what decides what it finds."""
        found = cls.model_construct(
            api_version="lib.projectsveltos.io/v1beta1",
            kind="EventSource",
            metadata=ObjectMeta.model_construct(
                name=name, namespace="", labels=dict(labels), annotations={}
            ),
            spec=spec,
        )
        found._written = {"spec": written}  # noqa: SLF001 - it is made here
        return found


def _message_selector(match: "MessagingMatch") -> MessageSelector:
    criterion = Criterion(
        source=match.cloud_event_source,
        type=match.cloud_event_type,
        subject=match.cloud_event_subject,
        channel=match.subject,
    )
    return MessageSelector(criterion, match.evaluate, match.evaluate_cel)


def _duration(text: str) -> timedelta:
    """Read a duration; none is one that is wrong."""
    found = _TTL.match(text)
    hours, minutes, seconds = (int(each or 0) for each in found.groups()) if found else (0, 0, 0)
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def _selector(gvk: GVK, spec: _Selecting) -> ResourceSelector:
    return ResourceSelector(
        gvk=gvk,
        namespace=spec.namespace,
        name=spec.name,
        label_filters=spec.label_filters,
        selector=spec.selector,
        script=spec.script or spec.evaluate,
        rules=spec.evaluate_cel,
        deleting=spec.include_deleting_resources,
    )
