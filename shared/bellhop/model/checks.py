"""Checks before and after a deployment or a removal, which are not run yet."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bellhop.model.base import Many, Model, mistake
from bellhop.model.names import Duration, Text
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
    """One check of objects."""

    name: Text
    feature_id: Literal["Resources", "Helm", "Kustomize"] = Field(alias="featureID")
    group: str = ""
    version: str = ""
    kind: str = ""
    label_filters: Many[LabelFilter] = ()
    namespace: str = ""
    metric_source: MetricSource | None = None
    metric_queries: Many[MetricQuery] = ()
    script: str = ""
    evaluate_cel: Many[CelRule] = Field(default=(), alias="evaluateCEL")
    job_check: JobCheck | None = None

    @model_validator(mode="after")
    def _has_one_check(self) -> Self:
        if self.job_check is not None and (self.script or self.evaluate_cel):
            raise mistake("jobCheck stands beside script or evaluateCEL; keep one of them")
        return self
