"""Facts of a cluster itself that a resync reads: its identity, its version and its clock."""

from __future__ import annotations

import uuid
from datetime import timedelta

from msgspec.structs import replace

from bellhop.catalog.records import UPGRADED_FROM
from bellhop.core.gvk import GVK
from bellhop.errors import PermanentError, StaleError, UnauthorizedError
from bellhop.logs import Log
from bellhop.ports.kube import Kube
from bellhop.resync.progress import ResyncSession
from bellhop.state.messages import Apply, Publisher
from bellhop.state.records import Records

_SKEW = timedelta(minutes=2)
"""How far clocks may differ before the cluster's health says so."""

_NAMESPACE = GVK("", "v1", "Namespace")


class ClusterFacts:
    """Reads the identity and version of clusters, and records changes."""

    def __init__(self, records: Records, publisher: Publisher, log: Log) -> None:
        self._records = records
        self._publisher = publisher
        self._log = log

    def identify(self, kube: Kube, cluster: str, known: str) -> str:
        """Return the uid of a cluster; in a new cluster of an old name we own nothing yet.

        This is also the only request to a cluster in which no source is in force.
        """
        try:
            manifest = kube.get(_NAMESPACE, "", "kube-system")
        except UnauthorizedError:
            raise
        except PermanentError:
            # The credentials need not allow it: assume that the cluster is the same.
            return known
        uid = str(((manifest or {}).get("metadata") or {}).get("uid") or known)
        if known and uid != known:
            self._log.warning("Met another cluster under an old name", cluster=cluster)
            self._records.doubt_holdings(cluster)
            self._publisher.publish(
                [
                    Apply(each.trigger, each.source, each.profile, cluster)
                    for each in self._records.outcomes.of(cluster)
                ]
            )
        return uid

    def update_version(self, session: ResyncSession) -> None:
        """Record the version of the API server, which templates read.

        The pending change has its effects published later, and says what the version was: while
        a fleet is upgraded, each change is published once.
        """
        try:
            version = session.kube.version()
        except PermanentError:
            return
        stored = self._records.clusters.get(session.name)
        if version == "unknown" or stored is None or stored.value.kubernetes == version:
            return
        old, cluster = stored.value.kubernetes, replace(stored.value, kubernetes=version)
        begun = uuid.uuid4().hex
        change = {"keys": [["Cluster", cluster.namespace, cluster.name]], UPGRADED_FROM: old}
        self._records.pending.put(begun, change)
        try:
            self._records.clusters.put(cluster, expect=stored.token)
        except StaleError:
            # The other writer knows the version, too, or the next resync reads it.
            self._records.pending.delete(begun)


def describe_skew(skew: timedelta | None) -> str:
    """Return a sentence if a cluster's clock and ours differ, or an empty one."""
    if skew is None or abs(skew) < _SKEW:
        return ""
    minutes = round(abs(skew) / timedelta(minutes=1))
    where = "ahead of" if skew > timedelta(0) else "behind"
    return (
        f"its clock is {minutes} minutes {where} ours; resyncs and events go on, but times are off"
        " and tokens may end too early: set the one that is wrong"
    )
