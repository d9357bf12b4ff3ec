"""Objects that carry Bellhop's marks and that no profile holds: to be shown, and removed if asked.

They are what remains where Bellhop's own state was restored from a backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bellhop.clusters.installation_mark import other
from bellhop.clusters.pause import pause_of
from bellhop.core.gvk import Identity
from bellhop.core.sveltos_annotations import OWNER
from bellhop.deploy.features.resources.adoption import adopted_from
from bellhop.deploy.features.resources.planning import undecorate
from bellhop.errors import ConflictError, MissingError
from bellhop.installation.installation import Installation
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.record import Orphan


class OrphanGroup(NamedTuple):
    """One object: where it is, what it is, and what was found."""

    cluster: str
    key: Identity
    finding: Orphan


def findings(here: Installation, cluster: str = "") -> Iterator[OrphanGroup]:
    """Yield what surveys found amiss in one cluster, or in all, by cluster and object."""
    for key in [cluster] if cluster else sorted(here.catalogs.known().clusters):
        for identity, finding in here.records.findings.of(key):
            yield OrphanGroup(key, identity, finding)


def strays(here: Installation, cluster: str = "") -> Iterator[OrphanGroup]:
    """Yield the strays of one cluster, or of all."""
    return (each for each in findings(here, cluster) if each.finding.what == "stray")


def remove(here: Installation, cluster: str) -> Iterator[tuple[OrphanGroup, bool]]:
    """Remove the strays of a cluster; yield each, and whether it was removed.

    What somebody owns by now, made anew, or took the marks from is left alone. One that was adopted
    loses its marks, and stays.

    Raises:
        MissingError: there is no such cluster.
        ConflictError: it is paused, or belongs to another installation.
        BellhopError: the cluster does not answer, or refuses.
    """
    kept = here.records.clusters.get(cluster)
    if kept is None:
        raise MissingError(
            f"cannot delete orphans from cluster '{cluster}': it is not registered;"
            " `bellhop get clusters` lists those that are"
        )
    if pause := pause_of(kept.value, here.records.clock.now()):
        raise ConflictError(
            f"cannot delete orphans from cluster '{cluster}': it {pause}; resume it, or wait"
        )
    kube = here.access.open(cluster, version=kept.value.credentials)
    if taken := other(here.records.installations, kube):
        raise ConflictError(
            f"cannot delete orphans from cluster '{cluster}': {taken} has it, and what no profile"
            " holds here may be that one's; register it with --take-over if that one no longer"
            " exists"
        )
    for each in list(strays(here, cluster)):
        place = each.key.at(each.finding.version)
        there = kube.get(*place)
        metadata = (there or {}).get("metadata") or {}
        marked = (metadata.get("annotations") or {}).get(OWNER) == each.finding.profile
        same = marked and metadata.get("uid") == each.finding.uid
        # Whoever applies it owns it first. What is applied from here on, a sweep puts back.
        ours = same and here.records.owners.get(cluster, each.key) is None
        adopted = ours and there is not None and bool(adopted_from(there))
        if adopted and there is not None:
            kube.merge(*place, undecorate(there))
        deletes = ours and not adopted
        removed = deletes and kube.remove(*place, uid=each.finding.uid) is not None
        here.records.findings.delete(cluster, each.key)
        if removed:
            _note(here, each)
        yield each, removed


def _note(here: Installation, stray: OrphanGroup) -> None:
    """Write to the event log what was removed."""
    what = f"{stray.key.kind} {stray.key.name}, which no profile held"
    note = Note("removed", what, context={"profile": stray.finding.profile})
    write(here.records, Nobody(), stray.cluster, "", note)
