"""Writer of statuses, Events and mirrors into the configuration cluster, by server-side apply.

    message ─► computed from records ─► digest is the recorded one ─► nothing
                        else ─► record, if it is new ─► object, status ─► digest
                        recorded, and computed no more ─► deleted ─► record deleted

The objects that a generated profile names are written before it, and deleted after it: an
object that somebody's finalizer keeps is looked at again.

A new mirror is recorded before it is written, so that it is found and deleted though the writer
died; its digest is recorded after the write: after a death the same is written again. An object
that the API server refuses is reported in the log, and written again with the next change. All
that was written before a request to write it again counts as lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.configuration.conditions import State, stall
from bellhop.configuration.definitions import DEFINITIONS
from bellhop.configuration.finalizers import has_sveltos_finalizer
from bellhop.configuration.generated_objects import list_generated
from bellhop.configuration.limits import TRUNCATED, truncate
from bellhop.configuration.mirror_objects import (
    MirrorObjects,
    is_holder,
    make_place,
    read_key,
    remove,
)
from bellhop.configuration.mirrors import (
    has_generated,
    list_in_clusters,
    list_mirrors,
    make_generated,
    read_in_force,
)
from bellhop.configuration.object_events import make_event
from bellhop.configuration.profiles import own_place
from bellhop.configuration.records import ConfiguredObject, WrittenObject
from bellhop.configuration.status import make_status
from bellhop.configuration.status_applier import StatusApplier
from bellhop.core.digest import digest
from bellhop.core.gvk import ObjectKey
from bellhop.declarations.diff import HOLDERS
from bellhop.errors import PermanentError, StaleError, TemporaryError
from bellhop.installation import InstallationView
from bellhop.logs import Log
from bellhop.ports.kube import Access, Kube, Manifest
from bellhop.profiles.records import Place
from bellhop.state.cluster import Cluster
from bellhop.state.messages import WriteStatus
from bellhop.state.profile import Profile
from bellhop.state.records import Records

_API_VERSIONS = {
    **{each.kind: each.api_version for each in DEFINITIONS},
    **dict.fromkeys(HOLDERS, "v1"),
}
_STATUS, _EVENT = "status", "event"
_OF_USERS = frozenset({_STATUS, _EVENT})
"""Places of what is written to or about a user's object: no mirrors."""

_PROFILES = frozenset({"ClusterProfile", "Profile"})
_MANY = 20
"""Deployments that each message counts: more are counted once for the messages of a moment."""

_SHORTEST, _LONGEST = timedelta(seconds=2), timedelta(minutes=1)
"""The pauses between two looks at an object that is being deleted."""

_SORTS: Mapping[str, str] = {
    "ClusterSummary": "summaries",
    "ClusterConfiguration": "summaries",
    "ClusterReport": "reports",
    "EventReport": "reports",
    "HealthCheckReport": "reports",
    "ClassifierReport": "reports",
    "ClusterProfile": "generated",
    "ConfigMap": "generated",
    "Secret": "generated",
}
"""The sort of each kind of mirror, as `BELLHOP_MIRRORS` names it."""

ALL = frozenset({"status", "summaries", "reports", "generated"})


class OwnObject(NamedTuple):
    """A user's object as it was read last; a `refusal` is the reason why it is not in force."""

    uid: str
    generation: int
    refusal: State | None = None


def read_own(found: ConfiguredObject) -> OwnObject:
    """Return a user's object by its record."""
    reason = "Invalid" if found.state == "Rejected" else found.state
    refusal = stall(reason, found.message, found.at) if found.is_refused else None
    return OwnObject(found.uid, found.generation, refusal)


FindObject = Callable[[str, str, str], OwnObject | None]
"""Finds a user's object by kind, namespace and name; None if the cluster has none."""

FindCluster = Callable[[], Cluster | None]
"""Finds the configuration cluster; None without one, and while it is only previewed."""


