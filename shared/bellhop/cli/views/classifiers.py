"""Classifiers: the labels that they set in matching clusters, and those that they cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.api.classifier import Classifier
from bellhop.cli.output import Column, Row
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View, name_of, select_applied
from bellhop.diagnosis import declaration_status, profile_manifests
from bellhop.diagnosis.declaration_status import ClassifierSummary
from bellhop.installation import Installation
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

Item = tuple[Classifier, ClassifierSummary, Mapping[str, Any]]


def _select(here: Installation, query: Query) -> Iterator[Item]:
    declared, known = (
        here.catalogs.current().classifiers,
        declaration_status.read_classifications(here),
    )
    for manifest in select_applied(here, query, "Classifier"):
        name = name_of(manifest)
        yield declared[name], declaration_status.summarize_classifier(known, name), manifest


def _manifest(_here: Installation, item: Item) -> Manifest:
    declared, found, manifest = item
    statuses = [_cluster_status(declared, cluster, found) for cluster in found.matching]
    return {**manifest, "status": {"machingClusterStatuses": statuses}}


def _cluster_status(declared: Classifier, cluster: str, found: ClassifierSummary) -> dict[str, Any]:
    """Return the status of a cluster as Sveltos has it, which spells the list's name so."""
    lacks = {label: why for (where, label), why in found.lacks.items() if where == cluster}
    return {
        "clusterRef": profile_manifests.cluster_ref(cluster),
        "managedLabels": [key for key in declared.labels if key not in lacks],
        "unManagedLabels": [
            {"key": key, "failureMessage": lacks[key]} for key in declared.labels if key in lacks
        ],
    }


def _row(_here: Installation, item: Item) -> Row:
    declared, found, _ = item
    return {
        "name": declared.name,
        "labels": _labels(declared),
        "matching": len(found.matching),
        "lacking": len(found.lacks),
        "clusters": ", ".join(found.matching) or "<none>",
    }


def _describe(here: Installation, item: Item, description: Description) -> None:
    declared, found, _ = item
    constraints = declared.spec.kubernetes_version_constraints
    kinds = [str(each.gvk) for source in declared.sources for each in source.selectors]
    description.begin("Classifier", declared.name)
    description.field("Labels", _labels(declared))
    description.field("Kubernetes", ", ".join(f"{x.comparison} {x.version}" for x in constraints))
    description.field("Selects", ", ".join(kinds))
    description.table(
        "Clusters",
        (
            (cluster, _state(cluster, found), _evaluate(here, cluster, declared))
            for cluster in sorted({*found.matching, *found.open, *found.leaving})
        ),
        nothing="no cluster satisfies it",
    )
    description.table(
        "Labels that it does not give",
        ((cluster, label, why) for (cluster, label), why in sorted(found.lacks.items())),
    )


def _state(cluster: str, found: ClassifierSummary) -> str:
    if cluster in found.matching:
        return "satisfies it"
    return _LEAVING if cluster in found.leaving else _OPEN


def _evaluate(here: Installation, cluster: str, declared: Classifier) -> str:
    results = declaration_status.list_classifier_results(here, cluster, declared)
    return "; ".join(f"{name}: {message}" for name, message in results)


def _labels(declared: Classifier) -> str:
    return ",".join(f"{key}={value}" for key, value in declared.labels.items())


VIEWS = {"classifier": View(COLUMNS, _select, _row, _manifest, _describe)}
