"""Checks before and after a deployment or a removal, as they are written."""

import math
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from bellhop.api.core_kinds import refuse_core_kind
from bellhop.api.ref import SecretRef
from bellhop.api.rules import CelRule
from bellhop.api.source import LabelFilter
from bellhop.core.base import Many, Model, mistake
from bellhop.core.gvk import GVK
from bellhop.core.names import Duration, Namespace, Text, is_template, seconds_of
from bellhop.state import check

PROMETHEUS_PATH = "/api/v1/query"
"""The path of instant queries in Prometheus and compatible servers."""

LONGEST_JOB = 2**31 - 1
"""Seconds that Kubernetes can give a Job."""


def _http(url: str) -> str:
    """Return a URL that can be queried, or a template of one."""
    if not is_template(url):
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise mistake("the URL of metrics begins with http:// or https://, and names a host")
        if "@" in parts.netloc:
            raise mistake("the URL of metrics has credentials; keep them in a Secret of secretRef")
    return url


class MetricSource(Model):
    """A server of metrics; the URL is a template of deploy time."""

    url: Annotated[Text, AfterValidator(_http)]
    path: str = ""
    secret_ref: SecretRef | None = None


class MetricQuery(Model):
    """One query, by the name its answer has in the script."""

    name: Text
    query: Text


class JobRef(Model):
    """A ConfigMap or Secret that holds a Job."""

    kind: Literal["ConfigMap", "Secret"] = "ConfigMap"
    name: Text
    namespace: Namespace = ""


class JobCheck(Model):
    """A Job whose success is the check."""

    job_ref: JobRef
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
    def _has_one_check(self, info: ValidationInfo) -> Self:
        if self.job_check is not None and (self.script or self.evaluate_cel):
            raise mistake("jobCheck stands beside script or evaluateCEL; keep one of them")
        named = bool(self.kind or self.version or self.evaluate_cel)
        beside = self.job_check is not None or (self.metric_source is not None and not named)
        if not (beside or (self.kind and self.version)):
            missing = "version" if self.kind else "kind"
            raise mistake(f"{missing} is missing; a check reads the objects of one kind")
        if self.kind and self.job_check is None:
            refuse_core_kind(self.group, self.version, self.kind, info)
        return self

    @model_validator(mode="after")
    def _has_metrics_for_its_script(self) -> Self:
        if (self.metric_source is None) == bool(self.metric_queries):
            missing = "metricSource" if self.metric_queries else "metricQueries"
            raise mistake(f"{missing} is missing; a source of metrics and its queries go together")
        if self.metric_queries and not self.script:
            raise mistake("script is missing; it is what metricQueries are given to")
        names = [each.name for each in self.metric_queries]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise mistake(f"two of metricQueries have the name {twice[0]!r}")
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
            self._metrics(),
            self._job(),
        )

    def _metrics(self) -> check.MetricSource | None:
        source = self.metric_source
        if source is None:
            return None
        queries = tuple(check.MetricQuery(each.name, each.query) for each in self.metric_queries)
        path = source.path or PROMETHEUS_PATH
        secret = source.secret_ref or SecretRef()
        return check.MetricSource(source.url, path, queries, secret.name, secret.namespace)

    def _job(self) -> check.JobSource | None:
        if self.job_check is None:
            return None
        ref, allowed = self.job_check.job_ref, seconds_of(self.job_check.timeout)
        seconds = max(1, math.ceil(min(allowed, LONGEST_JOB)))
        return check.JobSource(ref.kind, ref.namespace, ref.name, seconds)


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
