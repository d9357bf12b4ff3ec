"""What follows from a match that changed: who makes a report of it, or profiles, or labels."""

from __future__ import annotations

from bellhop.engine.catalog import Catalog
from bellhop.messages import Aggregate, Classify, Envelope, Instantiate
from bellhop.model.asking import classifier_of
from bellhop.model.gvk import ObjectKey
from bellhop.model.record import Match
from bellhop.stages.ledger import Origin


def follow_up(catalog: Catalog, match: Match, origin: Origin) -> list[Envelope]:
    """Return what asks deploy about a match, or first for what is selected among all of them."""
    return follow(catalog, (match.cluster, match.source, match.key), origin)


def follow(catalog: Catalog, place: tuple[str, str, ObjectKey], origin: Origin) -> list[Envelope]:
    """Return the same for the match of a cluster, source and object, which need not be there."""
    cluster, name, key = place
    source = catalog.sources.get(name)
    if source and source.aggregation:
        # What becomes of it depends on all others that match.
        return [Aggregate(cluster, source.name, origin.trace, origin.rang)]
    if classifier_of(name):
        return [Classify(cluster)]
    return [
        Instantiate(
            each,
            cluster,
            str(key) if catalog.triggers[each].one_for_event else "",
            trace=origin.trace,
            rang=origin.rang,
        )
        for each in catalog.triggers_on(cluster, name)
    ]
