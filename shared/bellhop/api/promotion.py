"""ClusterPromotion: one set of add-ons, and the stages in which clusters get each change of it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from bellhop.api.core_kinds import WRITTEN_NOW
from bellhop.api.manifest import Declaration
from bellhop.api.policy_ref import PolicyRef, PolicyRefSpec
from bellhop.api.profile import ProfileTemplateSpec
from bellhop.api.promotion_annotations import (
    APPROVED,
    EMPTY_STAGE,
    LIVE_INPUTS,
    MAX_FAILURES,
    NOTIFY,
    ON_FAILURE,
    PROGRESS_DEADLINE,
    PROMOTION_ANNOTATIONS,
    REACHED,
    list_annotation_problems,
)
from bellhop.api.stage_profile import (
    StagePlace,
    StageProfile,
    VerificationProfile,
    name_stage_profile,
)
from bellhop.core.base import Later, Many, Model, mistake
from bellhop.core.identity import cut_name
from bellhop.core.names import Duration, Name, Text, seconds_of
from bellhop.core.selector import Selector
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE, PROFILE_PAUSED
from bellhop.core.windows import Window, read_window
from bellhop.errors import InvalidError

MOST_STAGES = 20
PROMOTION_NAME = "config.projectsveltos.io/promotionname"
"""Label of a stage's profiles: the promotion."""
STAGE_NAME = "config.projectsveltos.io/stagename"
"""Annotation of a stage's profiles: the stage."""
VERIFICATION = "config.projectsveltos.io/promotion-verification"
"""Label of the profile that verifies a stage: `true`."""

_TENANT = {ACCOUNT_NAME, ACCOUNT_NAMESPACE}
_ANY_TIME = datetime(2024, 1, 1, tzinfo=UTC)
"""A cron expression is valid at any time, or at none."""

_Check = Annotated[Any, Later("checks", "Check")]


class PromotionWindow(Model):
    """The times in which a promotion may happen: two cron expressions, in UTC."""

    from_: Text
    to: Text

    @model_validator(mode="after")
    def _opens(self) -> Self:
        try:
            read_window(self.from_, self.to, _ANY_TIME)
        except InvalidError as error:
            raise mistake(str(error)) from error
        return self

    @property
    def window(self) -> Window:
        """The window, for `bellhop.core.windows`."""
        return read_window(self.from_, self.to, _ANY_TIME)


class TriggerChecks(Model):
    """The part that both sorts of triggers have: a delay, a deployment and checks, in this order.

    Sveltos has them on automatic triggers only.
    """

    delay: Duration | None = None
    pre_health_check_deployment: Many[PolicyRefSpec] = ()
    post_delay_health_checks: Many[_Check] = ()

    @field_validator("pre_health_check_deployment", mode="before")
    @classmethod
    def _is_a_list(cls, refs: Any) -> Any:
        """Refuse the form of an example in Sveltos' documentation, which its definition refuses."""
        if isinstance(refs, dict):
            raise mistake(
                "this is a list, each entry as in policyRefs; write '- {kind: ConfigMap, namespace:"
                " NAMESPACE, name: NAME}' instead of configMapRefs"
            )
        return refs

    @field_validator("post_delay_health_checks")
    @classmethod
    def _can_fail(cls, checks: tuple[Any, ...]) -> tuple[Any, ...]:
        for number, each in enumerate(checks):
            if not (each.script or each.evaluate_cel or each.job_check or each.metric_source):
                raise mistake(
                    f"the check {each.name!r} asks nothing, and would always pass; give it a script"
                    " or evaluateCEL",
                    number,
                )
        return checks


class AutoTrigger(TriggerChecks):
    """Promote once the delay is over, the checks pass and the window is open."""

    promotion_window: PromotionWindow | None = None


class ManualTrigger(TriggerChecks):
    """Promote once somebody has approved it, too."""

    approved: bool = False
    automatic_reset: bool = True


class StageTrigger(Model):
    """The condition to leave a stage."""

    auto: AutoTrigger | None = None
    manual: ManualTrigger | None = None

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if (self.auto is None) == (self.manual is None):
            raise mistake("a trigger has either auto or manual; write one of them")
        return self

    @property
    def checks(self) -> TriggerChecks:
        """The delay, the deployment and the checks."""
        found = self.auto or self.manual
        assert found
        return found


