"""What follows from a match that changed: who makes a report of it, or profiles, or labels."""

from __future__ import annotations

from bellhop.api.source_names import classifier_of
from bellhop.catalog.catalog import Catalog
from bellhop.state.event_recorder import Origin
from bellhop.state.messages import Aggregate, Envelope, Instantiate, UpdateLabels
from bellhop.state.record import Match


def follow_up(catalog: Catalog, match: Match, origin: Origin) -> list[Envelope]:
    """Return what asks deploy about a match, or first for what is selected among all of them."""
    cluster, source = match.cluster, catalog.sources.get(match.source)
    if source and source.aggregation:
        # What becomes of it depends on all others that match.
        return [Aggregate(cluster, source.name, origin.trace, origin.rang)]
    if classifier_of(match.source):
        return [UpdateLabels(cluster)]
    return [
        Instantiate(
            name,
            cluster,
            str(match.key) if catalog.triggers[name].one_for_event else "",
            trace=origin.trace,
            rang=origin.rang,
        )
        for name in catalog.triggers_on(cluster, match.source)
    ]