class StatusMirrorWriter:
    """Handles `WriteStatus`: at most one write for each object in a `pause`."""

    def __init__(
        self,
        here: InstallationView,
        access: Access,
        find_cluster: FindCluster,
        find_object: FindObject,
        log: Log,
        *,
        pause: timedelta,
        sorts: Collection[str] = ALL,
    ) -> None:
        self._here = here
        self._written = here.records.written
        self._applier = StatusApplier(here.records.clock)
        self._mirrors = MirrorObjects(here.records, self._applier, self._report)
        self._access = access
        self._find_cluster = find_cluster
        self._find_object = find_object
        self._log = log
        self._pause = pause
        self._sorts = sorts

    def handle(self, message: WriteStatus) -> None:
        """Write the status and mirrors of an object as they are now.

        A message of a profile that names no cluster writes the status, and deletes mirrors in
        clusters that the profile has left; each cluster has a message of its own. The deployments
        of a status of many clusters are counted once for all messages of a moment.

        Raises:
            TemporaryError: something of it was written just now, or the cluster does not answer.
        """
        cluster = self._find_cluster()
        if cluster is None or self._is_away(cluster.key):
            return
        if not (message.gathered or message.cluster) and self._counts_many(message):
            body, now = replace(message, gathered=True).message().body, self._now()
            timers = self._here.records.timers
            timers.set_by(f"status/{_owner(message)}", now + self._pause, body, now=now)
            return
        prefix = f"{message.cluster}/" if message.cluster else ""
        former = {
            each: kept.value for each, kept in self._written.rows(_owner(message), prefix=prefix)
        }
        self._refuse_soon(message, former)
        kube = self._access.open(cluster.key, version=cluster.credentials)
        own = None
        if not message.trigger:
            own = self._find_object(message.kind, message.namespace, message.name)
        if own and not message.cluster and "status" in self._sorts:
            self._write_status(kube, message, own, former.get(_STATUS))
            self._write_event(kube, message, own, former.get(_EVENT))
        elif not own:
            for place in former.keys() & _OF_USERS:
                self._written.delete(_owner(message), place)
        self._write_mirrors(kube, message, own, former)

    def _counts_many(self, message: WriteStatus) -> bool:
        """Return whether a status is counted from the statuses of many deployments."""
        profiles = self._here.records.profiles
        heads: Iterable[Profile] = ()
        if message.kind == "EventTrigger":
            heads = profiles.heads(message.name)
        elif message.trigger or message.kind in _PROFILES:
            head = profiles.head(*_place_of(message))
            heads = [head.value] if head else []
        return any(count > _MANY for count in accumulate(len(each.destinations) for each in heads))

    def _is_away(self, cluster: str) -> bool:
        """Return whether a cluster does not answer, and record that something was not written.

        Once it answers it is resynced, and then all is written.
        """
        circuit = self._here.records.circuits.get(cluster)
        if circuit is None or circuit.value.closing:
            return False
        self._written.request_all(self._now())
        return True

    def _refuse_soon(self, message: WriteStatus, former: Mapping[str, WrittenObject]) -> None:
        """Raise a TemporaryError if something was written within the pause.

        A record of the future is of a clock that was ahead.
        """
        now = self._here.records.clock.now()
        for place, written in former.items():
            if _is_apart(message, place):
                continue
            since = now - written.at
            if timedelta(0) <= since < self._pause:
                raise TemporaryError(
                    f"cannot write the status of {message.kind} '{message.name}' yet: it was"
                    " written just now",
                    delay=self._pause - since,
                )

    def _write_status(
        self, kube: Kube, message: WriteStatus, own: OwnObject, former: WrittenObject | None
    ) -> None:
        known = former if former and former.uid == own.uid else None
        status = make_status(
            self._here,
            *(message.kind, message.namespace, message.name),
            generation=own.generation,
            previous={"conditions": json.loads(known.conditions) if known else []},
            refusal=own.refusal,
        )
        if status is None:
            return
        manifest = truncate({**_name(message), "status": status})
        mark = digest(manifest)
        if known and self._written.is_current(known, mark):
            return
        try:
            self._applier.apply(kube, manifest, own.uid)
            self._annotate(kube, manifest)
        except StaleError:
            # It was deleted, or created again: its own event has a status written.
            return
        except PermanentError as error:
            self._report(ObjectKey.of(manifest), error)
            return
        conditions = json.dumps(status["conditions"])
        written = WrittenObject(mark, own.uid, self._now(), conditions)
        self._written.put(_owner(message), _STATUS, written)

    def _write_event(
        self, kube: Kube, message: WriteStatus, own: OwnObject, former: WrittenObject | None
    ) -> None:
        """Write an Event for each other reason why an object is not in force."""
        if own.refusal is None:
            if former:
                self._written.delete(_owner(message), _EVENT)
            return
        state = own.refusal
        since = state.since or self._now()
        event = make_event(_name(message), own.uid, state.reason, state.message, since)
        mark = digest(event)
        if former and former.digest == mark:
            return
        try:
            kube.apply(event)
        except PermanentError as error:
            self._report(ObjectKey.of(event), error)
            return
        self._written.put(_owner(message), _EVENT, WrittenObject(mark, own.uid, self._now()))

    def _annotate(self, kube: Kube, manifest: Manifest) -> None:
        """Annotate a user's object of which the status was cut."""
        annotations = manifest["metadata"].get("annotations")
        if annotations:
            patch = {"metadata": {"annotations": {TRUNCATED: annotations[TRUNCATED]}}}
            kube.merge(*ObjectKey.of(manifest), patch)

    def _write_mirrors(
        self,
        kube: Kube,
        message: WriteStatus,
        own: OwnObject | None,
        former: Mapping[str, WrittenObject],
    ) -> None:
        left = set(former.keys() - _OF_USERS)
        waits = False
        for manifest in self._list(message, own, left):
            if _SORTS[manifest["kind"]] in self._sorts:
                left.discard(make_place(manifest))
                waits |= not self._mirrors.write(kube, _owner(message), truncate(manifest))
        named = {each for each in left if is_holder(each)}
        for places in (left - named, named):
            if not waits:
                deleted = [
                    self._mirrors.delete(kube, _owner(message), each, former[each])
                    for each in sorted(places)
                ]
                waits = not all(deleted)
        if waits:
            self._look_again(message, former)

    def _look_again(self, message: WriteStatus, former: Mapping[str, WrittenObject]) -> None:
        """Repeat a message later: after half of the time that the deletion took so far."""
        now = self._now()
        since = min((each.at for each in former.values() if each.leaves), default=now)
        pause = min(max(abs(now - since) / 2, _SHORTEST), _LONGEST)
        name = f"written/{_owner(message)}/{message.cluster}"
        self._here.records.timers.set(name, now + pause, message.message().body)

    def _list(
        self, message: WriteStatus, own: OwnObject | None, left: set[str]
    ) -> Iterator[Manifest]:
        """Yield the mirrors that are to be written; `left` loses those that are to stay as well."""
        here = self._here
        if message.kind not in _PROFILES:
            if message.kind != "EventTrigger":  # Each of its profiles has messages of its own.
                what = message.kind, message.namespace, message.name
                yield from list_mirrors(here, *what, cluster=message.cluster)
            return
        which = _place_of(message)
        found = read_in_force(here, which, message.cluster)
        if found is None:
            return
        uid = own.uid if own else ""
        if message.trigger:
            if not has_generated(which, found):
                return
            profile = found.deployed.status.profile
            if profile.leaves and not profile.digest:
                # It is deleted before what it names.
                left.difference_update([each for each in left if is_holder(each)])
            place = _owner(message), make_place(dict(found.manifest))
            kept = self._written.get(*place)
            if not (message.cluster and kept and kept.value.uid):
                yield from list_generated(profile, found.source)
                yield from filter(None, [make_generated(here, which, found)])
                kept = self._written.get(*place)
            uid = kept.value.uid if kept else ""
        if message.cluster:
            yield from list_in_clusters(here, found, message.cluster, uid)
            return
        there = set(found.deployed.clusters)
        left.difference_update([each for each in left if _cluster_of(each) in there])

    def _report(self, key: ObjectKey, error: PermanentError) -> None:
        self._log.warning("Cannot write an object", object=str(key), error=str(error))

    def _now(self) -> datetime:
        return self._here.records.clock.now()


