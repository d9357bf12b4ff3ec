"""A check of a cluster, as the record of a profile carries it; `checks.py` is how it is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.gvk import GVK

When = Literal["preDeployChecks", "validateHealths", "preDeleteChecks", "postDeleteChecks"]
"""When a check is asked, by the field it was written in."""


class CheckRule(Struct, frozen=True):
    """A CEL rule of a check, by its name."""

    name: str
    rule: str


class MetricQuery(Struct, frozen=True):
    """A query of Prometheus, by the name that its value has in the script."""

    name: str
    query: str


class MetricSource(Struct, frozen=True):
    """Where a check queries metrics, with the credentials of a Secret if it names one.

    The `url` and the `queries` are templates of deploy time. An empty `namespace` is the cluster's.
    """

    url: str
    path: str
    queries: tuple[MetricQuery, ...]
    secret: str = ""
    namespace: str = ""

    @property
    def address(self) -> str:
        """Return the URL that takes queries."""
        return f"{self.url.rstrip('/')}/{self.path.lstrip('/')}"


class JobSource(Struct, frozen=True):
    """A ConfigMap or Secret that holds a Job, which has so many seconds to succeed."""

    kind: Literal["ConfigMap", "Secret"]
    namespace: str
    name: str
    seconds: int

    @property
    def ref(self) -> str:
        """Name the ConfigMap or Secret, as contents do."""
        return f"{self.kind} {self.namespace}/{self.name}"


class Check(Struct, frozen=True):
    """What must be so of the objects of a kind in a cluster before a profile goes on.

    Those are meant that are in the `namespace` and fit the label selector `labels`, where these
    are not empty. Each is to be healthy by the `script`, and by one of the `rules`. It belongs to
    one `feature` of the profile. The script is given `metrics`, too; without a kind these are all
    that it is given. One with a `job` is about its success, and nothing else.
    """

    when: When
    name: str
    kind: GVK
    namespace: str = ""
    labels: str = ""
    script: str = ""
    rules: tuple[CheckRule, ...] = ()
    feature: str = "Resources"
    metrics: MetricSource | None = None
    job: JobSource | None = None

    @property
    def of_removal(self) -> bool:
        """Say whether it is asked where a profile leaves a cluster: nothing there is fine then."""
        return self.when in {"preDeleteChecks", "postDeleteChecks"}

    def within(self, namespace: str) -> Check:
        """Return it with what it refers to in the namespace of a Profile, whatever it names."""
        metrics = self.metrics and replace(self.metrics, namespace=namespace)
        job = self.job and replace(self.job, namespace=namespace)
        return replace(self, metrics=metrics, job=job)


def times(checks: Iterable[Check]) -> tuple[When, ...]:
    """Say when there is something to check."""
    return tuple(sorted({each.when for each in checks}))
