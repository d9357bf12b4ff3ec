"""Comparison of the configuration cluster with the records of its objects, at each resync.

It finds the changes of which no event came. It only publishes messages: each object is read once
more before anything follows from it, and an error or an unserved kind is never an empty list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from bellhop.api.kinds import CLUSTER, CONFIGURED_KINDS, DeclarationKey, is_namespaced
from bellhop.configuration.finalizers import set_finalizer
from bellhop.configuration.lost_definitions import is_definition_lost, make_missing
from bellhop.configuration.records import ConfiguredObject, Confirmation
from bellhop.configuration.references import find_holders, make_read_back
from bellhop.core.gvk import GVK
from bellhop.core.identity import version_of
from bellhop.declarations.diff import HOLDERS
from bellhop.declarations.references import list_refs
from bellhop.errors import PermanentError, StaleError, UnauthorizedError
from bellhop.logs import Log
from bellhop.ports.kube import Kube
from bellhop.rendering.origin_labels import is_generated
from bellhop.resync.progress import ResyncSession, limit_problems
from bellhop.state.messages import Publisher
from bellhop.state.records import Records
from bellhop.state.table import Stored

_PAGE = 500
_MASS = 2
"""Objects that are a mass, if they are more than half of a kind."""

_LEAVING = ("Leaving", "Ending")
"""States of objects of whose deletion an event came."""


class _Seen(NamedTuple):
    uid: str
    version: str
    ending: bool = False


class Comparison:
    """Publishes the objects of the configuration cluster that differ from their records."""

    def __init__(self, records: Records, publisher: Publisher, log: Log) -> None:
        self._records = records
        self._publisher = publisher
        self._log = log

    def compare(self, session: ResyncSession) -> None:
        """Compare all kinds, if the session's cluster holds the configuration.

        Raises:
            TemporaryError: the cluster does not answer.
            UnauthorizedError: it refuses our credentials.
        """
        if session.name != session.catalog.configuration:
            return
        problems = []
        for gvk in CONFIGURED_KINDS:
            try:
                messages = [
                    make_read_back(session.name, gvk, key) for key in self._compare(session, gvk)
                ]
            except UnauthorizedError:
                raise
            except PermanentError as error:
                # Not served, or not to be read: what was read before stays in force.
                self._log.warning("Cannot list a kind of the configuration", error=str(error))
                problems.append(f"cannot list {gvk.kind}: {error}")
                continue
            self._publisher.publish(messages)
        self._record(session.name, limit_problems(problems))

    def _record(self, cluster: str, problems: Sequence[str]) -> None:
        """Record that the whole configuration was compared, or since when it is not and why."""
        kept = self._records.confirmations.get(cluster)
        at = kept.value.at if kept else None
        new = Confirmation(at if problems else self._records.clock.now(), "; ".join(problems))
        self._records.confirmations.put(cluster, new)

    def _compare(self, session: ResyncSession, gvk: GVK) -> Iterator[DeclarationKey]:
        known = {
            DeclarationKey(gvk.kind, namespace, name): _remember(stored.value)
            for namespace, name, stored in self._records.configured.list_kind(gvk.kind)
        }
        if gvk.kind in HOLDERS:
            refs = (each for each in list_refs(session.catalog) if each.kind == gvk.kind)
            yield from {**known, **dict.fromkeys(find_holders(session.kube, refs))}
            return
        listed = dict(_list(session.kube, gvk))
        # The Secret of a cluster may have changed, of which its object shows nothing.
        every = gvk == CLUSTER
        if any(_is_older(known.get(key), seen) for key, seen in listed.items()):
            self._request_all()
        there = {key: seen for key, seen in listed.items() if not seen.ending}
        yield from (key for key, seen in there.items() if every or known.get(key) != seen)
        yield from self._judge_missing(session, gvk, listed)

    def _judge_missing(
        self, session: ResyncSession, gvk: GVK, listed: Mapping[DeclarationKey, _Seen]
    ) -> Iterator[DeclarationKey]:
        """Yield the objects that are missing or being deleted, but for those that stay in force.

        They stay where their definition is being deleted, and where most of a kind is missing of
        whose deletion no event came: the API server may have got older data. They are in force
        until a user deletes them, or until they are there again.
        """
        every = {
            DeclarationKey(gvk.kind, namespace, name): each
            for namespace, name, each in self._records.configured.list_kind(gvk.kind)
        }
        kept = {key: each for key, each in every.items() if each.value.state not in _LEAVING}
        yield from every.keys() - kept.keys()
        missing = {key for key in kept if key not in listed or listed[key].ending}
        undefined = bool(missing) and is_definition_lost(session.kube, gvk.kind)
        absent = missing - listed.keys()
        in_force = sum(each.value.in_force for each in kept.values())
        is_mass = len(absent) >= _MASS and 2 * len(absent) > in_force
        held = missing if undefined else absent if is_mass else set()
        yield from missing - held
        yield from (key for key in held if not self._mark_missing(key, kept[key]))
        if undefined and session.cluster.configuration == "on":
            _release_finalizers(session.kube, gvk, missing)

    def _mark_missing(self, key: DeclarationKey, kept: Stored[ConfiguredObject]) -> bool:
        """Keep what an object declared in force; return False if nothing is in force of it."""
        if not self._has_effect(key):
            return False
        if kept.value.state != "Missing":
            lost = make_missing(kept.value, key.kind, self._records.clock.now())
            with suppress(StaleError):
                self._records.configured.put(*key, lost, expect=kept.token)
            self._request_all()
        return True

    def _request_all(self) -> None:
        """Have statuses and mirrors written again: the API server may have lost them as well."""
        self._records.written.request_all(self._records.clock.now())

    def _has_effect(self, key: DeclarationKey) -> bool:
        """Return whether a manifest is stored of an object, or a cluster is registered by it."""
        if key.kind == CLUSTER.kind:
            return self._records.clusters.get(key.place) is not None
        return self._records.manifests.has(*key)


def _remember(record: ConfiguredObject) -> _Seen:
    """Return what was seen of an object; one that is not in force is to be read once more.

    The reason may be gone: a manifest of files, another rule, a preview.
    """
    return _Seen(record.uid, record.version if record.state == "InForce" else "")


def _is_older(known: _Seen | None, seen: _Seen) -> bool:
    """Return whether an API server shows an older version of an object than it did before."""
    if known is None or known.uid != seen.uid:
        return False
    versions = known.version, seen.version
    return all(map(str.isdigit, versions)) and int(seen.version) < int(known.version)


def _release_finalizers(kube: Kube, gvk: GVK, missing: Iterable[DeclarationKey]) -> None:
    """Remove the finalizers of objects whose definition is being deleted.

    It waits for them, and nobody could install it again. A lost race is repeated by a resync.
    """
    for key in missing:
        there = kube.get(gvk, key.namespace, key.name)
        if there and there["metadata"].get("deletionTimestamp"):
            with suppress(StaleError):
                set_finalizer(kube, there, present=False)


def _list(kube: Kube, gvk: GVK) -> Iterator[tuple[DeclarationKey, _Seen]]:
    """Yield all objects of a kind that users wrote.

    One that is too large to be read counts as changed.
    """
    after = ""
    while True:
        page = kube.page(gvk, limit=_PAGE, after=after)
        for item in page.items:
            metadata = item["metadata"]
            if is_generated(metadata):
                continue
            ending = bool(metadata.get("deletionTimestamp"))
            seen = _Seen(str(metadata.get("uid", "")), str(version_of(metadata)), ending)
            yield _make_key(gvk, str(metadata.get("namespace", "")), metadata["name"]), seen
        for each in page.unread:
            yield _make_key(gvk, each.key.namespace, each.key.name), _Seen("", "")
        if not page.after:
            return
        after = page.after


def _make_key(gvk: GVK, namespace: str, name: str) -> DeclarationKey:
    return DeclarationKey(gvk.kind, namespace if is_namespaced(gvk.kind) else "", name)
