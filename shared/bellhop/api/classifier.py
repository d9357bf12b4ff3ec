"""Classifier: what a cluster runs gives it labels, which triggers and profiles select.

Its conditions on deployed resources are EventSources, which are made here: their matches are
stored, resynced, held and reported as any other's. No manifest may have their names.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bellhop.api.manifest import Declaration
from bellhop.api.names import classifier_source
from bellhop.api.source import AskingSource, EventSourceSpec, ResourceSelectorSpec
from bellhop.core.base import Many, Model, mistake
from bellhop.core.names import label_key_problem, label_value_problem

Comparison = Literal[
    "Equal",
    "NotEqual",
    "GreaterThan",
    "GreaterThanOrEqualTo",
    "LessThan",
    "LessThanOrEqualTo",
]

_VERSION = re.compile(
    r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(-[0-9A-Za-z.-]+)?(?:\+.*)?\Z", re.ASCII
)
_PATCH = 3


def read_version(text: str) -> tuple[int, ...] | None:
    """Read the numbers of a Kubernetes version, as many as it has; None for what is none.

    A fourth number of -1 stands for one before a release, as in `1.34.0-rc.1`.
    """
    found = _VERSION.match(text)
    if found is None:
        return None
    numbers = tuple(int(each) for each in found.groups()[:_PATCH] if each is not None)
    return (*numbers, -1) if found[4] and len(numbers) == _PATCH else numbers


def _version(text: str) -> str:
    if read_version(text) is None:
        raise mistake(
            f"{text[:40]!r} is not a Kubernetes version; write it like '1.34.2' or '1.34'"
        )
    return text


class KubernetesVersionConstraint(Model):
    """One comparison of a cluster's version; of `1.34` all patches are the same."""

    version: Annotated[str, AfterValidator(_version)]
    comparison: Comparison

    def holds(self, version: tuple[int, ...]) -> bool:
        """Return whether a cluster's version passes, less what marks its builds and releases."""
        asked = read_version(self.version)
        assert asked
        there = (*version[:_PATCH], 0)[: len(asked)]
        match self.comparison:
            case "Equal":
                return there == asked
            case "NotEqual":
                return there != asked
            case "GreaterThan":
                return there > asked
            case "GreaterThanOrEqualTo":
                return there >= asked
            case "LessThan":
                return there < asked
            case "LessThanOrEqualTo":
                return there <= asked


class DeployedResourceConstraint(Model):
    """Conditions on a cluster: an object for each selector, or the result of the script."""

    resource_selectors: Many[ResourceSelectorSpec] = Field(min_length=1)
    aggregated_classification: str = ""


class ClassifierLabel(Model):
    """One label that the clusters get."""

    key: str
    value: str

    @model_validator(mode="after")
    def _is_a_label(self) -> Self:
        if problem := label_key_problem(self.key) or label_value_problem(self.value):
            raise mistake(problem)
        return self


class ClassifierSpec(Model):
    """The spec as written."""

    kubernetes_version_constraints: Many[KubernetesVersionConstraint] = ()
    deployed_resource_constraint: DeployedResourceConstraint | None = None
    classifier_labels: Many[ClassifierLabel] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_each_label_once(self) -> Self:
        keys = [each.key for each in self.classifier_labels]
        if twice := sorted({each for each in keys if keys.count(each) > 1}):
            raise mistake(f"the label {twice[0]!r} is in classifierLabels twice; keep one of them")
        return self


class Classifier(Declaration):
    """Labels for clusters, as long as these meet its conditions."""

    spec: ClassifierSpec

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels that it gives, in their order."""
        return {each.key: each.value for each in self.spec.classifier_labels}

    def admits(self, version: str) -> bool | None:
        """Return whether a Kubernetes version passes all comparisons; None where it cannot be read.

        As in Sveltos, what marks a build or one before a release is left out of the cluster's.
        """
        asked = self.spec.kubernetes_version_constraints
        if not asked:
            return True
        there = read_version(version)
        return None if there is None else all(each.holds(there) for each in asked)

    @cached_property
    def sources(self) -> tuple[AskingSource, ...]:
        """Return the sources by which it asks for resources: one a selector.

        With an aggregatedClassification it is one for all selectors.
        """
        return tuple(self._sources())

    def _sources(self) -> Iterator[AskingSource]:
        asked = self.spec.deployed_resource_constraint
        if asked is None:
            return
        written = self.manifest()["spec"]["deployedResourceConstraint"]
        selectors, script = asked.resource_selectors, asked.aggregated_classification
        if script:
            spec = EventSourceSpec(resource_selectors=selectors, aggregated_selection=script)
            yield AskingSource.of(classifier_source(self.name), spec, written, {})
            return
        for index, selector in enumerate(selectors):
            spec = EventSourceSpec(resource_selectors=(selector,))
            name = classifier_source(self.name, index)
            yield AskingSource.of(name, spec, written["resourceSelectors"][index], {})
