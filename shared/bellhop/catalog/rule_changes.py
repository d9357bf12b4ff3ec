"""Rules of a later catalog, from those of an earlier one and the manifests that changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from bellhop.api.kinds import (
    KINDS,
    Classifier,
    ClusterHealthCheck,
    ClusterProfile,
    ClusterPromotion,
    ClusterSet,
    Declaration,
    DeclarationKey,
    EventSource,
    EventTrigger,
    HealthCheck,
)
from bellhop.api.names import classifier_of, health_check_of
from bellhop.api.stage_profile import StageProfile
from bellhop.catalog.selections import Selections

_Rule = TypeVar(
    "_Rule",
    EventSource,
    EventTrigger,
    ClusterProfile,
    ClusterPromotion,
    ClusterSet,
    Classifier,
    ClusterHealthCheck,
    HealthCheck,
)
_Deploying = TypeVar("_Deploying", EventTrigger, ClusterProfile)


def find_askers(
    classifiers: Iterable[Classifier], health_checks: Iterable[HealthCheck]
) -> dict[str, EventSource]:
    """Return the sources by which classifiers and health checks ask, by name."""
    found = [source for each in classifiers for source in each.sources]
    found += [each.source for each in health_checks]
    return {source.name: source for source in found}


def find_asker(source: str) -> str:
    """Name the classifier or health check that a source is of; empty for any other source."""
    return classifier_of(source) or health_check_of(source)


def change_rules(
    old: Mapping[str, _Rule],
    kind: type[_Rule],
    changed: Mapping[DeclarationKey, Declaration | None],
) -> dict[str, _Rule]:
    """Return the rules of a kind after a change."""
    new = dict(old)
    for key in changed:
        # One that went may come again as another kind, which is the same: it is set below.
        if issubclass(KINDS[key.kind][0], kind):
            new.pop(key.rule, None)
    return new | {each.rule: each for each in changed.values() if isinstance(each, kind)}


def change_stages(
    before: Selections, later: Selections, changed: Iterable[DeclarationKey]
) -> set[str]:
    """Have a later catalog contain the stages of changed promotions; return their profiles' names.

    A profile that a user wrote under such a name stays: `apply` refuses the promotion.
    """
    promotions = {key.name for key in changed if key.kind == "ClusterPromotion"}
    former = before.stages_of(promotions)
    later.profiles = {
        name: each
        for name, each in later.profiles.items()
        if name not in former or not isinstance(each, StageProfile)
    }
    for promotion in promotions & later.promotions.keys():
        for each in later.promotions[promotion].profiles:
            later.profiles.setdefault(each.rule, each)
    return former | later.stages_of(promotions)


def select_readers(rules: Mapping[str, _Deploying]) -> dict[str, _Deploying]:
    """Return the rules whose templates read other objects, by name."""
    return {name: each for name, each in rules.items() if each.readings}


def change_readers(
    old: Mapping[str, _Deploying], rules: Mapping[str, _Deploying], changed: Iterable[str]
) -> dict[str, _Deploying]:
    """Return the rules whose templates read other objects after a change of some, by name."""
    new = dict(old)
    for name in changed:
        new.pop(name, None)
        new |= select_readers({name: rules[name]} if name in rules else {})
    return new
