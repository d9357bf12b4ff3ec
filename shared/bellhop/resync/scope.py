"""Scope of a resync: the kinds, sources and triggers that have to be evaluated again.

`Health.judgement` has a digest of each source by which all objects of a cluster were evaluated.
It decides, rather than the request: a message may have been dead-lettered while the cluster did
not answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import GVK
from bellhop.state.cluster import Health
from bellhop.state.resync_progress import ResyncProgress


def kinds_to_evaluate(
    catalog: Catalog, cluster: str, health: Health, progress: ResyncProgress
) -> set[GVK]:
    """Return the kinds of which every object has to be evaluated, changed or not."""
    return {
        gvk
        for source, digest in catalog.judgement(cluster).items()
        for gvk in catalog.sources[source].kinds
        if progress.full or not _is_evaluated(health.judgement, source, str(gvk), digest)
    }


def changed_sources(
    catalog: Catalog, cluster: str, health: Health, progress: ResyncProgress
) -> set[str] | None:
    """Return the sources whose matches may have changed; None means all, of deleted ones too."""
    current = catalog.judgement(cluster)
    deleted = {each.partition(" ")[0] for each in health.judgement} - set(current)
    if progress.full or deleted:
        return None
    return {
        source
        for source, digest in current.items()
        # The name without a kind stands for the source itself: it may have dropped a kind.
        for kind in ("", *map(str, set(catalog.sources[source].kinds) - set(progress.unseen)))
        if not _is_evaluated(health.judgement, source, kind, digest)
    }


def evaluated_sources(
    catalog: Catalog, cluster: str, health: Health, progress: ResyncProgress
) -> dict[str, str]:
    """Return the digests of the sources by which all objects are evaluated, for `Health`.

    A kind that could not be listed keeps its former evaluation, unless observations were written.
    """
    found: dict[str, str] = {}
    for source, digest in catalog.judgement(cluster).items():
        kinds = catalog.sources[source].kinds
        lost = {
            gvk
            for gvk in kinds & {*progress.unseen}
            if progress.full
            or str(gvk) in progress.untold
            or not _is_evaluated(health.judgement, source, str(gvk), digest)
        }
        if lost:
            found |= {f"{source} {kind}": digest for kind in ("", *map(str, kinds - lost))}
        else:
            found[source] = digest
    return found


def affected_triggers(catalog: Catalog, cluster: str, sources: set[str] | None) -> list[str]:
    """Return the triggers to instantiate after some sources changed; after all if it is None."""
    if sources is None:
        return sorted(catalog.triggers)
    return sorted({name for each in sources for name in catalog.triggers_on(cluster, each)})


def _is_evaluated(evaluated: Mapping[str, str], source: str, kind: str, digest: str) -> bool:
    return digest in (evaluated.get(source), evaluated.get(f"{source} {kind}"))
