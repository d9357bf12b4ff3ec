"""What matches EventSources in clusters, and what is not well there, in sveltosctl's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

from msgspec import Struct

from bellhop.api.source_names import asker, health_check_of
from bellhop.cli.output import Row
from bellhop.cli.redaction import hidden
from bellhop.diagnosis.reports import aggregates, object_of, report, selection
from bellhop.extras.health.state import MESSAGE, STATE, counting
from bellhop.installation.installation import Installation
from bellhop.state.record import Match, Selection


class Wanted(Struct, frozen=True):
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
    """Yield one row for each object that a source takes, or a health check finds not well."""
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
        if health_check_of(source):
            yield from _unwell(here, cluster, source)


def _unwell(here: Installation, cluster: str, source: str) -> Iterator[Match]:
    """Yield what a health check finds not well, with the state and what the script says."""
    found = selection(here, cluster, source)
    check = here.catalogs.known().health_checks.get(health_check_of(source))
    if not isinstance(found, Selection) or check is None:
        return
    for each in counting(found, check.patience, here.records.clock.now()):
        said = ": ".join(filter(None, (each.manifest.get(part) for part in (STATE, MESSAGE))))
        yield Match(
            cluster,
            source,
            each.key,
            matching=True,
            digest=each.digest,
            since=each.since,
            message=said,
        )
