"""Missing objects of a kind: stored observations that a complete list does not have.

Each is a suspect until a read confirms that it is deleted. If too many are missing, they are held
until several resyncs in a row confirm it; an error never counts as a deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import MissingError, TooLargeError
from bellhop.logs import Log
from bellhop.ports.kube import Kube
from bellhop.rendering.observation import bury
from bellhop.resync.progress import ResyncSession
from bellhop.settings import Settings
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.messages import Evaluate, Publisher
from bellhop.state.records import Records

_BATCH = 100
"""Suspects that are read before a turn may end."""


class MissingObjects:
    """Confirms and buries the suspects of a kind, a batch at a time."""

    def __init__(
        self, records: Records, publisher: Publisher, settings: Settings, log: Log
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._settings = settings
        self._log = log

    def check(self, session: ResyncSession, gvk: GVK) -> None:
        """Have suspects buried; of a doubted list only those that only the sender has shown."""
        doubted = not self._is_believed(session, gvk)
        skips = doubted and not session.progress.claims
        session.write(step="next" if skips else "bury", doubted=doubted)

    def _is_believed(self, session: ResyncSession, gvk: GVK) -> bool:
        """Hold a suspiciously large deletion until several resyncs in a row confirm it."""
        progress, settings = session.progress, self._settings
        missing, known = progress.missing, progress.known
        if progress.absent:
            reason = f"the kind is not served any more, and {missing} objects of it were seen"
            suspicious = missing > 0
        else:
            reason = f"{missing} of {known} are missing from a list"
            suspicious = missing > settings.deletion_floor and missing > (
                settings.deletion_share * known
            )
        if not suspicious:
            self._records.strikes.clear(session.name, gvk)
            return True
        confirmations = self._records.strikes.add(session.name, gvk, progress.id)
        if confirmations >= settings.deletion_agreement:
            return True
        detail = f"{reason}; held until {settings.deletion_agreement} resyncs agree"
        self._log.warning("Held a deletion", cluster=session.name, kind=str(gvk), detail=detail)
        key = str(ObjectKey(gvk, "", "*"))
        write(self._records, Nobody(), session.name, key, Note("held", detail))
        session.write(problems=session.join_problems(f"{gvk.kind}: {detail}"))
        return False

    def bury_some(self, session: ResyncSession, gvk: GVK) -> None:
        """Read the next suspects, and bury those that are deleted."""
        suspects = list(islice(self._records.walks.suspects(session.name, gvk), _BATCH))
        buried = self._bury(session, suspects)
        if len(suspects) < _BATCH:
            if not session.progress.doubted:
                self._records.strikes.clear(session.name, gvk)
            session.write(step="next", missed=session.progress.missed + buried)
        elif buried:
            session.write(missed=session.progress.missed + buried)

    def _bury(self, session: ResyncSession, suspects: Sequence[ObjectKey]) -> int:
        """Bury and publish suspects that a read confirms as deleted; return their number."""
        cluster, published, buried = session.name, list[ObjectKey](), 0
        for key in suspects:
            head = self._records.observations.head(cluster, key)
            if head and not head.gone and session.progress.doubted and not head.unconfirmed:
                continue
            if head and not head.gone and self._is_deleted(session.kube, cluster, key):
                now = self._records.clock.now()
                tomb = bury(cluster, key, head.uid, head.resource_version, now)
                tomb = replace(tomb, unconfirmed=head.unconfirmed)
                if self._records.observations.put(tomb, asked=head.token):
                    buried += 1
                    published.append(key)
            elif head and head.gone:
                published.append(key)
        publish_evaluations(self._publisher, cluster, published)
        self._records.walks.clear(cluster, suspects)
        return buried

    def _is_deleted(self, kube: Kube, cluster: str, key: ObjectKey) -> bool:
        try:
            return kube.get(*key) is None
        except TooLargeError:
            # It exists, whatever its content.
            return False
        except MissingError:
            confirmations = self._records.strikes.get(cluster, key.gvk).value
            if confirmations >= self._settings.deletion_agreement:
                # With the kind's definition every object of it was deleted.
                return True
            raise

    def drop(self, cluster: str, gvk: GVK) -> bool:
        """Drop old suspects, and publish those that were buried; return whether that was all."""
        suspects = list(islice(self._records.walks.suspects(cluster, gvk), _BATCH))
        heads = [self._records.observations.head(cluster, key) for key in suspects]
        publish_evaluations(
            self._publisher, cluster, [each.key for each in heads if each and each.gone]
        )
        self._records.walks.clear(cluster, suspects)
        return len(suspects) < _BATCH


def publish_evaluations(publisher: Publisher, cluster: str, keys: Iterable[ObjectKey]) -> None:
    publisher.publish([Evaluate(cluster, str(key)) for key in sorted(keys)])
