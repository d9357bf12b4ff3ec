"""Checks before and after a deployment or a removal, as they are written."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bellhop.model import check
from bellhop.model.base import Many, Model, mistake
from bellhop.model.gvk import GVK
from bellhop.model.names import Duration, Namespace, Text
from bellhop.model.ref import SecretRef
from bellhop.model.rules import CelRule
from bellhop.model.source import LabelFilter


class MetricSource(Model):
    """Where metrics are asked for."""

    url: Text
    path: str = ""
    secret_ref: SecretRef | None = None


class MetricQuery(Model):
    """One query, by the name its answer has in the script."""

    name: Text
    query: Text


class JobCheck(Model):
    """A Job whose success is the check."""

    job_ref: SecretRef
    timeout: Duration = "5m"


class Check(Model):
    """One check of the objects of a kind."""

    name: Text
    feature_id: Literal["Resources", "Helm", "Kustomize"] = Field(alias="featureID")
    group: str = ""
    version: str = ""
    kind: str = ""
    label_filters: Many[LabelFilter] = ()
    namespace: Namespace = ""
    metric_source: MetricSource | None = None
    metric_queries: Many[MetricQuery] = ()
    script: str = ""
    evaluate_cel: Many[CelRule] = Field(default=(), alias="evaluateCEL")
    job_check: JobCheck | None = None

    @model_validator(mode="after")
    def _has_one_check(self) -> Self:
        if self.job_check is not None and (self.script or self.evaluate_cel):
            raise mistake("jobCheck stands beside script or evaluateCEL; keep one of them")
        beside = self.job_check is not None or self.metric_source is not None
        if not (beside or (self.kind and self.version)):
            missing = "version" if self.kind else "kind"
            raise mistake(f"{missing} is missing; a check looks at the objects of one kind")
        return self

    def record(self, when: check.When) -> check.Check:
        """Return it as a profile carries it; `when` is the field that it stands in."""
        return check.Check(
            when,
            self.name,
            GVK(self.group, self.version, self.kind),
            self.namespace,
            ",".join(map(_condition, self.label_filters)),
            self.script,
            tuple(check.CheckRule(each.name, each.rule) for each in self.evaluate_cel),
            self.feature_id,
        )


def _condition(entry: LabelFilter) -> str:
    """Write one condition as a label selector has it."""
    match entry.operation:
        case "Equal":
            return f"{entry.key}={entry.value}"
        case "Different":
            return f"{entry.key}!={entry.value}"
        case "Has":
            return entry.key
        case "DoesNotHave":
            return f"!{entry.key}"
