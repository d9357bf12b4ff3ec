"""Labels that classifiers give a cluster, computed from those that it satisfies.

The first classifier that gives a label keeps it, as in Sveltos, for as long as the cluster
satisfies it; a label that a user set belongs to the user. Of two classifiers at once the first by
name wins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.api.classifier import Classifier
from bellhop.core.sveltos_annotations import APPLYSET
from bellhop.state.cluster import MOST_LABELS, Cluster

_SET = "somebody has set it, and it stays"
_FULL = f"the cluster has {MOST_LABELS} labels, and may have no more"

MOST_GIVEN = 64
"""Labels of one cluster that classifiers give: its record names the classifier of each."""

_ALL_GIVEN = f"classifiers give the cluster {MOST_GIVEN} labels, and may give no more"


class Given(NamedTuple):
    """The cluster as it is to be, and which labels are lacking, as `Classified.lacks` has them."""

    cluster: Cluster
    lacks: Mapping[str, str]


def give(
    cluster: Cluster,
    classifiers: Mapping[str, Classifier],
    matching: Collection[str],
    staying: Collection[str] = (),
) -> Given:
    """Give a cluster the labels of the classifiers that it satisfies, and take others' back.

    Those that are `staying` keep what they gave, and give nothing new.
    """
    labels, given = dict(cluster.labels), dict[str, str]()
    for key, name in cluster.given.items():
        requested = classifiers[name].labels if name in {*matching, *staying} else {}
        if key in requested:
            labels[key], given[key] = requested[key], name
        else:
            labels.pop(key, None)
    lacks: dict[str, str] = {}
    for name in sorted(matching):
        for key, value in classifiers[name].labels.items():
            if why := _refusal(name, key, labels, given):
                lacks[f"{name} {key}"] = why
            else:
                labels[key], given[key] = value, name
    return Given(replace(cluster, labels=labels, given=given), lacks)


def carry(
    old: Cluster | None, asked: Mapping[str, str] | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels of a cluster that is registered, and those of them that classifiers gave.

    Requested labels replace those requested before, and none of the classifiers'; None requests
    nothing new.
    """
    if old is None:
        return dict(asked or {}), {}
    if asked is None:
        return dict(old.labels), dict(old.given)
    given = {key: name for key, name in old.given.items() if key not in asked}
    return {**{key: old.labels[key] for key in given}, **asked}, given


def carry_in_set(
    old: Cluster | None, asked: Mapping[str, str] | None, applyset: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Carry labels as `carry` does, for a cluster in an applyset; in no set if that is empty.

    None keeps it in the set that it is in, as does a label that is asked for.
    """
    labels, given = carry(old, asked)
    if applyset:
        labels[APPLYSET] = applyset
        given.pop(APPLYSET, None)
    elif applyset is not None and APPLYSET not in {*(asked or ()), *given}:
        labels.pop(APPLYSET, None)
    return labels, given


def _refusal(name: str, key: str, labels: Mapping[str, str], given: Mapping[str, str]) -> str:
    """Return why a classifier cannot give a label; empty if it can, or has."""
    holder = given.get(key)
    if holder is not None:
        return "" if holder == name else f"classifier '{holder}' gives it"
    if key in labels:
        return _SET
    if len(given) >= MOST_GIVEN:
        return _ALL_GIVEN
    return _FULL if len(labels) >= MOST_LABELS else ""
