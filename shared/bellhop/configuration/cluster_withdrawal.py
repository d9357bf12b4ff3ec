"""Deregistration of clusters whose objects were deleted: one change, which the guard may hold.

    deleted ─► Leaving ─ 2 s without another ─► Ending ─► deregistered
                       └ more than half leave ─► Ending, held ─ released ─► deregistered

Nothing is removed from a cluster that leaves, so its object has no finalizer: the record decides,
and an object that is made again is in force again. A worker that dies is replaced by the next
delivery of its message, or by a resync.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.api.kinds import CLUSTER, DeclarationKey
from bellhop.configuration.cluster_objects import CONFIGURATION_UID, ClusterObjects
from bellhop.configuration.finalizers import set_annotation, set_finalizer
from bellhop.configuration.lost_definitions import is_definition_lost, make_missing
from bellhop.configuration.records import ConfiguredObject
from bellhop.configuration.references import make_read_back
from bellhop.configuration.withdrawal import SETTLE
from bellhop.core.sveltos_annotations import HELD
from bellhop.errors import StaleError, TemporaryError
from bellhop.ports.kube import Kube, Manifest
from bellhop.ports.store import ABSENT
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.records import Records
from bellhop.state.table import Stored

_MASS = 2
"""Clusters that are a mass, if they are more than the share of all."""

_LONGEST_SETTLE = timedelta(minutes=1)
"""Time after which deletions that keep coming are counted as they are."""

_CHANGE = 8
"""Characters of the name of a held change."""


class ClusterWithdrawal:
    """Deregisters the clusters of deleted objects, unless these are too many at once."""

    def __init__(self, records: Records, settings: Settings, clusters: ClusterObjects) -> None:
        self._records = records
        self._share = settings.hold_share
        self._clusters = clusters

    def withdraw(
        self,
        hub: str,
        kube: Kube,
        key: DeclarationKey,
        kept: Stored[ConfiguredObject] | None,
        found: Manifest | None,
    ) -> None:
        """Take the next step for a deleted object; `found` is what is left of it.

        Raises:
            TemporaryError: others may be deleted with it.
            StaleError: another worker is at work on it.
        """
        cluster = self._records.clusters.get(key.place)
        if cluster is None or not _may_leave(cluster.value):
            self._remove(kube, key, kept, found)
            return
        if is_definition_lost(kube, key.kind):
            # All SveltosClusters go with it, one after the other: no user deleted this one.
            if kept:
                lost = make_missing(kept.value, key.kind, self._now())
                self._records.configured.put(*key, lost, expect=kept.token)
            return
        record = kept.value if kept else self._make_record(cluster.value)
        if record.state not in ("Leaving", "Ending"):
            # Also without a record: a worker that registered it may have died before that.
            leaving = replace(record, state="Leaving", at=self._now(), message="it was deleted")
            self._records.configured.put(*key, leaving, expect=kept.token if kept else ABSENT)
            raise TemporaryError(f"{key} was deleted just now; others may be", delay=SETTLE)
        if record.state == "Leaving":
            if pause := self._decide():
                # By a timer: deletions may go on for longer than a message is tried again.
                body = make_read_back(hub, CLUSTER, key).message().body
                name = f"configured/{key.kind}/{key.place}"
                self._records.timers.set(name, self._now() + pause, body)
                return
            kept = self._records.configured.get(*key)
        if kept and kept.value.change:
            if found:
                set_annotation(kube, found, HELD, kept.value.change)
        elif kept and kept.value.state == "Ending":
            self._remove(kube, key, kept, found)

    def _remove(
        self,
        kube: Kube,
        key: DeclarationKey,
        kept: Stored[ConfiguredObject] | None,
        found: Manifest | None,
    ) -> None:
        self._clusters.remove(key)
        if found:
            # Sveltos may have kept it.
            set_finalizer(kube, found, present=False)
        if kept:
            self._records.configured.delete(*key, expect=kept.token)

    def _decide(self) -> timedelta | None:
        """Let all that leave end, or hold them if with those that end they are too many.

        Return the time to wait first, as others may be deleted with them.
        """
        rows = dict(self._records.configured.rows(CLUSTER.kind))
        leaving = {place: each for place, each in rows.items() if each.value.state == "Leaving"}
        ages = [abs(self._now() - each.value.at) for each in leaving.values()]
        if ages and min(ages) < SETTLE and max(ages) < _LONGEST_SETTLE:
            return SETTLE - min(ages)
        known = self._list_registered()
        ending = [
            each.value
            for place, each in rows.items()
            if each.value.state == "Ending" and place in known
        ]
        number = len(leaving) + len(ending)
        change, message = "", "it is being deregistered"
        if number >= _MASS and 0 < self._share < 1 and number > self._share * len(known):
            names = (each.change for each in ending if each.change)
            change = next(names, uuid.uuid4().hex[:_CHANGE])
            message = (
                f"held: {number} of {len(known)} clusters would be deregistered;"
                f" `bellhop release --change {change}` deregisters them"
            )
        for place, each in leaving.items():
            ended = replace(each.value, state="Ending", change=change, message=message)
            with suppress(StaleError):
                namespace, _, name = place.partition("/")
                self._records.configured.put(
                    CLUSTER.kind, namespace, name, ended, expect=each.token
                )
        return None

    def _list_registered(self) -> set[str]:
        """Return the clusters that objects have registered, by key."""
        return {each.key for each in self._records.clusters.all() if _may_leave(each)}

    def _make_record(self, cluster: Cluster) -> ConfiguredObject:
        uid = cluster.annotations[CONFIGURATION_UID]
        return ConfiguredObject(uid, "", 0, "InForce", in_force=True, at=self._now())

    def _now(self) -> datetime:
        return self._records.clock.now()


def _may_leave(cluster: Cluster) -> bool:
    """Return whether the deletion of its object deregisters a cluster: never the hub."""
    return CONFIGURATION_UID in cluster.annotations and not cluster.configuration