class PromotionStage(Model):
    """One stage, as written."""

    name: Name
    cluster_selector: Selector = Field(default_factory=Selector)
    trigger: StageTrigger | None = None


class ClusterPromotionSpec(Model):
    """The spec as written."""

    profile_spec: ProfileTemplateSpec = Field(default_factory=ProfileTemplateSpec)
    stages: Annotated[Many[PromotionStage], Field(min_length=1, max_length=MOST_STAGES)]
    preserve_cluster_profiles_on_delete: bool = False

    @field_validator("stages")
    @classmethod
    def _has_each_name_once(cls, stages: tuple[PromotionStage, ...]) -> tuple[PromotionStage, ...]:
        names = [each.name for each in stages]
        for number, name in enumerate(names):
            if name in names[:number]:
                sentence = f"two stages have the name {name!r}; give one of them another"
                raise mistake(sentence, number, "name")
        return stages


class StageGate(NamedTuple):
    """The condition to leave a stage, in the units that are computed with."""

    delay: timedelta = timedelta(0)
    verified: bool = False
    """A verification profile has to be deployed first, and its checks have to pass."""
    window: Window | None = None
    manual: bool = False
    approved: bool = False
    """The manifest approves the release that waits when it is applied."""
    resets: bool = True
    """That approval counts once."""


