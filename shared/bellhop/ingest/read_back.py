"""Read back: an object that may be about to change is read from its cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.core.gvk import ObjectKey
from bellhop.deploy.subscribers import list_affected
from bellhop.errors import TemporaryError
from bellhop.ingest.records import Seen
from bellhop.ports.kube import Access, Kube, Manifest
from bellhop.ports.store import ABSENT
from bellhop.rendering.observation import bury, observe
from bellhop.state.event_recorder import Note, write
from bellhop.state.match import Observation
from bellhop.state.messages import Evaluate, Publisher, ReadBack
from bellhop.state.records import Records

Admit = Callable[[str, ObjectKey, Callable[[], Manifest | None]], None]
"""Takes an object of the configuration: its cluster, its key, and how to read it."""

_SETTLED = timedelta(seconds=10)
"""Age of a hint after which a change that is not visible counts as not stored."""

_SOON = timedelta(milliseconds=20)


class HintReader:
    """Reads objects back, and stores their present state."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        admit: Admit,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._publisher = publisher
        self._admit = admit

    def handle(self, hint: ReadBack) -> None:
        """Read an object back, in every version of its kind that sources name.

        Raises:
            TemporaryError: the cluster does not answer, or does not show the change yet.
        """
        record = self._records.clusters.get(hint.cluster)
        if record is None:
            return
        kube = self._access.open(hint.cluster, version=record.value.credentials)
        hinted = ObjectKey.parse(hint.object)
        catalog = self._catalogs.current()
        for gvk in catalog.kinds_in(hint.cluster):
            if gvk[::2] == hinted.gvk[::2]:
                self._read_back(kube, hinted._replace(gvk=gvk), hint)
        if hint.drift:
            self._publish_concerned(kube, hinted, hint)
        if hint.cluster == catalog.configuration:
            self._admit(hint.cluster, hinted, lambda: self._read_present(kube, hinted, hint))

    def _read_present(self, kube: Kube, key: ObjectKey, hint: ReadBack) -> Manifest | None:
        """Read an object as it is once it shows the change; None if it is not there.

        Raises:
            TemporaryError: the cluster does not answer, or does not show the change yet.
        """
        now = self._records.clock.now()
        there = kube.get(*key)
        if _is_pending(hint, observe(hint.cluster, there, now) if there else None):
            self._wait(hint, now)
        return there

    def _publish_concerned(self, kube: Kube, key: ObjectKey, hint: ReadBack) -> None:
        """Publish the profiles that an object concerns once it shows the change."""
        found = list(list_affected(self._records, hint.cluster, key.identity))
        if not found:
            return
        there = kube.get(*key)
        seen = observe(hint.cluster, there, self._records.clock.now()) if there else None
        if _is_pending(hint, seen):
            self._wait(hint, self._records.clock.now())
        self._publisher.publish(
            replace(each, trace=hint.trace, event_at=hint.event_at) for each in found
        )

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
        self._store(seen, old.token if old else ABSENT, hint)

    def _bury(self, key: ObjectKey, old: Seen | None, hint: ReadBack, now: datetime) -> None:
        """Record an object that is absent as deleted.

        A read before a creation is stored proves that an earlier object of that name was deleted,
        and nothing of the uid that is about to be stored.
        """
        if old and not (hint.creates and old.gone):
            uid = old.uid if hint.creates else hint.uid or old.uid
            self._store(bury(hint.cluster, key, uid, hint.before, now), old.token, hint)
        if hint.creates or old is None:
            self._wait(hint, now)

    def _wait(self, hint: ReadBack, now: datetime) -> None:
        """Look again a little later, as long as the change may still be on its way.

        The API server stores only after its webhooks have answered.

        Raises:
            TemporaryError: it is not long since the hint came.
        """
        age = now - datetime.fromisoformat(hint.event_at) if hint.event_at else _SETTLED
        # A clock that was set back meanwhile says nothing of how long it has been.
        if abs(age) < _SETTLED:
            raise TemporaryError(
                f"the change of '{hint.object}' in '{hint.cluster}' is not to be seen yet",
                delay=max(age, _SOON),
            )

    def _store(self, seen: Observation, asked: str, hint: ReadBack) -> None:
        if not self._records.observations.put(seen, asked=asked):
            return
        message = Evaluate(seen.cluster, str(seen.key), hint.trace, hint.event_at)
        self._publisher.publish([message])
        note = Note("gone" if seen.gone else "rang")
        write(self._records, message, seen.cluster, str(seen.key), note)


def _is_pending(hint: ReadBack, seen: Observation | None) -> bool:
    """Return whether an object is as it was before the write that a hint announces."""
    if seen is None:
        return hint.creates or not (hint.uid or hint.before)
    if hint.creates:
        return seen.uid != hint.uid
    return (seen.uid, seen.resource_version) == (hint.uid, hint.before)