def delete_written(
    records: Records, kube: Kube, messages: Iterable[WriteStatus], *, keep_sveltos: bool = False
) -> None:
    """Delete the mirrors of some messages, and the records of all that was written for them.

    With `keep_sveltos` those stay that have finalizers of Sveltos: to its controllers a deleted
    ClusterSummary is an order to withdraw what it deployed.

    Raises:
        BellhopError: the cluster does not answer, or refuses it.
    """
    for owner in dict.fromkeys(map(_owner, messages)):
        for place, kept in list(records.written.rows(owner)):
            key = None if place in _OF_USERS else read_key(place)
            if key and not (keep_sveltos and has_sveltos_finalizer(kube.get(*key))):
                remove(kube, place, kept.value.uid)
            records.written.delete(owner, place)


def _owner(message: WriteStatus) -> str:
    if message.trigger:
        return f"{message.trigger}/{message.source}/{message.name}"
    return f"{message.kind}/{message.namespace}/{message.name}"


def _place_of(message: WriteStatus) -> Place:
    if message.trigger:
        return Place(message.trigger, message.source, message.name)
    return own_place(message.kind, message.namespace, message.name)


def _name(message: WriteStatus) -> Manifest:
    namespace = {"namespace": message.namespace} if message.namespace else {}
    return {
        "apiVersion": _API_VERSIONS[message.kind],
        "kind": message.kind,
        "metadata": {"name": message.name, **namespace},
    }


def _cluster_of(place: str) -> str:
    return "/".join(place.split("/", 2)[:2])


def _is_apart(message: WriteStatus, place: str) -> bool:
    """Return whether another message writes a mirror: that of a profile in a cluster."""
    profile = message.kind in _PROFILES and not message.cluster
    return profile and place not in _OF_USERS and bool(_cluster_of(place).strip("/"))
