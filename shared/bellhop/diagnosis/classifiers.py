"""What classifiers make of the fleet: who satisfies each, and which labels it cannot give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from bellhop.api.classifier import Classifier
from bellhop.diagnosis.reports import report
from bellhop.installation.installation import Installation
from bellhop.state.classification import Classification


class Class(Struct, frozen=True):
    """What one classifier makes of the fleet, by clusters.

    `lacks` are labels that it does not give in a cluster, as (cluster, label), with why.
    """

    matching: Sequence[str]
    open: Sequence[str] = ()
    leaving: Sequence[str] = ()
    lacks: Mapping[tuple[str, str], str] = {}


def classified(here: Installation) -> Mapping[str, Classification]:
    """Read what classifiers make of each cluster; of one that none was asked of, nothing."""
    if not here.catalogs.known().classifiers:
        return {}
    return dict(here.records.classified.all())


def class_of(found: Mapping[str, Classification], name: str) -> Class:
    """Return what one classifier makes of the fleet."""
    lacks = {
        (cluster, label): why
        for cluster, each in found.items()
        for classifier, label, why in _lacks(each)
        if classifier == name
    }
    return Class(
        [cluster for cluster, each in found.items() if name in each.matching],
        [cluster for cluster, each in found.items() if name in each.open],
        [cluster for cluster, each in found.items() if name in each.leaving],
        lacks,
    )


def refused(here: Installation) -> Iterator[tuple[str, str, str, str]]:
    """Yield (classifier, label, cluster, why) of each label that a classifier cannot give."""
    there = here.catalogs.known().classifiers
    for cluster, each in classified(here).items():
        for classifier, label, why in _lacks(each):
            if classifier in there:
                yield classifier, label, cluster, why


def found_by(here: Installation, cluster: str, classifier: Classifier) -> Iterator[tuple[str, str]]:
    """Yield what a classifier finds in a cluster, and what is wrong, each with which selector."""
    for source in classifier.sources:
        what = "all" if source.aggregation else f"{source.selectors[0].gvk.kind}"
        found = report(here, cluster, source.name)
        yield from ((what, told) for told in found.told)
        if source.aggregation:
            said = f"{found.given} objects" + (f": {found.message}" if found.message else "")
            yield what, said
        else:
            yield what, f"{len(found.matching)} objects"


def _lacks(found: Classification) -> Iterator[tuple[str, str, str]]:
    for place, why in found.lacks.items():
        classifier, _, label = place.partition(" ")
        yield classifier, label, why
