"""Classifiers: which labels they give, to which clusters, and where they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bellhop.api.classifier import Classifier
from bellhop.api.kinds import key_of
from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row
from bellhop.cli.views.view import Query, View, labels_of
from bellhop.diagnosis import classifiers, profile_manifests
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Manifest

COLUMNS = (
    Column("NAME", "name"),
    Column("LABELS", "labels"),
    Column("MATCHING", "matching"),
    Column("LACKING", "lacking"),
    Column("CLUSTERS", "clusters", wide=True),
)

_OPEN = "waits for a resync of all its kinds"
_LEAVING = "not satisfied any more; the labels stay for half a minute"


def _found(here: Installation, query: Query) -> Iterator[tuple[Classifier, Manifest]]:
    declared = here.catalogs.current().classifiers
    for manifest in here.records.manifests.of("Classifier"):
        key = key_of(manifest)
        if query.takes(key.namespace, key.name, labels_of(manifest)):
            yield declared[key.name], manifest


def manifests(here: Installation, query: Query) -> Iterator[Manifest]:
    """Yield classifiers as they were written, with the clusters that satisfy them as status."""
    known = classifiers.classified(here)
    for declared, manifest in _found(here, query):
        found = classifiers.class_of(known, declared.name)
        yield {
            **manifest,
            "status": {
                "machingClusterStatuses": [
                    _cluster_status(declared, cluster, found) for cluster in found.matching
                ]
            },
        }


def _cluster_status(declared: Classifier, cluster: str, found: classifiers.Class) -> dict[str, Any]:
    """Return what Sveltos says of a cluster; it is the one who spells the list's name so."""
    lacks = {label: why for (where, label), why in found.lacks.items() if where == cluster}
    return {
        "clusterRef": profile_manifests.cluster_ref(cluster),
        "managedLabels": [key for key in declared.labels if key not in lacks],
        "unManagedLabels": [
            {"key": key, "failureMessage": lacks[key]} for key in declared.labels if key in lacks
        ],
    }


def rows(here: Installation, query: Query) -> Iterator[Row]:
    """Yield one row for each classifier."""
    known = classifiers.classified(here)
    for declared, _ in _found(here, query):
        found = classifiers.class_of(known, declared.name)
        yield {
            "name": declared.name,
            "labels": _labels(declared),
            "matching": len(found.matching),
            "lacking": len(found.lacks),
            "clusters": ", ".join(found.matching) or "<none>",
        }


def describe(here: Installation, query: Query, story: Story) -> int:
    """Tell of each classifier what it asks for, who satisfies it, and what it cannot give."""
    known = classifiers.classified(here)
    told = 0
    for declared, _ in _found(here, query):
        told += 1
        _tell(here, declared, classifiers.class_of(known, declared.name), story)
    return told


def _tell(here: Installation, declared: Classifier, found: classifiers.Class, story: Story) -> None:
    story.begin("Classifier", declared.name)
    story.fact("Labels", _labels(declared))
    asked = declared.spec.kubernetes_version_constraints
    story.fact("Kubernetes", ", ".join(f"{each.comparison} {each.version}" for each in asked))
    kinds = [str(each.gvk) for source in declared.sources for each in source.selectors]
    story.fact("Selects", ", ".join(kinds))
    story.grid(
        "Clusters",
        (
            (cluster, _state(cluster, found), "; ".join(_seen(here, cluster, declared)))
            for cluster in sorted({*found.matching, *found.open, *found.leaving})
        ),
        nothing="no cluster satisfies it",
    )
    story.grid(
        "Labels that it does not give",
        ((cluster, label, why) for (cluster, label), why in sorted(found.lacks.items())),
    )


def _state(cluster: str, found: classifiers.Class) -> str:
    if cluster in found.matching:
        return "satisfies it"
    return _LEAVING if cluster in found.leaving else _OPEN


def _seen(here: Installation, cluster: str, declared: Classifier) -> Iterator[str]:
    return (f"{what}: {said}" for what, said in classifiers.found_by(here, cluster, declared))


def _labels(declared: Classifier) -> str:
    return ",".join(f"{key}={value}" for key, value in declared.labels.items())


VIEWS = {"classifier": View(COLUMNS, rows, manifests, describe)}
