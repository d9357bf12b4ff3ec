"""A check of a cluster as a profile carries it; `api/checks.py` reads manifests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.gvk import GVK

When = Literal["preDeployChecks", "validateHealths", "preDeleteChecks", "postDeleteChecks"]
"""The moment of a check, by the field that it was written in."""


class CheckRule(Struct, frozen=True):
    """A CEL rule of a check."""

    name: str
    rule: str


class MetricQuery(Struct, frozen=True):
    """A query of Prometheus, by the name of its value in the script."""

    name: str
    query: str


class MetricSource(Struct, frozen=True):
    """The Prometheus that a check queries; its texts are templates of deploy time."""

    url: str
    path: str
    queries: tuple[MetricQuery, ...]
    secret: str = ""
    """The Secret of its credentials, if it needs some."""
    namespace: str = ""
    """Of the Secret; empty for the cluster's."""

    @property
    def address(self) -> str:
        """Return the URL that takes queries."""
        return f"{self.url.rstrip('/')}/{self.path.lstrip('/')}"


class JobSource(Struct, frozen=True):
    """A ConfigMap or Secret that holds a Job."""

    kind: Literal["ConfigMap", "Secret"]
    namespace: str
    name: str
    seconds: int
    """The time in which the Job must succeed."""

    @property
    def ref(self) -> str:
        """Return the ConfigMap or Secret as contents name it."""
        return f"{self.kind} {self.namespace}/{self.name}"


class Check(Struct, frozen=True):
    """A condition on objects of a kind in a cluster, before or after a step of deployment."""

    when: When
    name: str
    kind: GVK
    namespace: str = ""
    """Only objects there count, if it is not empty."""
    labels: str = ""
    """A label selector."""
    script: str = ""
    """Each object must be healthy by it, and by one of the rules."""
    rules: tuple[CheckRule, ...] = ()
    feature: str = "Resources"
    """The feature of the profile that it belongs to."""
    metrics: MetricSource | None = None
    """Given to the script; without a kind they are all that it gets."""
    job: JobSource | None = None
    """The success of this Job is the whole check."""

    @property
    def of_removal(self) -> bool:
        """Return whether it belongs to a removal: a check that finds no object passes then."""
        return self.when in {"preDeleteChecks", "postDeleteChecks"}

    def with_namespace(self, namespace: str) -> Check:
        """Return it with all refs in the namespace of a Profile."""
        metrics = self.metrics and replace(self.metrics, namespace=namespace)
        job = self.job and replace(self.job, namespace=namespace)
        return replace(self, metrics=metrics, job=job)


def times(checks: Iterable[Check]) -> tuple[When, ...]:
    """Return the moments that have checks."""
    return tuple(sorted({each.when for each in checks}))
