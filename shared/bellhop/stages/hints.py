"""Hints: an object that is about to change, perhaps, is read back."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from bellhop.engine.observe import bury, observe
from bellhop.errors import TemporaryError
from bellhop.messages import Confirm, Evaluate, Publisher
from bellhop.model.gvk import ObjectKey
from bellhop.model.record import Observation
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.records import Records
from bellhop.records.catalogs import Catalogs
from bellhop.stages.ledger import Note, write
from bellhop.stages.mounts import concerned

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

    def confirm(self, hint: Confirm) -> None:
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

    def _tell_concerned(self, kube: Kube, key: ObjectKey, hint: Confirm) -> None:
        """Tell the profiles that an object concerns once it shows what was done to it."""
        found = list(concerned(self._records, hint.cluster, key.identity))
        if not found:
            return
        there = kube.get(*key)
        seen = observe(hint.cluster, there, self._records.clock.now()) if there else None
        # A creation that is not stored yet is nothing to tell of, either.
        before = (seen.uid, seen.resource_version) == (hint.uid, hint.before) if seen else None
        if before or (before is None and not hint.before):
            self._wait(hint, self._records.clock.now())
        self._publisher.publish(replace(each, trace=hint.trace, rang=hint.rang) for each in found)

    def _read_back(self, kube: Kube, key: ObjectKey, hint: Confirm) -> None:
        now = self._records.clock.now()
        old = self._records.observations.head(hint.cluster, key)
        manifest = kube.get(*key)
        if manifest is not None:
            seen = observe(hint.cluster, manifest, now)
            if seen.key != key:
                # This version is not served, so nothing can be seen in it.
                return
            pending = seen.uid == hint.uid and seen.resource_version == hint.before
        else:
            uid = hint.uid or (old.uid if old else "")
            seen = bury(hint.cluster, key, uid, hint.before, now)
            # A creation that is not stored yet, or never will be, has nothing to bury.
            pending = old is None
        if pending:
            self._wait(hint, now)
            if manifest is None:
                return
        self._keep(seen, old.token if old else ABSENT, hint)

    def _wait(self, hint: Confirm, now: datetime) -> None:
        """Look again a little later, as long as the change may still be on its way.

        The API server stores only after its webhooks have answered.

        Raises:
            TemporaryError: it is not long since the hint came.
        """
        age = now - datetime.fromisoformat(hint.rang) if hint.rang else _SETTLED
        if age < _SETTLED:
            raise TemporaryError(
                f"the change of '{hint.object}' in '{hint.cluster}' is not to be seen yet",
                delay=max(age, _SOON),
            )

    def _keep(self, seen: Observation, asked: str, hint: Confirm) -> None:
        if not self._records.observations.put(seen, asked=asked):
            return
        message = Evaluate(seen.cluster, str(seen.key), hint.trace, hint.rang)
        self._publisher.publish([message])
        note = Note("gone" if seen.gone else "rang")
        write(self._records, message, seen.cluster, str(seen.key), note)
