"""Withdrawal of manifests whose objects were deleted from the configuration cluster.

    deleted ─► Leaving ─ 2 s ─► Ending: all that left are deleted as one change, which the deletion
                                guard may hold ─► nothing is left in any cluster ─► the finalizer
                                goes, and with it the object and its record

An object that is made again while it is Leaving stays in force. One that is Ending is in force
until its manifest is deleted; a worker that dies before that is replaced after a minute. A holder
is deleted at once: profiles that name it keep what they deployed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta

from msgspec.structs import replace

from bellhop.api.kinds import CONFIGURED_KINDS, DeclarationKey
from bellhop.configuration.finalizers import find_finalizer, set_annotation, set_finalizer
from bellhop.configuration.lost_definitions import is_definition_lost, make_missing
from bellhop.configuration.records import ConfiguredObject
from bellhop.configuration.references import make_read_back
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import HELD
from bellhop.declarations.apply import ManifestWriter
from bellhop.declarations.diff import HOLDERS
from bellhop.errors import MissingError, StaleError, TemporaryError
from bellhop.ports.kube import Kube, Manifest
from bellhop.state.records import Records
from bellhop.state.table import Stored

SETTLE = timedelta(seconds=2)
"""Time in which deletions count as one change."""

_ABANDONED = timedelta(minutes=1)
"""Time after which a worker that began to end an object counts as dead."""

_LONGEST_PAUSE = timedelta(minutes=1)

Kept = Stored[ConfiguredObject]


class Withdrawal:
    """Deletes the manifests of deleted objects, and lets the objects go at last."""

    def __init__(self, records: Records, writer: ManifestWriter) -> None:
        self._records = records
        self._writer = writer

    def withdraw(
        self, cluster: str, kube: Kube, key: DeclarationKey, kept: Kept, found: Manifest | None
    ) -> None:
        """Take the next step for a deleted object; `found` is what is left of it.

        Raises:
            TemporaryError: others may be deleted with it, or another worker is at work on it.
        """
        record = kept.value
        if key.kind in HOLDERS:
            self._delete([key] if record.in_force else [])
            self._forget(kube, key, kept, found)
        elif record.in_force:
            self._end(cluster, kube, key, kept, found)
        elif record.state == "Ending" and self._is_left(key):
            self._wait(cluster, kube, key, record, found)
        else:
            self._forget(kube, key, kept, found)

    def refuse_ending(self, key: DeclarationKey, record: ConfiguredObject) -> None:
        """Wait for the end of an object before one of its name is admitted.

        Raises:
            TemporaryError: a worker is about to delete its manifest.
        """
        if record.state == "Ending" and record.in_force and self._age(record) < _ABANDONED:
            raise TemporaryError(f"the former {key} is being withdrawn", delay=SETTLE)

    def _end(
        self,
        cluster: str,
        kube: Kube,
        key: DeclarationKey,
        kept: Kept,
        found: Manifest | None,
    ) -> None:
        record, now = kept.value, self._records.clock.now()
        if is_definition_lost(kube, key.kind):
            # All objects of the kind go with it, one after the other: no user deleted this one.
            self._records.configured.put(
                *key, make_missing(record, key.kind, now), expect=kept.token
            )
            return
        if record.state not in ("Leaving", "Ending"):
            leaving = replace(record, state="Leaving", at=now, message="it was deleted")
            self._records.configured.put(*key, leaving, expect=kept.token)
            raise TemporaryError(f"{key} was deleted just now; others may be", delay=SETTLE)
        wait = (SETTLE if record.state == "Leaving" else _ABANDONED) - self._age(record)
        if wait > timedelta(0):
            raise TemporaryError(f"{key} is being withdrawn", delay=min(wait, SETTLE))
        self._delete_all(dict(self._claim()))
        if present := self._records.configured.get(*key):
            self.withdraw(cluster, kube, key, present, found)

    def _claim(self) -> Iterator[tuple[DeclarationKey, Kept]]:
        """Mark all that leave as ending, but for those that another worker has marked."""
        now = self._records.clock.now()
        for kind in (each.kind for each in CONFIGURED_KINDS if each.kind not in HOLDERS):
            for namespace, name, kept in list(self._records.configured.list_kind(kind)):
                record = kept.value
                dead = record.state == "Ending" and self._age(record) >= _ABANDONED
                if not record.in_force or not (record.state == "Leaving" or dead):
                    continue
                key = DeclarationKey(kind, namespace, name)
                ending = replace(record, state="Ending", at=now)
                with suppress(StaleError):
                    token = self._records.configured.put(*key, ending, expect=kept.token)
                    yield key, Stored(ending, token)

    def _delete_all(self, claimed: Mapping[DeclarationKey, Kept]) -> None:
        """Delete the manifests of ending objects as one change."""
        self._delete(claimed)
        # Read, not remembered: a worker that died may have deleted the manifests.
        held = {each.value.rule: each.value for each in self._records.removals.all()}
        for key, kept in claimed.items():
            rule = (key.rule, "") if key.kind == "EventTrigger" else ("", key.rule)
            change = held[rule].change if rule in held else ""
            message = f"held: `bellhop release --change {change}` removes it" if change else ""
            ended = replace(kept.value, in_force=False, change=change, message=message)
            with suppress(StaleError):
                self._records.configured.put(*key, ended, expect=kept.token)

    def _delete(self, keys: Iterable[DeclarationKey]) -> None:
        if there := [key for key in keys if self._records.manifests.has(*key)]:
            # A user may delete one of them at this moment.
            with suppress(MissingError):
                self._writer.delete(there)

    def _wait(
        self,
        cluster: str,
        kube: Kube,
        key: DeclarationKey,
        record: ConfiguredObject,
        found: Manifest | None,
    ) -> None:
        """Look again later: after half of the time that it took so far, at most a minute."""
        if found and record.change:
            set_annotation(kube, found, HELD, record.change)
        pause = min(max(self._age(record) / 2, SETTLE), _LONGEST_PAUSE)
        message = make_read_back(cluster, _find_gvk(key.kind), key).message()
        name = f"configured/{key.kind}/{key.place}"
        self._records.timers.set(name, self._records.clock.now() + pause, message.body)

    def _is_left(self, key: DeclarationKey) -> bool:
        """Return whether anything that a rule made is left in some cluster."""
        profiles = self._records.profiles
        if key.kind == "EventTrigger":
            return any(True for _ in profiles.heads(key.rule))
        if key.kind == "ClusterPromotion":
            return any(each.rollout.promotion == key.name for each in profiles.heads(""))
        return find_finalizer(key.kind) != "" and profiles.head("", "", key.rule) is not None

    def _forget(self, kube: Kube, key: DeclarationKey, kept: Kept, found: Manifest | None) -> None:
        if found:
            set_finalizer(kube, found, present=False)
        self._records.configured.delete(*key, expect=kept.token)

    def _age(self, record: ConfiguredObject) -> timedelta:
        return abs(self._records.clock.now() - record.at)


def _find_gvk(kind: str) -> GVK:
    return next(each for each in CONFIGURED_KINDS if each.kind == kind)
