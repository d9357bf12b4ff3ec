"""Hints: an object that is about to change, perhaps, is read back."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.core.gvk import ObjectKey
from bellhop.deploy.subscribers import concerned
from bellhop.errors import TemporaryError
from bellhop.ingest.records.observations import Seen
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.rendering.observation import bury, observe
from bellhop.state.event_recorder import Note, write
from bellhop.state.messages import Evaluate, Publisher, ReadBack
from bellhop.state.record import Observation
from bellhop.state.records import Records

_SETTLED = timedelta(seconds=10)
"""How long after its hint a change that cannot be seen is taken not to have happened."""

_SOON = timedelta(milliseconds=20)


class Hints:
    """Confirms hints: reads objects back and keeps what is really there."""

    def __init__(
        self, records: Records, catalogs: Catalogs, access: Access, publisher: Publisher
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._publisher = publisher

    def confirm(self, hint: ReadBack) -> None:
        """Read an object back, in every version of its kind that sources name.

        Raises:
            TemporaryError: the cluster does not answer, or does not show the change yet.
        """
        record = self._records.clusters.get(hint.cluster)
        if record is None:
            return
        kube = self._access.open(hint.cluster, version=record.value.credentials)
        rang = ObjectKey.parse(hint.object)
        for gvk in self._catalogs.current().kinds_in(hint.cluster):
            if gvk[::2] == rang.gvk[::2]:
                self._read_back(kube, rang._replace(gvk=gvk), hint)
        if hint.drift:
            self._tell_concerned(kube, rang, hint)

    def _tell_concerned(self, kube: Kube, key: ObjectKey, hint: ReadBack) -> None:
        """Tell the profiles that an object concerns once it shows what was done to it."""
        found = list(concerned(self._records, hint.cluster, key.identity))
        if not found:
            return
        there = kube.get(*key)
        seen = observe(hint.cluster, there, self._records.clock.now()) if there else None
        if _is_pending(hint, seen):
            self._wait(hint, self._records.clock.now())
        self._publisher.publish(replace(each, trace=hint.trace, rang=hint.rang) for each in found)

    def _read_back(self, kube: Kube, key: ObjectKey, hint: ReadBack) -> None:
        now = self._records.clock.now()
        old = self._records.observations.head(hint.cluster, key)
        manifest = kube.get(*key)
        if manifest is None:
            self._bury(key, old, hint, now)
            return
        seen = observe(hint.cluster, manifest, now)
        if seen.key != key:
            # This version is not served, so nothing can be seen in it.
            return
        if _is_pending(hint, seen):
            self._wait(hint, now)
        self._keep(seen, old.token if old else ABSENT, hint)

    def _bury(self, key: ObjectKey, old: Seen | None, hint: ReadBack, now: datetime) -> None:
        """Record an object that is absent as deleted.

        A read before a creation is stored proves that an earlier object of that name was deleted,
        and nothing of the uid that is about to be stored.
        """
        if old and not (hint.creates and old.gone):
            uid = old.uid if hint.creates else hint.uid or old.uid
            self._keep(bury(hint.cluster, key, uid, hint.before, now), old.token, hint)
        if hint.creates or old is None:
            self._wait(hint, now)

    def _wait(self, hint: ReadBack, now: datetime) -> None:
        """Look again a little later, as long as the change may still be on its way.

        The API server stores only after its webhooks have answered.

        Raises:
            TemporaryError: it is not long since the hint came.
        """
        age = now - datetime.fromisoformat(hint.rang) if hint.rang else _SETTLED
        # A clock that was set back meanwhile says nothing of how long it has been.
        if abs(age) < _SETTLED:
            raise TemporaryError(
                f"the change of '{hint.object}' in '{hint.cluster}' is not to be seen yet",
                delay=max(age, _SOON),
            )

    def _keep(self, seen: Observation, asked: str, hint: ReadBack) -> None:
        if not self._records.observations.put(seen, asked=asked):
            return
        message = Evaluate(seen.cluster, str(seen.key), hint.trace, hint.rang)
        self._publisher.publish([message])
        note = Note("gone" if seen.gone else "rang")
        write(self._records, message, seen.cluster, str(seen.key), note)


def _is_pending(hint: ReadBack, seen: Observation | None) -> bool:
    """Say whether an object is as it was before the write that a hint announces."""
    if seen is None:
        return hint.creates or not (hint.uid or hint.before)
    if hint.creates:
        return seen.uid != hint.uid
    return (seen.uid, seen.resource_version) == (hint.uid, hint.before)