class ClusterPromotion(Declaration):
    """Add-ons that each change of takes through stages of clusters, one after the other."""

    deploys: ClassVar[bool] = True
    for_tenants: ClassVar[bool] = True
    pauses: ClassVar[str] = PROFILE_PAUSED

    spec: ClusterPromotionSpec

    @model_validator(mode="after")
    def _has_valid_annotations(self) -> Self:
        for name, problem in list_annotation_problems(self.annotations):
            raise mistake(problem, "metadata", "annotations", name)
        stage, _ = self.approved_release
        if stage and stage not in [each.name for each in self.stages]:
            sentence = f"there is no stage {stage!r}; write STAGE@RELEASE"
            raise mistake(sentence, "metadata", "annotations", APPROVED)
        return self

    @model_validator(mode="after")
    def _does_not_wait_for_itself(self) -> Self:
        own = {self.profile_name(each.name) for each in self.stages}
        if both := sorted(own.intersection(self.spec.profile_spec.depends_on)):
            raise mistake(
                f"dependsOn names {both[0]!r}, which is a stage of this promotion; stages come one"
                " after the other anyway",
                *("spec", "profileSpec", "dependsOn"),
            )
        return self

    @property
    def stages(self) -> tuple[PromotionStage, ...]:
        """The stages, in their order."""
        return self.spec.stages

    @property
    def max_failures(self) -> str:
        """The clusters of a stage that may fail: a number, or a percentage."""
        return self.annotations.get(MAX_FAILURES, "0")

    @property
    def progress_deadline(self) -> timedelta | None:
        """The time in which a stage has to be deployed; None for any."""
        text = self.annotations.get(PROGRESS_DEADLINE)
        return timedelta(seconds=seconds_of(text)) if text else None

    @property
    def rolls_back(self) -> bool:
        """Return whether the clusters of a stage that fails get the release before."""
        return self.annotations.get(ON_FAILURE) == "rollback"

    @property
    def skips_empty(self) -> bool:
        """Return whether a stage without clusters counts as deployed."""
        return self.annotations.get(EMPTY_STAGE) == "skip"

    @property
    def approved_release(self) -> tuple[str, int]:
        """The stage and the release that the annotation approves; an empty stage for none."""
        stage, _, number = self.annotations.get(APPROVED, "").rpartition("@")
        return stage, int(number or 0)

    @property
    def reached_stage(self) -> str:
        """The stage that the first release begins at, and has reached those before; empty for none.

        It may have been renamed since: then it has no effect.
        """
        name = self.annotations.get(REACHED, "")
        return name if name in [each.name for each in self.stages] else ""

    @property
    def live_inputs(self) -> frozenset[str]:
        """References that no release freezes, as `Secret NAMESPACE/NAME`."""
        listed = self.annotations.get(LIVE_INPUTS, "").split(",")
        return frozenset(filter(None, map(str.strip, listed)))

    def gate(self, name: str) -> StageGate:
        """Return the condition to leave a stage; the last stage has none."""
        (stage,) = (each for each in self.stages if each.name == name)
        if stage.trigger is None or stage is self.stages[-1]:
            return StageGate()
        checks, auto, manual = stage.trigger.checks, stage.trigger.auto, stage.trigger.manual
        return StageGate(
            delay=timedelta(seconds=seconds_of(checks.delay)) if checks.delay else timedelta(0),
            verified=bool(checks.pre_health_check_deployment or checks.post_delay_health_checks),
            window=auto.promotion_window.window if auto and auto.promotion_window else None,
            manual=manual is not None,
            approved=bool(manual and manual.approved),
            resets=manual is None or manual.automatic_reset,
        )

    def profile_name(self, stage: str) -> str:
        """Return the name of a stage's profile."""
        return name_stage_profile(self.name, stage)

    def verification_name(self, stage: str) -> str:
        """Return the name of the profile that verifies a stage."""
        return cut_name(f"preverification-{self.name}-{stage}")

    @property
    def holder_refs(self) -> tuple[PolicyRef, ...]:
        """The refs to ConfigMaps and Secrets of its profiles; those of the stages are the same."""
        first, *others = self.profiles
        found = (first, *(each for each in others if each.verifies))
        refs = tuple(ref for each in found for ref in each.holder_refs)
        return (*refs, *self.receiver_refs)

    @property
    def notify(self) -> str:
        """The receiver of notifications: NAMESPACE/SECRET, KubernetesEvent, or empty for none."""
        return self.annotations.get(NOTIFY, "")

    @property
    def receiver_refs(self) -> tuple[PolicyRef, ...]:
        """The ref to the Secret of its receiver."""
        namespace, slash, name = self.notify.partition("/")
        return (PolicyRef(namespace, name, "Secret"),) if slash else ()

    @cached_property
    def profiles(self) -> tuple[StageProfile, ...]:
        """The profiles of the stages in their order, each before the one that verifies it."""
        return tuple(self._list_profiles())

    def _list_profiles(self) -> Iterator[StageProfile]:
        for each in self.stages:
            yield self.make_profile(each.name, self.profile_spec)
            if self.gate(each.name).verified:
                yield self._make_verification(each.name)

    @property
    def profile_spec(self) -> dict[str, Any]:
        """The profileSpec as it is written."""
        return dict(self.written["spec"].get("profileSpec") or {})

    def make_profile(self, stage: str, spec: Mapping[str, Any]) -> StageProfile:
        """Return the profile of a stage by a profileSpec, which may be that of a former release."""
        return self._make(StageProfile, self.profile_name(stage), stage, spec)

    def _make_verification(self, stage: str) -> StageProfile:
        trigger = self._written_stage(stage)["trigger"]
        checks = trigger.get("auto") or trigger["manual"]
        spec = {
            "policyRefs": checks.get("preHealthCheckDeployment") or [],
            "validateHealths": checks.get("postDelayHealthChecks") or [],
        }
        name = self.verification_name(stage)
        return self._make(VerificationProfile, name, stage, spec)

    def _make(
        self,
        kind: type[StageProfile],
        name: str,
        stage: str,
        spec: Mapping[str, Any],
    ) -> StageProfile:
        """Return a profile of a stage; a tenant's account and the template dialect go with it."""
        labels = {each: self.metadata.labels[each] for each in _TENANT & {*self.metadata.labels}}
        labels[PROMOTION_NAME] = cut_name(self.name)
        if kind.verifies:
            labels[VERIFICATION] = "true"
        annotations = {
            key: text for key, text in self.annotations.items() if key not in PROMOTION_ANNOTATIONS
        }
        selector = self._written_stage(stage).get("clusterSelector") or {}
        written = {
            "apiVersion": self.api_version,
            "kind": "ClusterProfile",
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": {**annotations, STAGE_NAME: stage},
            },
            "spec": {**spec, "clusterSelector": selector},
        }
        made = kind.model_validate(written, context={WRITTEN_NOW: False})
        names = [each.name for each in self.stages]
        made._written = written  # noqa: SLF001 - as `kinds` does for what is read
        made._place = StagePlace(  # noqa: SLF001 - it is no part of the manifest
            promotion=self.name,
            stage=stage,
            number=names.index(stage),
            later=tuple(each.cluster_selector for each in self.stages[names.index(stage) + 1 :]),
            others=()
            if kind.verifies
            else tuple(self.profile_name(each) for each in names if each != stage),
        )
        return made

    def _written_stage(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(
            each for each in self.written["spec"]["stages"] if each["name"] == name
        )
        return found
