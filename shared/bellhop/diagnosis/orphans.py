"""Orphans: objects with Bellhop's ownership labels that no profile owns.

They remain after a restore of Bellhop's own state from a backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bellhop.clusters.installation_mark import other
from bellhop.clusters.pause import pause_of
from bellhop.core.gvk import Identity
from bellhop.core.sveltos_annotations import ADOPT, OWNER
from bellhop.deploy.features.resources.adoption import adopted_from
from bellhop.deploy.features.resources.planning import undecorate
from bellhop.diagnosis.condition import Condition, failure, group
from bellhop.diagnosis.names import object_name
from bellhop.errors import ConflictError, MissingError
from bellhop.installation import Installation
from bellhop.state.deployment import Orphan
from bellhop.state.event_recorder import Nobody, Note, write


class OrphanGroup(NamedTuple):
    """An object that a resync found amiss, and its cluster."""

    cluster: str
    key: Identity
    finding: Orphan


def list_orphan_groups(here: Installation, cluster: str = "") -> Iterator[OrphanGroup]:
    """Yield the orphans and conflicts that resyncs recorded, in one cluster or in all."""
    for key in [cluster] if cluster else sorted(here.catalogs.known().clusters):
        for identity, orphan in here.records.findings.of(key):
            yield OrphanGroup(key, identity, orphan)


def list_orphans(here: Installation, cluster: str = "") -> Iterator[OrphanGroup]:
    return (each for each in list_orphan_groups(here, cluster) if each.finding.what == "stray")


def remove_orphans(here: Installation, cluster: str) -> Iterator[tuple[OrphanGroup, bool]]:
    """Remove the orphans of a cluster; yield each, and whether it was removed.

    An object that has an owner now, was recreated, or lost its labels is left unchanged. An adopted
    object loses its ownership labels, and stays.

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
    for each in list(list_orphans(here, cluster)):
        place = each.key.at(each.finding.version)
        there = kube.get(*place)
        metadata = (there or {}).get("metadata") or {}
        marked = (metadata.get("annotations") or {}).get(OWNER) == each.finding.profile
        same = marked and metadata.get("uid") == each.finding.uid
        # A profile owns an object before it applies it; a resync restores what it applies later.
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


def _note(here: Installation, orphan: OrphanGroup) -> None:
    what = f"{orphan.key.kind} {orphan.key.name}, which no profile held"
    note = Note("removed", what, context={"profile": orphan.finding.profile})
    write(here.records, Nobody(), orphan.cluster, "", note)


def list_conditions(here: Installation) -> Iterator[Condition]:
    """Yield each object that is in the place of a profile's own, and the clusters with orphans."""
    found = list(list_orphan_groups(here))
    for cluster, key, orphan in found:
        if orphan.what != "stray":
            said = (
                f"somebody made it in place of the one that '{orphan.profile}' holds, and it"
                f' stays; remove it, or annotate the policy\'s object with {ADOPT}: "true" to take'
                f" it over; then `bellhop redeploy {orphan.profile}`"
            )
            about = f"{object_name(key)} in {cluster}"
            yield failure("foreign", about, said, since=orphan.since)
    orphans = (each for each in found if each.finding.what == "stray")
    for several in group((each.cluster, each) for each in orphans):
        said = (
            f"{len(several)} of its objects have Bellhop's labels, and no profile owns them;"
            " `bellhop show orphans` lists them"
        )
        since = min(each.finding.since for each in several)
        yield failure("orphans", several[0].cluster, said, since=since)
