"""Status of the configuration in a cluster: whether it is confirmed, and what of it is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bellhop.api.kinds import CONFIGURED_KINDS, DeclarationKey
from bellhop.diagnosis.cluster_status import read_health
from bellhop.diagnosis.condition import Condition, failure
from bellhop.installation import Installation
from bellhop.state.cluster import Cluster


def list_conditions(here: Installation, unanswered: Mapping[str, str]) -> Iterator[Condition]:
    """Yield since when the configuration is not confirmed, and the objects that are refused.

    Of a preview nothing is in force, so nothing of it is a failure.
    """
    catalog = here.catalogs.known()
    cluster = catalog.clusters.get(catalog.configuration)
    if cluster is None or cluster.configuration == "preview":
        return
    yield from _check_confirmation(here, cluster, unanswered.get(cluster.key, ""))
    yield from _list_refused(here, cluster)


def _check_confirmation(
    here: Installation, cluster: Cluster, unanswered: str
) -> Iterator[Condition]:
    health, kept = read_health(here, cluster.key), here.records.confirmations.get(cluster.key)
    problem = health.message if health.away else unanswered or (kept.value.problem if kept else "")
    if problem:
        said = (
            f"it is not confirmed, and all of it stays in force as it was read: {problem};"
            f" `bellhop doctor {cluster.key}` names what to repair, and"
            f" `bellhop resync {cluster.key}` reads it again"
        )
        since = kept.value.at if kept and kept.value.at else health.since
        yield failure("configuration", cluster.key, said, since=since)


def _list_refused(here: Installation, cluster: Cluster) -> Iterator[Condition]:
    for kind in (each.kind for each in CONFIGURED_KINDS):
        for namespace, name, kept in here.records.configured.list_kind(kind):
            found = kept.value
            if found.is_refused:
                key = DeclarationKey(kind, namespace, name)
                effect = "its former version stays in force" if found.in_force else "it is not used"
                said = f"{' '.join(found.message.split())}; {effect} until it is changed there"
                yield failure(f"object in {cluster.key}", str(key), said, since=found.at)
