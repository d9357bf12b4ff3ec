"""What matches EventSources in clusters, in sveltosctl's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

from bellhop.cli.output import Row
from bellhop.cli.redaction import hidden
from bellhop.fleet.installation import Installation
from bellhop.fleet.reports import aggregates, object_of, report
from bellhop.frozen import frozen
from bellhop.model.asking import asker
from bellhop.model.record import Match


@frozen
class Wanted:
    """Which matches; what is empty asks nothing."""

    cluster_namespace: str
    cluster: str
    group: str
    kind: str
    namespace: str

    def takes(self, match: Match) -> bool:
        """Say whether a match is asked for."""
        key = match.key
        return (
            match.matching
            and self.group in ("", key.gvk.group)
            and self.kind.lower() in ("", key.gvk.kind.lower())
            and self.namespace in ("", key.namespace)
        )


def rows(here: Installation, wanted: Wanted) -> Iterator[Row]:
    """Yield one row for each object that a source takes."""
    for match in _matches(here, wanted):
        yield {
            "cluster": match.cluster,
            "gvk": str(match.key.gvk),
            "namespace": match.key.namespace,
            "name": match.key.name,
            "message": match.message,
        }


def manifests(here: Installation, wanted: Wanted) -> Iterator[Mapping[str, Any]]:
    """Yield the objects themselves, each once; of a Secret not what it holds."""
    told = set()
    for match in _matches(here, wanted):
        if (match.cluster, match.key) in told:
            continue
        told.add((match.cluster, match.key))
        manifest = object_of(here, match)
        if manifest is not None:
            yield hidden(manifest)


def _matches(here: Installation, wanted: Wanted) -> Iterator[Match]:
    for cluster in here.records.clusters.all():
        asked = wanted.cluster in ("", cluster.key)
        if asked and wanted.cluster_namespace in ("", cluster.namespace):
            yield from filter(wanted.takes, _matching(here, cluster.key))


def _matching(here: Installation, cluster: str) -> Iterator[Match]:
    """Yield what matches, by source; of one that aggregates what its script selected."""
    for source, found in groupby(here.records.matches.of(cluster), attrgetter("source")):
        if not aggregates(here, source) and not asker(source):
            yield from found
    for source in here.catalogs.known().sources_in(cluster):
        if aggregates(here, source) and not asker(source):
            yield from report(here, cluster, source).matching
